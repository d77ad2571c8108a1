// JSON payloads.
import { PayloadError, sample } from "../payload-error.ts";
import { utf8 } from "./utf8.ts";

// Only a number of 16 digits or more can lose some in a double; what looks like one but is text costs a second parse.
const longNumber = /\d{16}/;

/** The document. Integers that a double cannot hold come as bigints. */
export function jsonDocument(payload: Buffer): unknown {
  const text = utf8(payload);
  try {
    return longNumber.test(text) ? JSON.parse(text, exactIntegers) : JSON.parse(text);
  } catch (error) {
    // Anything else, as a document nested too deep for the reviver, must not pass for a fault of ours either.
    const why = error instanceof SyntaxError ? "is not JSON" : "cannot be read as JSON";
    throw new PayloadError(`${why}: ${sample(payload)}`, { cause: error });
  }
}

/** As `jsonDocument`, but `NaN`, `Infinity` and `-Infinity`, which some devices write, are null. */
export function lenientJsonDocument(payload: Buffer): unknown {
  try {
    return jsonDocument(payload);
  } catch (error) {
    if (!(error instanceof PayloadError)) throw error;
    const text = utf8(payload);
    const strict = text.replace(stringOrNoNumber, (token) => (token.startsWith('"') ? token : "null"));
    if (strict === text) throw error;
    return jsonDocument(Buffer.from(strict));
  }
}

/** Strings, so that nothing in them is changed; one without an end goes on to the end of the text. */
const stringOrNoNumber = /"(?:[^"\\]|\\[^])*(?:"|$)|-?\b(?:NaN|Infinity)\b/g;

function exactIntegers(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  const source = context?.source;
  return source !== undefined && /^-?\d+$/.test(source) ? BigInt(source) : value;
}
