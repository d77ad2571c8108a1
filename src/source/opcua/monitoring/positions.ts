// Remembers of each subscription up to which message all is on disk, so that the next connection knows which are missing,
// also after the agent was killed and where the server has kept none of them.
import { z } from "zod";
import type { Logger } from "../../../core/runtime.ts";
import { readStateFile } from "../../../lib/state-file.ts";
import { InPlaceFile } from "../session/state-files.ts";
import { after, behind } from "./sequence.ts";

/** Identifies a subscription: a restarted server assigns the same numbers again. */
export interface SubscriptionKey {
  readonly id: number;
  readonly started: string;
}

const content = z.object({ version: z.literal(1), next: z.record(z.string(), z.int()) });
/** What is written has the same length each time: it takes the place of what was there in one go. */
const bytes = 4_096;

/** The file is not forced to the disk: after a power cut it may be behind, and what is on disk is taken for missing. */
export class Positions implements AsyncDisposable {
  readonly #file: InPlaceFile | undefined;
  readonly #log: Logger;
  readonly #next: Map<string, number>;
  #failed = false;

  private constructor(path: string | undefined, log: Logger, next: Map<string, number>) {
    const text = () => JSON.stringify({ version: 1, next: Object.fromEntries(this.#next) }).padEnd(bytes);
    this.#file = path === undefined ? undefined : new InPlaceFile(path, () => Buffer.from(text()));
    this.#log = log;
    this.#next = next;
  }

  /** Undefined as `path`: nothing is known or written. Never rejects: a file that cannot be read is as good as none. */
  static async open(path: string | undefined, log: Logger): Promise<Positions> {
    const stored = path === undefined ? undefined : await readStateFile(path, content);
    return new Positions(path, log, new Map(Object.entries(stored?.next ?? {})));
  }

  /** Number of the first message that is not on disk. Undefined: unknown. */
  next(subscription: SubscriptionKey): number | undefined {
    return this.#next.get(keyOf(subscription));
  }

  /** These begin, those that are neither new nor kept are forgotten. Resolves when that is written. */
  begin(fresh: readonly SubscriptionKey[], kept: readonly SubscriptionKey[]): Promise<void> {
    const going = new Set(kept.map(keyOf));
    for (const key of this.#next.keys()) if (!going.has(key)) this.#next.delete(key);
    for (const subscription of fresh) this.#next.set(keyOf(subscription), 1);
    return this.#write();
  }

  /**
   * A message, and all before it, is on disk. Resolves when that is written: only then may the server be told. Resolves,
   * too, when it cannot be written, which is logged.
   */
  reached(subscription: SubscriptionKey, sequenceNumber: number): Promise<void> {
    const key = keyOf(subscription);
    const before = this.#next.get(key);
    const next = after(sequenceNumber);
    if (before !== undefined && !behind(before, next)) return Promise.resolve();
    this.#next.set(key, next);
    return this.#write();
  }

  /** Resolves when all that was reached is written, and the file is closed. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file?.[Symbol.asyncDispose]();
  }

  async #write(): Promise<void> {
    try {
      await this.#file?.write();
      this.#failed = false;
    } catch (error) {
      if (!this.#failed) this.#log.warn({ err: error }, "cannot persist acknowledged sequence numbers");
      this.#failed = true;
    }
  }
}

function keyOf({ id, started }: SubscriptionKey): string {
  return `${id} ${started}`;
}
