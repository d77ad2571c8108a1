// The largest request that the service, or a proxy before it, accepts. It is stored, so that a start does not learn it again.
import { z } from "zod";
import type { Runtime } from "../../core/runtime.ts";
import { writeAtomically } from "../../lib/atomic-file.ts";
import { readStateFile } from "../../lib/state-file.ts";

const schema = z.object({
  maxBytes: z.int().positive(),
  /** Wall time in milliseconds. */
  at: z.number(),
});

/** After this long larger requests are tried again: what stood in the way may have been mended. */
const keptMs = 86_400_000;
/** A point fits into this whatever its Input ID. Who finds that too large does not speak of size. */
const leastBytes = 1_024;
/** Requests that go out at most between two tries of a larger size: at one a second, a larger one about once a minute. */
const mostPatience = 64;

export class LearnedLimit {
  readonly #write: (text: string) => Promise<void>;
  readonly #runtime: Runtime;
  /** What the interface allows. */
  readonly most: number;
  #maxBytes: number;
  /** When larger requests are tried again, on the monotonic clock in milliseconds. */
  #until: number;
  /** Nearly full requests that have to be accepted before the next ones may be larger. Doubles when larger ones fail. */
  #patience = 1;
  #accepted = 0;
  /** The size before it was doubled, until a request larger than that is accepted. */
  #provenBytes: number | undefined;
  /** The largest request that was accepted since one of that size was too large. */
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

  /** `maxBytes`: what the interface allows. A file that is missing, damaged or older than a day says nothing. */
  static async open(path: string, maxBytes: number, runtime: Runtime): Promise<LearnedLimit> {
    const found = await readStateFile(path, schema);
    const age = found ? runtime.clock.now() / 1_000 - found.at : keptMs;
    const bytes = Math.max(leastBytes, Math.min(maxBytes, found?.maxBytes ?? maxBytes));
    const learned = age >= 0 && age < keptMs ? { maxBytes: bytes, forMs: keptMs - age } : { maxBytes, forMs: 0 };
    return new LearnedLimit((text) => writeAtomically(path, text), maxBytes, learned, runtime);
  }

  /** One that no file keeps. */
  static inMemory(maxBytes: number, runtime: Runtime): LearnedLimit {
    return new LearnedLimit(async () => {}, maxBytes, { maxBytes, forMs: 0 }, runtime);
  }

  get maxBytes(): number {
    if (this.#maxBytes < this.most && this.#runtime.clock.monotonic() >= this.#until) this.forget();
    return this.#maxBytes;
  }

  /** Whether requests are as small as they ever get. */
  get least(): boolean {
    return this.#maxBytes === Math.min(this.most, leastBytes);
  }

  /** Whether a request of `bytes` or a larger one was accepted, and none of that size was too large since. */
  isProven(bytes: number): boolean {
    return bytes <= this.#largestBytes;
  }

  /** It was not for their size that requests were found too large. */
  forget(): void {
    this.#maxBytes = this.most;
    this.#patience = 1;
    this.#accepted = 0;
    this.#provenBytes = undefined;
  }

  /**
   * A request of `bytes` was accepted: the next ones may be twice as large. Where larger ones are found too large again and
   * again, 2, 4, … 64 have to be accepted first. A request of less than half the limit says nothing of larger ones.
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

  /** A request of `bytes` was too large: from now on at most half of that. */
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
