// Finds the addresses of a unit that answer, by halving refused blocks, and lists their values. Slow and gentle. Pure
// except for `read`.

import type { BrowsedNode } from "../../../core/commissioning.ts";
import { modiconNumber } from "../config/address.ts";
import { consequenceOf, type UnitRequest } from "../config/pdu.ts";
import { decodeBit, decodeRegisters, isRegisterTable, type Table } from "../config/registers.ts";
import type { Result } from "../connection/result.ts";
import type { ReadWords } from "./sunspec.ts";

export interface AnsweringRange {
  readonly table: Table;
  readonly start: number;
  /** Words, or bits as 0 and 1. */
  readonly values: readonly number[];
}

export interface AddressScanOptions {
  readonly table: Table;
  /** `to` is exclusive. */
  readonly from: number;
  readonly to: number;
  /** Longest request. */
  readonly block: number;
  /** Longest block that is not divided further. A lone register in it may be missed. */
  readonly smallest: number;
}

/** A block to be read. `half`: which half of a refused block. */
interface Piece {
  readonly start: number;
  readonly count: number;
  readonly half?: "first" | "second";
}

/** Yields the ranges that answer, by ascending address, each as soon as it ends; adjacent ones are merged. */
export async function* scanAddresses(
  read: ReadWords,
  { table, from, to, block, smallest }: AddressScanOptions,
): AsyncGenerator<AnsweringRange> {
  let open: { start: number; values: number[] } | undefined;
  let most = block;
  let firstHalfEnd: number | undefined;
  const pieces: Piece[] = [];
  for (let start = from; start < to; start += block) pieces.push({ start, count: Math.min(block, to - start) });
  for (let piece = pieces.shift(); piece; piece = pieces.shift()) {
    const { start, count, half } = piece;
    if (count > most) {
      pieces.unshift({ start, count: most }, { start: start + most, count: count - most });
      continue;
    }
    const values = await read(table, start, count);
    if (values) {
      // The halves answer, but the whole does not: the device does not allow this length.
      if (half === "second" && firstHalfEnd === start) most = Math.max(count, smallest);
      firstHalfEnd = half === "first" ? start + count : undefined;
      if (open && open.start + open.values.length === start) open.values.push(...values);
      else {
        if (open) yield { table, ...open };
        open = { start, values: [...values] };
      }
    } else if (count > smallest) {
      const middle = Math.ceil(count / 2);
      pieces.unshift(
        { start, count: middle, half: "first" },
        { start: start + middle, count: count - middle, half: "second" },
      );
    } else if (open) {
      // What follows is refused, and a person may wait for what was found.
      yield { table, ...open };
      open = undefined;
    }
  }
  if (open) yield { table, ...open };
}

// Reads the tables of a unit during discovery; an address without an answer counts as missing.

/** Consecutive silences before a table is abandoned. Some devices ignore missing addresses for a second each. */
const mostSilences = 10;
/** Consecutive refusals of a table without any data. Some devices answer a missing address with exception 1, too. */
const mostUnsupported = 40;

/** Reads words, or bits as 0 and 1. Adds a table to `abandoned`, with the address, if the unit lacks or ignores it. */
export function tableReader(
  link: ProbeConnection,
  unit: number,
  timeoutMs: number,
  abandoned: Map<Table, number> = new Map(),
): ReadWords {
  const silences = new Map<Table, number>();
  const unsupported = new Map<Table, number>();
  return async (table, start, count) => {
    if (abandoned.has(table) || start + count > 65_536) return undefined;
    const result = await link.read({ unit, table, start, count }, timeoutMs);
    const silent = result.kind === "silence" ? (silences.get(table) ?? 0) + 1 : 0;
    silences.set(table, silent);
    if (result.kind === "data") unsupported.set(table, Number.NEGATIVE_INFINITY);
    else if (result.kind === "exception" && consequenceOf(result.code) === "unsupported")
      unsupported.set(table, (unsupported.get(table) ?? 0) + 1);
    if (silent >= mostSilences || (unsupported.get(table) ?? 0) >= mostUnsupported) abandoned.set(table, start);
    if (result.kind !== "data") return undefined;
    const { bytes } = result;
    return isRegisterTable(table)
      ? Array.from({ length: count }, (_, i) => (bytes[i * 2]! << 8) | bytes[i * 2 + 1]!)
      : Array.from({ length: count }, (_, i) => Number(decodeBit(bytes, i)));
  };
}

/** A connection for discovery. */
export interface ProbeConnection {
  /** Like `ModbusConnection.read`. After the first answer, a lost connection counts as silence. */
  read(request: UnitRequest, timeoutMs: number): Promise<Result>;
}

// Lists the non-zero values of a range as nodes. Combines two registers that are probably a float. Pure.

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
