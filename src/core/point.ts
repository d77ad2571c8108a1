// The types of data: a point, its input, its time. No I/O and no run-time dependency.

/** Microseconds since 1970-01-01T00:00:00Z, as an integer. Exact in a double until the year 2255. */
export type EpochMicros = number & { readonly [microseconds]: true };
/** Input ID of the service: `^[a-zA-Z0-9-_:.#+/]{1,128}$`, unique within one integration. */
export type InputId = string & { readonly [inputId]: true };
/** Identifier the service gave a signal: `^[a-v0-9]{20}$`. */
export type SignalId = string & { readonly [signalId]: true };
declare const microseconds: unique symbol;
declare const inputId: unique symbol;
declare const signalId: unique symbol;

/** One value ready to store and send: finite, in the signal's engineering unit; booleans are 0 and 1, enum states 0 to 9999. */
export interface Point {
  readonly input: InputId;
  readonly time: EpochMicros;
  readonly value: number;
  /** `keep`: where the input has a value for this time already, the buffer shifts this one by 1 µs past it. Else it replaces it. */
  readonly sameTime?: "keep";
}

/** Points in columns, without an object for each unless they are gone through one by one. */
export interface PointBatch extends Iterable<Point> {
  readonly length: number;
  readonly inputs: readonly InputId[];
  /** Microseconds since the epoch. */
  readonly times: Float64Array;
  readonly values: Float64Array;
  /** `Point.sameTime` of each: 1 for `keep`. Undefined: of none. */
  readonly keeps: Uint8Array | undefined;
}

// The hyphen is escaped so that the pattern also compiles with the `v` flag of HTML's `pattern` attribute.
const inputIdPattern = /^[a-zA-Z0-9\-_:.#+/]{1,128}$/;

/** Whether `text` may be an Input ID (the service accepts 1 to 128 characters of this set). */
export function isInputId(text: string): text is InputId {
  return inputIdPattern.test(text);
}

/** Marks an integer as microseconds since the epoch. Fractions are cut towards the past. */
export function epochMicros(value: number): EpochMicros {
  return Math.floor(value) as EpochMicros;
}
