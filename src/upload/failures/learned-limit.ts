// The largest request that the service, or a proxy before it, accepts. Stored for the next start.
import { z } from "zod";
import type { Runtime } from "../../core/runtime.ts";
import { writeAtomically } from "../../lib/files/atomic-file.ts";
import { readStateFile } from "../../lib/files/state-file.ts";

const schema = z.object({
  maxBytes: z.int().positive(),
  /** Wall time in milliseconds. */
  at: z.number(),
});

/** After this time, larger requests are tried again, since the cause may be removed. */
const keptMs = 86_400_000;
/** Any single point fits into this size. A request of this size that is refused as too large has another cause. */
const leastBytes = 1_024;
/** Most requests between two tries of a larger size. At one a second, a try takes place about once a minute. */
const mostPatience = 64;

export class LearnedLimit {
  readonly #write: (text: string) => Promise<void>;
  readonly #runtime: Runtime;
  /** Limit of the interface, in bytes. */
  readonly most: number;
  #maxBytes: number;
  /** When larger requests are tried again, in monotonic milliseconds. */
  #until: number;
  /** Nearly full requests that must be accepted before the size grows. Doubles when a larger one fails. */
  #patience = 1;
  #accepted = 0;
  /** Size before the last doubling, until a larger request is accepted. */
  #provenBytes: number | undefined;
  /** Largest request accepted since one of that size was too large. */
  #largestBytes = 0;

  private constructor(
    write: (text: string) => Promise<void>,
    most: number,
    learned: { maxBytes: number; forMs: number },
    runtime: Runtime,
  ) {
    this.#write = write;
    this.most = most;
    this.#maxBytes = learned.maxBytes;
    this.#until = runtime.clock.monotonic() + learned.forMs;
    this.#runtime = runtime;
  }

  /** `maxBytes`: limit of the interface. A missing, damaged or day-old file is ignored. */
  static async open(path: string, maxBytes: number, runtime: Runtime): Promise<LearnedLimit> {
    const found = await readStateFile(path, schema);
    const age = found ? runtime.clock.now() / 1_000 - found.at : keptMs;
    const bytes = Math.max(leastBytes, Math.min(maxBytes, found?.maxBytes ?? maxBytes));
    const learned = age >= 0 && age < keptMs ? { maxBytes: bytes, forMs: keptMs - age } : { maxBytes, forMs: 0 };
    return new LearnedLimit((text) => writeAtomically(path, text), maxBytes, learned, runtime);
  }

  static inMemory(maxBytes: number, runtime: Runtime): LearnedLimit {
    return new LearnedLimit(async () => {}, maxBytes, { maxBytes, forMs: 0 }, runtime);
  }

  get maxBytes(): number {
    if (this.#maxBytes < this.most && this.#runtime.clock.monotonic() >= this.#until) this.forget();
    return this.#maxBytes;
  }

  /** Whether requests have their smallest size. */
  get least(): boolean {
    return this.#maxBytes === Math.min(this.most, leastBytes);
  }

  /** Whether a request of at least `bytes` was accepted, and none of that size was too large since. */
  isProven(bytes: number): boolean {
    return bytes <= this.#largestBytes;
  }

  /** Removes the limit, since size was not the cause. */
  forget(): void {
    this.#maxBytes = this.most;
    this.#patience = 1;
    this.#accepted = 0;
    this.#provenBytes = undefined;
  }

  /**
   * A request of `bytes` was accepted, so the next ones may be twice as large. If larger ones repeatedly fail, 2, 4, …
   * 64 requests must be accepted first. A request below half the limit does not count.
   */
  accepted(bytes: number): void {
    this.#largestBytes = Math.max(this.#largestBytes, bytes);
    if (this.#maxBytes === this.most && this.#provenBytes === undefined) return;
    if (this.#provenBytes !== undefined && bytes > this.#provenBytes) {
      this.#provenBytes = undefined;
      this.#patience = 1;
    }
    if (this.#maxBytes === this.most || bytes * 2 <= this.#maxBytes || ++this.#accepted < this.#patience) return;
    this.#accepted = 0;
    this.#provenBytes = this.#maxBytes;
    this.#maxBytes = Math.min(this.most, this.#maxBytes * 2);
  }

  /** A request of `bytes` was too large. Limits the next ones to half of that. */
  async tooLarge(bytes: number): Promise<void> {
    this.#largestBytes = Math.min(this.#largestBytes, bytes - 1);
    if (this.#provenBytes !== undefined) this.#patience = Math.min(mostPatience, this.#patience * 2);
    this.#provenBytes = undefined;
    this.#accepted = 0;
    this.#maxBytes = Math.max(Math.min(this.most, leastBytes), Math.min(this.#maxBytes, bytes >> 1));
    this.#until = this.#runtime.clock.monotonic() + keptMs;
    this.#runtime.log.warn({ bytes, maxBytes: this.#maxBytes }, "the service takes smaller requests only");
    const text = JSON.stringify({ maxBytes: this.#maxBytes, at: this.#runtime.clock.now() / 1_000 });
    await this.#write(text).catch((error: unknown) =>
      this.#runtime.log.warn({ err: error }, "the size of requests cannot be kept for the next start"),
    );
  }
}
