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
/** Growth, as a share of the size, that is not worth another try. */
const leastGain = 1 / 8;

export type LearnedLimit = ReturnType<typeof learnedLimit>;

/** `maxBytes`: limit of the interface. A missing, damaged or day-old file is ignored. */
export async function openLearnedLimit(path: string, maxBytes: number, runtime: Runtime): Promise<LearnedLimit> {
  const found = await readStateFile(path, schema);
  const age = found ? runtime.clock.now() / 1_000 - found.at : keptMs;
  const limit = Math.max(leastBytes, Math.min(maxBytes, found?.maxBytes ?? maxBytes));
  const learned = age >= 0 && age < keptMs ? { limit, forMs: keptMs - age } : undefined;
  return learnedLimit(maxBytes, runtime, learned, (text) => writeAtomically(path, text));
}

export function learnedLimit(
  most: number,
  runtime: Runtime,
  learned = { limit: most, forMs: 0 },
  write: (text: string) => Promise<void> = async () => {},
) {
  let { limit } = learned;
  /** When larger requests are tried again, in monotonic milliseconds. */
  let until = runtime.clock.monotonic() + learned.forMs;
  /** Nearly full requests that must be accepted before the size grows. Doubles when a larger one fails. */
  let patience = 1;
  let took = 0;
  /** Largest request accepted since one of that size was too large. */
  let largestBytes = 0;
  /** Size before the last growth, until a larger request is accepted. */
  let provenBytes: number | undefined;
  /** Size of the smallest larger request that failed. */
  let failedBytes = Number.POSITIVE_INFINITY;

  /** Removes the limit, since size was not the cause. */
  function forget(): void {
    limit = most;
    patience = 1;
    took = 0;
    provenBytes = undefined;
    failedBytes = Number.POSITIVE_INFINITY;
  }

  /** Twice the size, or half-way to the size that failed, unless that gains little. */
  function larger(): number {
    const doubled = Math.min(most, limit * 2);
    const isNear = failedBytes - limit <= limit * leastGain;
    return doubled < failedBytes || isNear ? doubled : (limit + failedBytes) >> 1;
  }

  return {
    /** Limit of the interface, in bytes. */
    most,
    forget,
    get maxBytes(): number {
      if (limit < most && runtime.clock.monotonic() >= until) forget();
      return limit;
    },
    /** Whether requests have their smallest size. */
    get least(): boolean {
      return limit === Math.min(most, leastBytes);
    },
    /** Whether a request of at least `bytes` was accepted, and none of that size was too large since. */
    isProven: (bytes: number): boolean => bytes <= largestBytes,
    /**
     * A request of `bytes` was accepted, so the next ones may be larger. If larger ones repeatedly fail, 2, 4, …
     * 64 requests must be accepted first. A request below half the limit does not count.
     */
    accepted(bytes: number): void {
      largestBytes = Math.max(largestBytes, bytes);
      if (limit === most && provenBytes === undefined) return;
      if (provenBytes !== undefined && bytes > provenBytes) {
        provenBytes = undefined;
        patience = 1;
      }
      if (bytes >= failedBytes) failedBytes = Number.POSITIVE_INFINITY;
      if (limit === most || bytes * 2 <= limit || ++took < patience) return;
      took = 0;
      provenBytes = limit;
      limit = larger();
    },
    /** A request of `bytes` was too large, or cut off. Limits the next ones to the size before, or half of that. */
    async tooLarge(bytes: number): Promise<void> {
      largestBytes = Math.min(largestBytes, bytes - 1);
      const before = provenBytes !== undefined && bytes > provenBytes ? provenBytes : undefined;
      if (before !== undefined) failedBytes = bytes;
      if (provenBytes !== undefined) patience = Math.min(mostPatience, patience * 2);
      provenBytes = undefined;
      took = 0;
      limit = Math.max(Math.min(most, leastBytes), Math.min(limit, before ?? bytes >> 1));
      until = runtime.clock.monotonic() + keptMs;
      runtime.log.warn({ bytes, maxBytes: limit }, "a request was too large or got no answer; smaller ones are sent");
      const text = JSON.stringify({ maxBytes: limit, at: runtime.clock.now() / 1_000 });
      await write(text).catch((error: unknown) =>
        runtime.log.warn({ err: error }, "the size of requests cannot be kept for the next start"),
      );
    },
  };
}
