// How the values of a column are written smallest: tried on a part of them.
import { constants, zstdCompressSync } from "node:zlib";
import { DenseStreams, dictionaryCoding, noDecimals, type VectorCoding, writeVectors } from "./dense-values.ts";
import { isExact, maxDecimals, powers } from "./scaled.ts";

/** Shorter columns are not tried: that would take longer than they do. */
const triedFrom = 2_048;
const samples = 4;
const sampleValues = 1_024;
const quick = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };
/** Values looked at for the number of decimals, in short columns and in long ones. */
const decimalSamples = [32, 256] as const;

const scratch = new DenseStreams();
/** Values looked at, by the decimals they need. */
const needed = new Uint32Array(noDecimals + 1);

/** Writes the values from `start` to before `end` as a column. */
export function writeDenseColumn(out: DenseStreams, values: Float64Array, start: number, end: number): void {
  const decimals = decimalsOf(values, start, end);
  const count = end - start;
  if (count < triedFrom)
    return writeVectors(out, values, start, end, { decimals, differences: decimals !== noDecimals });
  const [coding, cost] = cheaper(values, start, end, decimals);
  // Sorted places say nothing about decimals that nearly all differ.
  const dictionary = dictionaryOf(values, start, end, Math.floor(count * (decimals === noDecimals ? 0.9 : 0.5)));
  if (dictionary) {
    const { different, places } = dictionary;
    const ofValues = { decimals, differences: true };
    const [ofPlaces, placesCost] = cheaper(places, 0, count, 0);
    const share = different.length / count;
    if (placesCost + share * costOf(different, 0, different.length, ofValues) < cost) {
      out.head.u8(dictionaryCoding);
      out.head.varint(different.length);
      writeVectors(out, different, 0, different.length, ofValues);
      return writeVectors(out, places, 0, count, ofPlaces);
    }
  }
  writeVectors(out, values, start, end, coding);
}

function cheaper(values: Float64Array, start: number, end: number, decimals: number): [VectorCoding, number] {
  const plain = { decimals, differences: false };
  const differences = { decimals, differences: true };
  const plainCost = costOf(values, start, end, plain);
  const differencesCost = costOf(values, start, end, differences);
  return differencesCost <= plainCost ? [differences, differencesCost] : [plain, plainCost];
}

/** Bytes a value, by samples from all over. */
function costOf(values: Float64Array, start: number, end: number, coding: VectorCoding): number {
  const count = end - start;
  scratch.clear();
  let taken = 0;
  if (count <= samples * sampleValues) {
    writeVectors(scratch, values, start, end, coding);
    taken = count;
  } else
    for (let i = 0; i < samples; i++, taken += sampleValues) {
      const from = start + Math.floor(((count - sampleValues) * i) / (samples - 1));
      writeVectors(scratch, values, from, from + sampleValues, coding);
    }
  let bytes = 0;
  for (const stream of scratch.all)
    bytes += stream.length < 64 ? stream.length : zstdCompressSync(stream.written(), quick).length;
  return bytes / taken;
}

/** The decimals with which a sample of the values is smallest: an exception takes ten bytes, a decimal three bits a value. */
function decimalsOf(values: Float64Array, start: number, end: number): number {
  needed.fill(0);
  const count = end - start;
  const step = Math.max(1, Math.floor(count / decimalSamples[count < triedFrom ? 0 : 1]));
  let seen = 0;
  let largest = 0;
  // Neighbours mostly need as many.
  let decimals = 0;
  for (let i = start; i < end; i += step, seen++) {
    const value = values[i]!;
    while (decimals > 0 && (decimals > maxDecimals || isExact(value, powers[decimals - 1]!))) decimals--;
    while (decimals <= maxDecimals && !isExact(value, powers[decimals]!)) decimals++;
    needed[decimals]!++;
    if (decimals <= maxDecimals && Math.abs(value) > largest) largest = Math.abs(value);
  }
  let best = noDecimals;
  let bestCost = seen * 56;
  const integerBits = Math.log2(largest + 1);
  for (let fewest = 0, exceptions = seen; fewest <= maxDecimals && exceptions > 0; fewest++) {
    if (needed[fewest] === 0) continue;
    exceptions -= needed[fewest]!;
    const cost = exceptions * 80 + seen * (integerBits + fewest * 3.3);
    if (cost < bestCost) {
      best = fewest;
      bestCost = cost;
    }
  }
  return best;
}

interface Dictionary {
  /** Ascending. */
  readonly different: Float64Array;
  /** Valid until the next call. */
  readonly places: Float64Array;
}

/** Number of a value plus one, by its hash; 0: none. */
let slots = new Uint32Array(0);
/** By number: index of the first occurrence. */
let firsts = new Uint32Array(0);
let numbers = new Uint32Array(0);
let places = new Float64Array(0);

/** Undefined where there are more than `most` different values, or NaN, which have no order. */
function dictionaryOf(values: Float64Array, start: number, end: number, most: number): Dictionary | undefined {
  const count = end - start;
  const words = new Uint32Array(values.buffer, values.byteOffset + start * 8, count * 2);
  if (numbers.length < count) {
    firsts = new Uint32Array(count);
    numbers = new Uint32Array(count);
    places = new Float64Array(count);
  }
  slots = new Uint32Array(4_096);
  // What hardly repeats in the beginning will not do so later.
  const early = Math.min(count, 16_384);
  const mostEarly = Math.ceil(early * Math.min(1, (most / count) * 1.4));
  let size = 0;
  for (let i = 0; i < count; i++) {
    const low = words[2 * i]!;
    const high = words[2 * i + 1]!;
    const slot = slotOf(words, low, high);
    let number = slots[slot]!;
    if (number === 0) {
      if (size === most || (i < early && size === mostEarly) || isNotANumber(high)) return undefined;
      firsts[size++] = i;
      slots[slot] = number = size;
      if (size * 2 > slots.length) growSlots(words, size);
    }
    numbers[i] = number - 1;
  }
  const different = new Float64Array(size);
  for (let number = 0; number < size; number++) different[number] = values[start + firsts[number]!]!;
  different.sort();
  const sorted = new Uint32Array(different.buffer);
  const ranks = new Uint32Array(size);
  for (let rank = 0; rank < size; rank++)
    ranks[slots[slotOf(words, sorted[2 * rank]!, sorted[2 * rank + 1]!)]! - 1] = rank;
  for (let i = 0; i < count; i++) places[i] = ranks[numbers[i]!]!;
  return { different, places };
}

/** Small as long as it can be: then it stays in the fastest cache. */
function growSlots(words: Uint32Array, size: number): void {
  slots = new Uint32Array(slots.length * 4);
  for (let number = 1; number <= size; number++) {
    const first = firsts[number - 1]! * 2;
    slots[slotOf(words, words[first]!, words[first + 1]!)] = number;
  }
}

function slotOf(words: Uint32Array, low: number, high: number): number {
  const mask = slots.length - 1;
  let hash = Math.imul(low ^ Math.imul(high, 0x85eb_ca6b), 0x9e37_79b1);
  hash ^= hash >>> 15;
  for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
    const number = slots[slot]!;
    if (number === 0) return slot;
    const first = firsts[number - 1]!;
    if (words[2 * first] === low && words[2 * first + 1] === high) return slot;
  }
}

/** Of the upper word; infinity counts as well. */
function isNotANumber(high: number): boolean {
  return (high & 0x7ff0_0000) === 0x7ff0_0000;
}
