// Ends every switch over a closed set, so that the compiler names the case that was forgotten.

/** Never returns. Throws when data from outside slipped past the types. */
export function unreachable(value: never): never {
  throw new TypeError(`unexpected value: ${JSON.stringify(value)}`);
}
