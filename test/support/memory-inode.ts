// A file of the disk in memory: its content, the synced part of it, and what a power cut may leave.

/** Decides at random, for each unsynced change, whether it survives a power cut. */
export type Survives = () => boolean;

/** Disks share the arrays. They are not modified, except `data` while `owned`. */
export interface Inode {
  data: Uint8Array<ArrayBufferLike>;
  owned: boolean;
  /** The content at the last sync. */
  synced: Uint8Array;
  /** Writes and changes of size since the last sync, in order. */
  pending: ({ readonly position: number; readonly bytes: Uint8Array } | { readonly size: number })[];
}

/** A sector, which a disk writes atomically. */
const blockBytes = 512;

/** Zeros take no space, as in files with holes. */
export function usedBytes(inode: Inode): number {
  return usedBytesOf(inode.data);
}

function usedBytesOf(bytes: Uint8Array): number {
  let end = bytes.length;
  while (end > 0 && bytes[end - 1] === 0) end--;
  return end;
}

/** The content after a power cut. Each block of each unsynced write may have reached the disk or not. */
export function survivingData(inode: Inode, survives: Survives): Uint8Array {
  if (inode.pending.length === 0) return inode.synced;
  const { parts, capacity, made } = partsOf(inode);
  const survived = parts.filter(survives);
  if (survived.length === 0) return inode.synced;
  if (parts.length > mostRemembered) return dataOf(inode, survived, capacity);
  const which = survived.reduce((bits, part) => bits | (1 << parts.indexOf(part)), 0);
  const data = made.get(which) ?? dataOf(inode, survived, capacity);
  made.set(which, data);
  return data;
}

function dataOf({ synced }: Inode, survived: Inode["pending"], capacity: number): Uint8Array {
  const data = new Uint8Array(capacity);
  data.set(synced);
  let size = synced.length;
  for (const part of survived) {
    if ("size" in part) {
      data.fill(0, part.size, Math.max(size, part.size));
      size = part.size;
    } else {
      data.set(part.bytes, part.position);
      size = Math.max(size, part.position + part.bytes.length);
    }
  }
  return data.subarray(0, size);
}

interface Parts {
  /** The number of changes that these parts belong to. */
  readonly changes: number;
  readonly parts: Inode["pending"];
  /** The size of the file in bytes if all parts survive. */
  readonly capacity: number;
  /** Contents already computed, by the surviving parts. */
  readonly made: Map<number, Uint8Array>;
}

/** Files with more parts are computed each time. */
const mostRemembered = 10;

/** By the changes of an inode, because thousands of states are derived from the same ones. */
const known = new WeakMap<Inode["pending"], Parts>();

/** The parts that survive independently of each other. */
function partsOf({ pending, synced }: Inode): Parts {
  const before = known.get(pending);
  if (before?.changes === pending.length) return before;
  let capacity = synced.length;
  /** Writing zeros over zeros gives no other state. */
  let untouched = usedBytesOf(synced);
  const parts: Inode["pending"] = [];
  for (const change of pending) {
    if ("size" in change) {
      parts.push(change);
      capacity = Math.max(capacity, change.size);
      continue;
    }
    for (let at = 0; at < change.bytes.length; ) {
      const position = change.position + at;
      const bytes = change.bytes.subarray(at, at + blockBytes - (position % blockBytes));
      at += bytes.length;
      const end = position + bytes.length;
      if (position >= untouched && end <= synced.length && usedBytesOf(bytes) === 0) continue;
      untouched = Math.max(untouched, end);
      capacity = Math.max(capacity, end);
      parts.push({ position, bytes });
    }
  }
  const found = { changes: pending.length, parts, capacity, made: new Map<number, Uint8Array>() };
  known.set(pending, found);
  return found;
}

export function written(data: Uint8Array, bytes: Uint8Array, position: number): Uint8Array {
  const result = position + bytes.length > data.length ? resized(data, position + bytes.length) : data;
  result.set(bytes, position);
  return result;
}

export function resized(data: Uint8Array, size: number): Uint8Array {
  const result = new Uint8Array(size);
  result.set(data.subarray(0, size));
  return result;
}
