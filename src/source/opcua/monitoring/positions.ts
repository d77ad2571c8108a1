// Persists the first message of each subscription that is not on disk, to detect missing messages after a crash.
import { statSync } from "node:fs";
import { z } from "zod";
import type { Logger } from "../../../core/runtime.ts";
import { readStateFile } from "../../../lib/files/state-file.ts";
import { InPlaceFile } from "../session/state-files.ts";
import { after, behind } from "./missing-messages.ts";

/** Identifies a subscription: a restarted server assigns the same numbers again. */
export interface SubscriptionKey {
  readonly id: number;
  readonly started: string;
}

const content = z.object({
  version: z.literal(1),
  /** The agent that wrote the file. */
  agent: z.string().optional(),
  next: z.record(z.string(), z.int()),
  /** Keys of `next` that another agent has written, see `Positions.lags`. */
  lagging: z.array(z.string()).default([]),
});
/** The content is padded to this length, or that of longer content before it, so that one write replaces it. */
const leastBytes = 4_096;

/** The file is not synced. After a power cut it may be outdated, and stored messages count as missing. */
export class Positions implements AsyncDisposable {
  readonly #file: InPlaceFile | undefined;
  readonly #log: Logger;
  readonly #next: Map<string, number>;
  readonly #lagging: Set<string>;
  /** Longest content so far. */
  #bytes: number;
  #failed = false;

  private constructor(
    path: string | undefined,
    log: Logger,
    agent: string,
    size: number,
    stored?: z.output<typeof content>,
  ) {
    this.#bytes = Math.max(leastBytes, size);
    const text = () => {
      const [next, lagging] = [Object.fromEntries(this.#next), [...this.#lagging]];
      const bytes = Buffer.from(JSON.stringify({ version: 1, agent, next, lagging }).padEnd(this.#bytes));
      this.#bytes = bytes.length;
      return bytes;
    };
    this.#file = path === undefined ? undefined : new InPlaceFile(path, text);
    this.#log = log;
    this.#next = new Map(Object.entries(stored?.next ?? {}));
    const isOwn = stored?.agent === undefined || stored.agent === agent;
    this.#lagging = new Set(isOwn ? stored?.lagging : this.#next.keys());
  }

  /**
   * Without `path` nothing is stored. `agent`: the agent that reads the source now. Never rejects: an unreadable file
   * counts as missing.
   */
  static async open(path: string | undefined, log: Logger, agent = ""): Promise<Positions> {
    if (path === undefined) return new Positions(path, log, agent, 0);
    const stored = await readStateFile(path, content);
    const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    return new Positions(path, log, agent, size, stored);
  }

  /** Number of the first message that is not on disk. Undefined if unknown. */
  next(subscription: SubscriptionKey): number | undefined {
    return this.#next.get(keyOf(subscription));
  }

  /**
   * Whether `next` is from another agent and possibly outdated: a killed reader has acknowledged messages that are on
   * its own disk after it last handed over its files. False once this agent has stored a message.
   */
  lags(subscription: SubscriptionKey): boolean {
    return this.#lagging.has(keyOf(subscription));
  }

  /** Adds the fresh subscriptions and removes all but these and the kept ones. Resolves once written. */
  begin(fresh: readonly SubscriptionKey[], kept: readonly SubscriptionKey[]): Promise<void> {
    const going = new Set(kept.map(keyOf));
    for (const key of this.#next.keys()) if (!going.has(key) && this.#next.delete(key)) this.#lagging.delete(key);
    for (const subscription of fresh) this.#next.set(keyOf(subscription), 1);
    return this.#write();
  }

  /**
   * Records that all messages up to this one are on disk. Resolves once written, or after logging a write error.
   * Acknowledge only then.
   */
  reached(subscription: SubscriptionKey, sequenceNumber: number): Promise<void> {
    const key = keyOf(subscription);
    const before = this.#next.get(key);
    const next = after(sequenceNumber);
    if (before !== undefined && !behind(before, next)) return Promise.resolve();
    this.#lagging.delete(key);
    this.#next.set(key, next);
    return this.#write();
  }

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
