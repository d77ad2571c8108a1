// Chooses the smallest encoding for the values of a column by trying samples of them.
import { type ByteWriter, isExact, maxDecimals, powers } from "../files/bytes.ts";
import { type SortedColumns, writeColumns } from "./columns.ts";
import {
  DenseStreams,
  dictionaryCoding,
  noDecimals,
  type VectorCoding,
  writeStreams,
  writeVectors,
} from "./dense-values.ts";

/** Shorter columns use a default encoding: the trial would take longer than writing them. */
const triedFrom = 2_048;
const samples = 4;
const sampleValues = 1_024;
/** Values sampled to choose the number of decimals, in short and in long columns. */
const decimalSamples = [32, 256] as const;

const scratch = new DenseStreams();
const frequencies = new Uint32Array(256);
const needed = new Uint32Array(noDecimals + 1);

const streams = new DenseStreams();

/** Writes all points of `columns` as the payload of a cold record. */
export function writeDenseColumns(out: ByteWriter, columns: SortedColumns, from: number): void {
  streams.clear();
  writeColumns(streams.head, columns, from, (values, start, end) => writeDenseColumn(streams, values, start, end));
  writeStreams(out, streams);
}

export function writeDenseColumn(out: DenseStreams, values: Float64Array, start: number, end: number): void {
  const decimals = decimalsOf(values, start, end);
  const count = end - start;
  if (count < triedFrom)
    return writeVectors(out, values, start, end, { decimals, differences: decimals !== noDecimals });
  const [coding, { bytes: cost, upper }] = cheaper(values, start, end, decimals);
  // No dictionary if the upper planes cost next to nothing, or if over 50 % of the values (raw: 90 %) are distinct.
  const most = Math.floor(count * (decimals === noDecimals ? 0.9 : 0.5));
  const dictionary = upper < cost / 256 ? undefined : dictionaryOf(values, start, end, most);
  if (dictionary) {
    const { different, places } = dictionary;
    const ofValues = { decimals, differences: true };
    const [ofPlaces, { bytes }] = cheaper(places, 0, count, 0);
    const share = different.length / count;
    if (bytes + share * costOf(different, 0, different.length, ofValues).bytes < cost) {
      out.head.u8(dictionaryCoding);
      out.head.varint(different.length);
      writeVectors(out, different, 0, different.length, ofValues);
      return writeVectors(out, places, 0, count, ofPlaces);
    }
  }
  writeVectors(out, values, start, end, coding);
}

function cheaper(values: Float64Array, start: number, end: number, decimals: number): [VectorCoding, Cost] {
  const plain = { decimals, differences: false };
  const differences = { decimals, differences: true };
  const plainCost = costOf(values, start, end, plain);
  const differencesCost = costOf(values, start, end, differences);
  // zstd finds more repetitions without differences, so they must save at least 5 %.
  return differencesCost.bytes <= plainCost.bytes * 0.95 ? [differences, differencesCost] : [plain, plainCost];
}

/** Bytes per value: of all planes except the lowest, and in total. */
interface Cost {
  readonly upper: number;
  readonly bytes: number;
}

/** Estimates the cost by the entropy of each plane in samples, in a tenth of the time of compression. */
function costOf(values: Float64Array, start: number, end: number, coding: VectorCoding): Cost {
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
  const [lowest = 0, ...others] = scratch.planes.map((plane) => entropyOf(plane.written()));
  const upper = others.reduce((sum, bytes) => sum + bytes, 0);
  return { upper: upper / taken, bytes: (scratch.head.length + scratch.rest.length + lowest + upper) / taken };
}

/** The size of `bytes` with an optimal code for their frequencies. */
function entropyOf(bytes: Uint8Array): number {
  frequencies.fill(0);
  for (let i = 0; i < bytes.length; i++) frequencies[bytes[i]!]!++;
  let bits = 0;
  for (const n of frequencies) if (n > 0) bits += n * Math.log2(bytes.length / n);
  return bits / 8;
}

