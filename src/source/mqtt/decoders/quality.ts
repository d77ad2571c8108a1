// Which codes of a payload mean that a value is good: listed codes, a range, or the bits of a mask. Pure.
import { z } from "zod";
import { scalarText } from "./json-path.ts";

/** Plain data, so that configurations can be compared. */
export type GoodCode =
  | { readonly code: string }
  | { readonly from: number; readonly to: number }
  | { readonly value: number; readonly mask: number };

const maskText = /^(0x[0-9a-f]{1,8}|\d{1,10})\/(0x[0-9a-f]{1,8}|\d{1,10})$/i;
const range = z.tuple([z.number(), z.number()]);
const code = z.union([z.string(), z.number(), z.boolean()]);

/** The field of a schema: a mask, a range, or a list of codes, masks and ranges. */
export function goodCodes() {
  return z.union([z.string(), z.array(z.union([code, range])).min(1)]).transform((written): readonly GoodCode[] => {
    if (typeof written === "string") return [goodCode(written)];
    const [from, to] = written;
    if (written.length === 2 && typeof from === "number" && typeof to === "number" && from < to) return [{ from, to }];
    return written.map((each) => (Array.isArray(each) ? { from: each[0], to: each[1] } : goodCode(each)));
  });
}

function goodCode(written: string | number | boolean): GoodCode {
  const [, value, mask] = maskText.exec(String(written)) ?? [];
  return value === undefined || mask === undefined
    ? { code: String(written) }
    : { value: Number(value), mask: Number(mask) };
}

/** Whether `found`, a code as it stands in a payload, is one of the good ones. */
export function isGood(found: unknown, good: readonly GoodCode[]): boolean {
  const text = scalarText(found);
  if (text === undefined) return false;
  const number = typeof found === "boolean" || text.trim() === "" ? Number.NaN : Number(text);
  return good.some((each) => {
    if ("code" in each) return each.code === text;
    if ("from" in each) return number >= each.from && number <= each.to;
    // Bits of 32; a status code that was written as a signed number has the same ones.
    return Number.isInteger(number) && (number & each.mask) >>> 0 === each.value >>> 0;
  });
}
