// Data types: point, input, time. No I/O and no run-time dependency.

/** Microseconds since 1970-01-01T00:00:00Z, an integer. A double represents it exactly until the year 2255. */
export type EpochMicros = number & { readonly [microseconds]: true };
/** Input ID of the service: `^[a-zA-Z0-9-_:.#+/]{1,128}$`, unique within one integration. */
export type InputId = string & { readonly [inputId]: true };
/** Identifier the service gave a signal: `^[a-v0-9]{20}$`. */
export type SignalId = string & { readonly [signalId]: true };
declare const microseconds: unique symbol;
declare const inputId: unique symbol;
declare const signalId: unique symbol;

/** A value ready to store and send: finite, in engineering units; booleans are 0 and 1, enum states 0 to 9999. */
export interface Point {
  readonly input: InputId;
  readonly time: EpochMicros;
  readonly value: number;
  /** `keep`: this point is shifted by 1 µs past an existing point of that time. Undefined: it replaces that point. */
  readonly sameTime?: "keep";
}

/** Points in columns. Iteration creates an object for each point. */
export interface PointBatch extends Iterable<Point> {
  readonly length: number;
  /** Reuse the list for the same inputs if that is cheap: the buffer caches by identity. */
  readonly inputs: readonly InputId[];
  readonly times: Float64Array;
  readonly values: Float64Array;
  /** `Point.sameTime` of each point: 1 for `keep`. Undefined: no point has it. */
  readonly keeps: Uint8Array | undefined;
}

// The hyphen is escaped so that the pattern also compiles with the `v` flag of HTML's `pattern` attribute.
const inputIdPattern = /^[a-zA-Z0-9\-_:.#+/]{1,128}$/;

/** Whether `text` is a valid Input ID of the service. */
export function isInputId(text: string): text is InputId {
  return inputIdPattern.test(text);
}

/** Brands a number as microseconds since the epoch, rounded down to an integer. */
export function epochMicros(value: number): EpochMicros {
  return Math.floor(value) as EpochMicros;
}
