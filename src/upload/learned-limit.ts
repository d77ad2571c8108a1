// The size of request that a service or proxy on the way was found to take: remembered, so that not every start finds out anew.
import { readFile } from "node:fs/promises";
import { z } from "zod";
import type { Runtime } from "../core/runtime.ts";
import { writeAtomically } from "../lib/atomic-file.ts";

const schema = z.object({
  maxBytes: z.int().positive(),
  /** Wall time in milliseconds. */
  at: z.number(),
});

/** After this long larger requests are tried again: what stood in the way may have been mended. */
const keptMs = 86_400_000;

export class LearnedLimit {
  readonly #path: string;
  readonly #runtime: Runtime;
  #maxBytes: number;

  private constructor(path: string, maxBytes: number, runtime: Runtime) {
    this.#path = path;
    this.#maxBytes = maxBytes;
    this.#runtime = runtime;
  }

  /** `maxBytes`: what the interface allows. A file that is missing, damaged or older than a day says nothing. */
  static async open(path: string, maxBytes: number, runtime: Runtime): Promise<LearnedLimit> {
    let learned = maxBytes;
    try {
      const found = schema.parse(JSON.parse(await readFile(path, "utf8")));
      const age = runtime.clock.now() / 1_000 - found.at;
      if (age >= 0 && age < keptMs) learned = Math.min(maxBytes, found.maxBytes);
    } catch {
      // Nothing was found too large yet.
    }
    return new LearnedLimit(path, learned, runtime);
  }

  get maxBytes(): number {
    return this.#maxBytes;
  }

  /** A request of `bytes` was too large: from now on at most half of that. */
  async tooLarge(bytes: number): Promise<void> {
    this.#maxBytes = Math.min(this.#maxBytes, bytes >> 1);
    this.#runtime.log.warn({ bytes, maxBytes: this.#maxBytes }, "the service takes smaller requests only");
    const text = JSON.stringify({ maxBytes: this.#maxBytes, at: this.#runtime.clock.now() / 1_000 });
    await writeAtomically(this.#path, text).catch((error: unknown) =>
      this.#runtime.log.warn({ err: error }, "the size of requests cannot be kept for the next start"),
    );
  }
}
