// What a payload decoder is, and the table of them. A new one is one file and one line here.
import { bareValue } from "./bare.ts";
import { jsonDocument } from "./json.ts";
import { numberText } from "./number.ts";
import { plainText } from "./text.ts";

/**
 * Turns a payload into a document that `value` and `time` find their way in: objects, arrays, texts, numbers, bigints,
 * booleans and null. Throws `PayloadError` when the payload is not what it should be. Never keeps the payload.
 */
export type Decoder = (payload: Buffer) => unknown;

/** Decoders by the `format` of a tag. */
export const decoders = {
  json: jsonDocument,
  bare: bareValue,
  number: numberText,
  text: plainText,
} as const satisfies Record<string, Decoder>;
