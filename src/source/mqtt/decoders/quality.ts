// Matching of quality codes in payloads: listed codes, ranges and bit masks.
import { z } from "zod";
import type { ConfigWarning } from "../../../core/driver.ts";
import { unfit } from "../../../lib/values/fields.ts";
import { follow, type JsonPath, scalarText } from "./json-path.ts";
import { PayloadError } from "./payload.ts";

/** Plain data, so that configurations can be compared. */
export type GoodCode =
  | { readonly code: string }
  /** `bare`: configured as a list of two numbers, which could also mean two codes. */
  | { readonly from: number; readonly to: number; readonly bare?: true }
  | { readonly value: number; readonly mask: number };

/** A text with a digit first and a slash is a mask; any other text is a code. */
const maskText = /^\s*(\d\S*)\s*\/\s*(\S+)\s*$/;
const operand = /^(?:0x[0-9a-f]+|\d+)$/i;
const highest = 0xffff_ffff;
const range = z.tuple([z.number(), z.number()]);
const code = z.union([z.string(), z.number(), z.boolean()]);

/** Schema field: a mask, a range, or a list of codes, masks and ranges. */
export function goodCodes() {
  return z
    .union([z.string(), z.array(z.union([code, range])).min(1)])
    .transform((written, context): readonly GoodCode[] => {
      const list = typeof written === "string" ? [written] : written;
      const [from, to] = list;
      if (list.length === 2 && typeof from === "number" && typeof to === "number" && from < to)
        return [{ from, to, bare: true }];
      const codes: GoodCode[] = [];
      for (const each of list) {
        const found = Array.isArray(each) ? rangeOf(each) : goodCode(each);
        if (typeof found === "string") return unfit(context, found, written);
        codes.push(found);
      }
      return codes;
    });
}

/** The range, or an error message. */
function rangeOf([from, to]: readonly [number, number]): GoodCode | string {
  return from <= to ? { from, to } : `has a range that no code is in: [${from}, ${to}]`;
}

/** The code or mask, or an error message. */
function goodCode(written: string | number | boolean): GoodCode | string {
  const [, left, right] = maskText.exec(String(written)) ?? [];
  if (left === undefined || right === undefined) return { code: String(written) };
  if (!operand.test(left) || !operand.test(right))
    return `must be value/mask in numbers where a slash follows a number, as in "0x00/0xC0", is "${written}"`;
  const [value, mask] = [Number(left), Number(right)];
  if (value > highest || mask > highest) return `has a mask of more than 32 bits: "${written}"`;
  if (mask === 0) return `has a mask without bits, by which every code is good: "${written}"`;
  if ((value & ~mask) !== 0)
    return `has a value with bits that are not in its mask, so that no code is good: "${written}"`;
  return { value, mask };
}

/** Warns about two numbers that may be meant as two codes. */
export function rangeRemarks({
  quality,
}: {
  readonly quality?: Pick<QualityField, "good"> | undefined;
}): readonly ConfigWarning[] {
  return (quality?.good ?? []).flatMap((each) => {
    if (!("bare" in each)) return [];
    const message = `takes all codes from ${each.from} to ${each.to} for good: two ascending numbers are a range`;
    const hint = `good: [[${each.from}, ${each.to}]] says that this is meant; two single codes are good: ["${each.from}", "${each.to}"]`;
    return [{ field: "quality", message, hint }];
  });
}

/** The field `quality` of a tag. */
interface QualityField {
  readonly at: JsonPath | readonly JsonPath[];
  readonly good: readonly GoodCode[];
}

/** The code in `document` that is none of the good ones. Undefined: the value is good. `keys`: as in `follow`. */
export function badCode({ at, good }: QualityField, document: unknown, keys: readonly string[]): unknown {
  const code = "length" in at ? firstCode(at, document, keys) : follow(document, at, keys);
  return isGood(code, good) ? undefined : code;
}

function firstCode(at: readonly JsonPath[], document: unknown, keys: readonly string[]): unknown {
  for (const place of at) {
    const code = follow(document, place, keys);
    if (code instanceof PayloadError || (code !== undefined && typeof code !== "object")) return code;
  }
  return undefined;
}

/** Whether the payload's code `found` is one of the good ones. */
export function isGood(found: unknown, good: readonly GoodCode[]): boolean {
  const text = scalarText(found);
  if (text === undefined) return false;
  const number = typeof found === "boolean" || text.trim() === "" ? Number.NaN : Number(text);
  return good.some((each) => {
    // A number is one code, however it is written: 192, 192.0 or 0xC0.
    if ("code" in each) return each.code === text || (each.code.trim() !== "" && Number(each.code) === number);
    if ("from" in each) return number >= each.from && number <= each.to;
    // Compares 32 bits, so signed and unsigned status codes are equal.
    return Number.isInteger(number) && (number & each.mask) >>> 0 === each.value >>> 0;
  });
}
