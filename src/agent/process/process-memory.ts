// Keeps the heap of the process near what is in use, and its resident memory near the heap.

/**
 * How much garbage may gather before it is collected, in per cent of what was alive the last time. Unasked, V8 lets a
 * small heap quadruple, in each thread: a gateway pays for that memory for as long as the agent runs. Measured at
 * 10,000 messages a second: 55 MB less, no more CPU within what can be measured.
 */
const garbagePercent = 40;

/**
 * The HTTP parser of undici is WebAssembly. V8 optimises it after a few requests and keeps 13 MB for that; without, a
 * request of 9 MiB takes no more CPU within what can be measured.
 */
const unoptimisedParser = ["--no-wasm-tier-up", "--no-wasm-dynamic-tiering"] as const;

/** For the whole process, its threads included. May be called more than once, before the first request. */
export function boundGarbage(): void {
  // Not imported: as an ES module all its exports would be evaluated.
  const { setFlagsFromString } = process.getBuiltinModule("node:v8");
  for (const flag of [`--heap-growing-percent=${garbagePercent}`, ...unoptimisedParser]) setFlagsFromString(flag);
}

/**
 * Returns memory that is not in use to the system, after work that needed a lot for once. An ordinary collection keeps
 * the pages that it has emptied for later: of 233 MB after a file of 100,000 tags 219 MB stay resident, and 174 MB with
 * this. Blocks for 0.1 s of processor time with 26 MB in use and for 0.4 s with 77 MB, a small part of what reading such a
 * file has blocked. Does nothing where Node was started without --expose-gc.
 */
export function releaseMemory(): void {
  globalThis.gc?.({ type: "major", execution: "sync", flavor: "last-resort" });
}
