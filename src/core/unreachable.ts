// Ends every switch over a closed set, so that the compiler reports a missing case.

/** Throws if data from outside violates the types. */
export function unreachable(value: never): never {
  throw new TypeError(`unexpected value: ${JSON.stringify(value)}`);
}
