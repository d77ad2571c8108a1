// Chooses the smallest encoding for the values of a column by trying samples of them.
import { dictionaryOf } from "./dense-dictionary.ts";
import { DenseStreams, dictionaryCoding, noDecimals, type VectorCoding, writeVectors } from "./dense-values.ts";
import { isExact, maxDecimals, powers } from "./scaled.ts";

/** Shorter columns use a default encoding: the trial would take longer than writing them. */
const triedFrom = 2_048;
const samples = 4;
const sampleValues = 1_024;
/** Values sampled to choose the number of decimals, in short and in long columns. */
const decimalSamples = [32, 256] as const;

const scratch = new DenseStreams();
const frequencies = new Uint32Array(256);
const needed = new Uint32Array(noDecimals + 1);

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
