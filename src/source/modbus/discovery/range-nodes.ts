// Lists the non-zero values of a range as nodes. Combines two registers that are probably a float. Pure.
import type { BrowsedNode } from "../../../core/commissioning.ts";
import { modiconNumber } from "../config/address.ts";
import { decodeRegisters } from "../config/registers.ts";
import { isRegisterTable } from "../config/value-type.ts";
import type { AnsweringRange } from "./address-scan.ts";

/** Common "no value" codes: all bits, and the least and greatest signed number. */
const noValues = [0xffff, 0x8000, 0x7fff];
/** Lowest register value that is more likely a small negative number (-4096 to -2) than a large one. */
const leastSigned = 0xf000;

export function* rangeNodes({ table, start, values }: AnsweringRange, unit: number): Generator<BrowsedNode> {
  const isRegister = isRegisterTable(table);
  const title = `${table}:${start} to ${table}:${start + values.length - 1}, ${values.length} answer`;
  const at = `${table}:${start}${isRegister ? " u16" : ""}`;
  yield { address: `${table}:${start}`, name: title, depth: 0, signal: {}, tag: { unit, at } };
  const pairs: ReadonlyMap<number, FloatPair> = isRegister ? floatPairs(values, start) : new Map();
  for (const [i, value] of values.entries()) {
    const pair = pairs.get(i);
    if (!pair && (value === 0 || pairs.has(i - 1))) continue;
    const place = `${table}:${start + i}`;
    const name = `${place} (${modiconNumber({ table, address: start + i })})`;
    const node = (at: string, shown: Pick<BrowsedNode, "value" | "type">): BrowsedNode => {
      return { address: at, name, depth: 1, ...shown, signal: {}, tag: { unit, at } };
    };
    if (pair) {
      const at = `${place} f32${pair.order === "abcd" ? "" : ` ${pair.order}`}`;
      yield node(at, { value: pair.value, type: `f32, as u16: ${value} ${values[i + 1]}` });
    } else if (!isRegister) yield node(place, { value: value === 1 });
    // No value, so that no tag is created from it.
    else if (noValues.includes(value))
      yield node(`${place} u16`, { type: `u16: ${value}, which often stands for "no value"` });
    else if (value >= leastSigned)
      yield node(`${place} i16`, { value: value - 0x1_0000, type: `i16, as u16: ${value}` });
    else yield node(`${place} u16`, { value });
  }
}

// Finds pairs of adjacent registers that probably hold a 32-bit float. Pure.

export interface FloatPair {
  readonly value: number;
  readonly order: "abcd" | "cdab";
}

/** Usual range of measurements. Most pairs of integers, read as a float, are outside it. */
const smallest = 0.001;
const largest = 10_000_000;
/** Significant digits of a float. */
const mostDigits = 9;

/**
 * Keys are indexes of the first of two `words`; `start` is the address of `words[0]`. Pairs do not overlap and share
 * one order: the one with more pairs, fewer digits and more even addresses.
 */
export function floatPairs(words: readonly number[], start = 0): ReadonlyMap<number, FloatPair> {
  const [high, low] = (["abcd", "cdab"] as const).map((order) => pairsIn(words, order));
  if (!high || !low) return new Map();
  return likelihood(low, start) > likelihood(high, start) ? low : high;
}

function pairsIn(words: readonly number[], order: FloatPair["order"]): ReadonlyMap<number, FloatPair> {
  const pairs = new Map<number, FloatPair>();
  for (let i = 0; i + 1 < words.length; i++) {
    const [first, second] = [words[i]!, words[i + 1]!];
    const [high, low] = order === "abcd" ? [first, second] : [second, first];
    // Two words that could both begin a float are more likely integers.
    if (!isHighWord(high) || isHighWord(low)) continue;
    pairs.set(i, { value: floatOf(high, low), order });
    i++;
  }
  return pairs;
}

function likelihood(pairs: ReadonlyMap<number, FloatPair>, start: number): number {
  let sum = 0;
  for (const [i, { value }] of pairs) {
    const digits = String(Math.abs(value)).replace(/^[0.]+|\.|0+$/g, "").length;
    sum += 1 + Math.max(0, mostDigits - digits) + ((start + i) % 2 === 0 ? 0.5 : 0);
  }
  return sum;
}

/** Whether a float that begins with `word` is within the usual range. */
function isHighWord(word: number): boolean {
  const size = Math.abs(floatOf(word, 0));
  return size >= smallest && size <= largest;
}

function floatOf(high: number, low: number): number {
  const bytes = Uint8Array.of(high >> 8, high & 0xff, low >> 8, low & 0xff);
  const decoded = decodeRegisters(bytes, 0, { type: "f32", order: "abcd" });
  return decoded.ok ? Number(decoded.value) : Number.NaN;
}
