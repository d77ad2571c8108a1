// Bytes of a block: up to 1,024 points of one signal by ascending time. Little-endian.
//
//   0  u8   form of the times: 0 even steps, 1 steps in u32 µs, 2 each in f64 µs
//   4  u32  count
//   8  f64  first time, µs since the epoch
//  16  f64  form 0: the step, µs
//  24       form 1: count − 1 × u32, padded to 8 bytes; form 2: count × f64
//   …       values, count × f64
//
// So a point costs 8 bytes on an even grid, 12 with irregular times less than 71 minutes apart, else 16.

/** Points by strictly ascending time, in columns of one length. */
export interface BlockColumns {
  /** Microseconds since the epoch. */
  readonly times: Float64Array;
  readonly values: Float64Array;
}

export const maxBlockPoints = 1_024;
const headerBytes = 24;

/** At least one point. */
export function encodeBlock({ times, values }: BlockColumns): Uint8Array {
  const count = times.length;
  const first = times[0] ?? 0;
  const form = formOf(times);
  const timeBytes = form === 0 ? 0 : form === 1 ? Math.ceil((count - 1) / 2) * 8 : count * 8;
  const buffer = new ArrayBuffer(headerBytes + timeBytes + count * 8);
  const view = new DataView(buffer);
  view.setUint8(0, form);
  view.setUint32(4, count, true);
  view.setFloat64(8, first, true);
  if (form === 0) view.setFloat64(16, count > 1 ? (times[1] ?? 0) - first : 0, true);
  else if (form === 1) {
    const steps = new Uint32Array(buffer, headerBytes, count - 1);
    for (let i = 1; i < count; i++) steps[i - 1] = times[i]! - times[i - 1]!;
  } else new Float64Array(buffer, headerBytes, count).set(times);
  new Float64Array(buffer, headerBytes + timeBytes, count).set(values);
  return new Uint8Array(buffer);
}

export function decodePoints(bytes: Uint8Array): BlockColumns {
  // A view needs an offset that is a multiple of 8; what SQLite hands out begins where it likes.
  const aligned = bytes.byteOffset % 8 === 0 ? bytes : bytes.slice();
  const { buffer, byteOffset } = aligned;
  const view = new DataView(buffer, byteOffset);
  const form = view.getUint8(0);
  const count = view.getUint32(4, true);
  const first = view.getFloat64(8, true);
  if (form === 2)
    return {
      times: new Float64Array(buffer, byteOffset + headerBytes, count),
      values: new Float64Array(buffer, byteOffset + headerBytes + count * 8, count),
    };
  const times = new Float64Array(count);
  if (form === 0) {
    const step = view.getFloat64(16, true);
    for (let i = 0; i < count; i++) times[i] = first + i * step;
    return { times, values: new Float64Array(buffer, byteOffset + headerBytes, count) };
  }
  const steps = new Uint32Array(buffer, byteOffset + headerBytes, count - 1);
  let time = first;
  times[0] = time;
  for (let i = 1; i < count; i++) times[i] = time += steps[i - 1]!;
  return {
    times,
    values: new Float64Array(buffer, byteOffset + headerBytes + Math.ceil((count - 1) / 2) * 8, count),
  };
}

function formOf(times: Float64Array): 0 | 1 | 2 {
  const step = times.length > 1 ? times[1]! - times[0]! : 0;
  let even = true;
  let widest = 0;
  for (let i = 1; i < times.length; i++) {
    const gap = times[i]! - times[i - 1]!;
    if (gap !== step) even = false;
    if (gap > widest) widest = gap;
  }
  return even ? 0 : widest <= 0xffff_ffff ? 1 : 2;
}

/** Both together; where they share a time `later` counts. */
export function mergeColumns(earlier: BlockColumns, later: BlockColumns): BlockColumns {
  const length = earlier.times.length + later.times.length;
  const times = new Float64Array(length);
  const values = new Float64Array(length);
  let i = 0;
  let j = 0;
  let at = 0;
  while (i < earlier.times.length || j < later.times.length) {
    const a = i < earlier.times.length ? earlier.times[i]! : Number.POSITIVE_INFINITY;
    const b = j < later.times.length ? later.times[j]! : Number.POSITIVE_INFINITY;
    if (a < b) {
      times[at] = a;
      values[at++] = earlier.values[i++]!;
    } else {
      if (a === b) i++;
      times[at] = b;
      values[at++] = later.values[j++]!;
    }
  }
  return at === length ? { times, values } : { times: times.subarray(0, at), values: values.subarray(0, at) };
}

/** One pair of columns for all of these. */
export function joinedBlocks(blocks: Iterable<BlockColumns>): BlockColumns {
  const all = [...blocks];
  const [only] = all;
  if (only && all.length === 1) return only;
  let length = 0;
  for (const { times } of all) length += times.length;
  const times = new Float64Array(length);
  const values = new Float64Array(length);
  let at = 0;
  for (const block of all) {
    times.set(block.times, at);
    values.set(block.values, at);
    at += block.times.length;
  }
  return { times, values };
}

/** Views of the points with index `from` to before `to`. */
export function sliceColumns({ times, values }: BlockColumns, from: number, to: number): BlockColumns {
  return from === 0 && to === times.length
    ? { times, values }
    : { times: times.subarray(from, to), values: values.subarray(from, to) };
}

/** Index of the first time that is not before `time`. */
export function indexOfTime(times: Float64Array, time: number, from = 0): number {
  let low = from;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (times[middle]! < time) low = middle + 1;
    else high = middle;
  }
  return low;
}
