// Flips single bits of a segment of 64 KiB and checks the result of the real scan.
import {
  readSegmentHeader,
  type SegmentIndex,
  scanSegment,
  segmentHeaderBytes,
} from "../../src/buffer/disk/format/segment-file.ts";
import { append, folder, openStore, type Triple } from "./disk-store.ts";
import { MemoryDisk } from "./memory-disk.ts";

/** A full, sealed segment of at most 64 KiB. */
export function fullSegment(): Uint8Array {
  const disk = new MemoryDisk();
  const { store } = openStore(disk, { segmentBytes: 65_536 });
  for (let i = 0; store.stats().segments < 2; i++)
    append(
      store,
      Array.from({ length: 200 }, (_, k): Triple => [`line.${k % 5}`, 1.7e15 + (i * 200 + k) * 1_000, Math.sqrt(k)]),
    );
  const [name = ""] = disk
    .list(folder)
    .filter((entry) => entry.startsWith("seg-"))
    .toSorted();
  return disk.content(`${folder}/${name}`);
}

export interface FlipCounts {
  readonly flips: number;
  /** Flips that changed the points read without counting as damage, or that were counted wrongly. */
  readonly wrong: number[];
  /** Flips that cost a record of points. */
  readonly costly: number;
}

/** `bits` are bit numbers from the beginning of the file. */
export function flipBits(segment: Uint8Array, bits: Iterable<number>): FlipCounts {
  const bytes = segment.slice();
  const header = readSegmentHeader(segment.subarray(0, segmentHeaderBytes));
  if (typeof header === "string") throw new Error("the segment is not whole");
  const scan = (salt: number | undefined, end: number | undefined) =>
    scanSegment(bytes, {
      first: header.first,
      salt,
      limit: Number.POSITIVE_INFINITY,
      end,
      durable: end ?? 0,
    });
  const whole = scan(header.salt, undefined);
  if (!whole.sealed) throw new Error("the segment is not sealed");

  let flips = 0;
  let costly = 0;
  const wrong: number[] = [];
  for (const bit of bits) {
    const flipped = bit >> 3;
    bytes[flipped]! ^= 1 << (bit & 7);
    flips++;
    if (flipped < segmentHeaderBytes) {
      const found = readSegmentHeader(bytes.subarray(0, segmentHeaderBytes));
      const index = scan(undefined, undefined);
      if (found !== "damaged" || index.salt !== header.salt || !isSame(whole, index, -1)) wrong.push(bit);
    } else {
      const hit = recordAt(whole, segment, flipped);
      const index = scan(header.salt, whole.endSequence);
      if (!isSame(whole, index, hit)) wrong.push(bit);
      if (hit !== -1) costly++;
    }
    bytes[flipped]! ^= 1 << (bit & 7);
  }
  return { flips, wrong, costly };
}

/** The number of the record of points that contains the byte; -1 for a record of names or the seal. */
function recordAt(whole: SegmentIndex, segment: Uint8Array, byte: number): number {
  const at = whole.offsets.findLastIndex((offset) => offset <= byte);
  if (at === -1) return -1;
  const offset = whole.offsets[at]!;
  const length = new DataView(segment.buffer, segment.byteOffset + offset).getUint32(8, true);
  return byte < offset + 56 + Math.ceil(length / 8) * 8 ? at : -1;
}

/** Whether all records except number `hit` are unchanged, and the loss is exactly that record. */
function isSame(whole: SegmentIndex, index: SegmentIndex, hit: number): boolean {
  let at = 0;
  for (let i = 0; i < whole.offsets.length; i++) {
    if (i === hit) continue;
    if (index.offsets[at] !== whole.offsets[i] || index.sequences[at] !== whole.sequences[i]) return false;
    if (index.points[at] !== whole.points[i]) return false;
    at++;
  }
  if (index.offsets.length !== at || index.endSequence !== whole.endSequence) return false;
  if (whole.dictionary.some((name, i) => index.dictionary[i] !== name)) return false;
  const damage = index.damage.filter(({ from, to }) => from < to);
  if (hit === -1) return damage.length === 0;
  const from = whole.sequences[hit]!;
  return damage.length === 1 && damage[0]!.from === from && damage[0]!.to === from + whole.points[hit]!;
}
