// What the number in the property `Quality` of a Sparkplug metric means. Pure.
import type { Quality } from "../../../core/source.ts";

/**
 * Up to 255 the quality of OPC DA, whose two highest bits tell; 2 is Ignition's "write pending". Above it the codes of
 * Ignition: those of version 8 from 256, 512 and 768, those of version 7 from 300 to 501 and from 900.
 */
const ranges: readonly (readonly [from: number, to: number, quality: Quality])[] = [
  [2, 2, "good"],
  [0, 63, "bad"],
  [64, 127, "uncertain"],
  [192, 255, "good"],
  [256, 299, "uncertain"],
  // 500 is "stale", which the specification names.
  [300, 1_023, "bad"],
];

/** Ignition 8 may give a code as it has it: the quality in the two highest of 32 bits. */
const byHighestBits: readonly Quality[] = ["good", "uncertain", "bad", "bad"];

/** The quality of a metric; a code that means nothing says nothing against the value. */
export function qualityOf(code: unknown): Quality {
  if (typeof code !== "number" && typeof code !== "bigint") return "good";
  const number = Number(code);
  if (number >= 0 && number <= 0xffff)
    return ranges.find(([from, to]) => number >= from && number <= to)?.[2] ?? "good";
  return byHighestBits[(number | 0) >>> 30] ?? "good";
}