/** The decimals with which a sample takes the fewest bits: 80 per exception, 3.3 per decimal of a value. */
function decimalsOf(values: Float64Array, start: number, end: number): number {
  needed.fill(0);
  const count = end - start;
  const step = Math.max(1, Math.floor(count / decimalSamples[count < triedFrom ? 0 : 1]));
  let seen = 0;
  let largest = 0;
  // Start from the decimals of the value before: neighbours usually need the same number.
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

// Builds a dictionary of a column: its distinct values in ascending order, and for each value its place among them.
interface Dictionary {
  /** Ascending by the upper 43 bits. */
  readonly different: Float64Array;
  /** Valid until the next call. */
  readonly places: Float64Array;
}

/** Distinct values by number, in order of first occurrence, as doubles and as words. */
let found = new Float64Array(0);
let foundWords = new Uint32Array(0);
/** The number and the place of each value of the column. */
let numbers = new Uint32Array(0);
let places = new Float64Array(0);
/** The lower bits of a slot hold the number of a value plus one, the upper ones those of its hash. An empty slot is 0. */
const numberBits = 17;
const numberMask = 2 ** numberBits - 1;
/** Radix sort: for each digit of 11 bits, where the next number with it goes. */
const ends = new Uint32Array(2_048);

/** Undefined for more than `most` distinct values, and for NaN or infinity, which are stored as exceptions. */
export function dictionaryOf(values: Float64Array, start: number, end: number, most: number): Dictionary | undefined {
  const count = end - start;
  const words = new Uint32Array(values.buffer, values.byteOffset + start * 8, count * 2);
  if (numbers.length < count) {
    found = new Float64Array(count);
    foundWords = new Uint32Array(found.buffer);
    numbers = new Uint32Array(count);
    places = new Float64Array(count);
  }
  // The loop uses local variables, because a variable of the module is loaded and checked on each access.
  const known = foundWords;
  const numberAt = numbers;
  const limit = Math.min(most, numberMask);
  let slots = new Uint32Array(4_096);
  // A column that hardly repeats at its start is not worth scanning to its end.
  const early = Math.min(count, 16_384);
  const mostEarly = Math.ceil(early * Math.min(1, (most / count) * 1.4));
  let size = 0;
  for (let i = 0; i < count; i++) {
    const low = words[2 * i]!;
    const high = words[2 * i + 1]!;
    const hash = hashOf(low, high);
    const slot = slotOf(slots, known, hash, low, high);
    let number = slots[slot]! & numberMask;
    if (number === 0) {
      if (size === limit || (i < early && size === mostEarly) || !Number.isFinite(values[start + i])) return undefined;
      known[2 * size] = low;
      known[2 * size + 1] = high;
      number = ++size;
      slots[slot] = (hash & ~numberMask) | number;
      if (size * 2 > slots.length) slots = grownSlots(slots.length * 4, known, size);
    }
    numberAt[i] = number - 1;
  }
  const different = new Float64Array(size);
  const ranks = new Uint32Array(size);
  const order = sortedNumbers(size);
  for (let rank = 0; rank < size; rank++) {
    const number = order[rank]!;
    different[rank] = found[number]!;
    ranks[number] = rank;
  }
  const placeAt = places;
  for (let i = 0; i < count; i++) placeAt[i] = ranks[numberAt[i]!]!;
  return { different, places };
}

/** The table grows in steps, so that it stays in the fastest cache as long as possible. */
function grownSlots(length: number, known: Uint32Array, size: number): Uint32Array<ArrayBuffer> {
  const slots = new Uint32Array(length);
  for (let n = 0; n < size; n++) {
    const low = known[2 * n]!;
    const high = known[2 * n + 1]!;
    const hash = hashOf(low, high);
    slots[slotOf(slots, known, hash, low, high)] = (hash & ~numberMask) | (n + 1);
  }
  return slots;
}

function hashOf(low: number, high: number): number {
  const hash = Math.imul(low ^ Math.imul(high, 0x85eb_ca6b), 0x9e37_79b1);
  return hash ^ (hash >>> 15);
}

/** The slot of the value, or the empty slot where it belongs. Words are compared only where the bits of the hash agree. */
function slotOf(slots: Uint32Array, known: Uint32Array, hash: number, low: number, high: number): number {
  const mask = slots.length - 1;
  for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
    const entry = slots[slot]!;
    if (entry === 0) return slot;
    if ((entry ^ hash) >>> numberBits !== 0) continue;
    const at = (entry & numberMask) << 1;
    if (known[at - 2] === low && known[at - 1] === high) return slot;
  }
}

/** The numbers by ascending value: a radix sort by the upper 43 bits, as lower bits hardly affect differences. */
function sortedNumbers(size: number): Uint32Array {
  const lows = new Uint32Array(size);
  const highs = new Uint32Array(size);
  let order = new Uint32Array(size);
  for (let n = 0; n < size; n++) {
    const high = foundWords[2 * n + 1]!;
    // Doubles sort like unsigned integers once the sign bit is inverted, and all bits of negative numbers.
    const turned = high >> 31;
    lows[n] = foundWords[2 * n]! ^ turned;
    highs[n] = high ^ (turned | 0x8000_0000);
    order[n] = n;
  }
  order = sortedBy(lows, 21, order);
  for (const shift of [0, 11, 22]) order = sortedBy(highs, shift, order);
  return order;
}

/** Stable sort by the 11 bits of the keys from bit `shift` on. */
function sortedBy(keys: Uint32Array, shift: number, order: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const size = keys.length;
  ends.fill(0);
  for (let n = 0; n < size; n++) ends[(keys[n]! >>> shift) & 2_047]!++;
  if (ends[(keys[0]! >>> shift) & 2_047] === size) return order;
  for (let digit = 0, at = 0; digit < ends.length; digit++) {
    at += ends[digit]!;
    ends[digit] = at - ends[digit]!;
  }
  const sorted = new Uint32Array(size);
  for (let i = 0; i < size; i++) {
    const number = order[i]!;
    sorted[ends[(keys[number]! >>> shift) & 2_047]!++] = number;
  }
  return sorted;
}
