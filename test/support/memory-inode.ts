// A file of the disk in memory: what is in it, what of that is synced, and what a power cut may leave of it.
import type { Survives } from "./memory-disk.ts";

/** Arrays are shared between disks and never changed, but for `data` while `owned`. */
export interface Inode {
  data: Uint8Array<ArrayBufferLike>;
  owned: boolean;
  /** As of the last sync. */
  synced: Uint8Array;
  /** Writes and changes of size since, in order. */
  pending: ({ readonly position: number; readonly bytes: Uint8Array } | { readonly size: number })[];
}

/** A sector: what a disk writes whole or not at all. */
const blockBytes = 512;

/** A file of zeros takes no room, as files with holes do. */
export function usedBytes(inode: Inode): number {
  let end = inode.data.length;
  while (end > 0 && inode.data[end - 1] === 0) end--;
  return end;
}

/** Each unsynced block of each write may have reached the disk or not. */
export function survivingData(inode: Inode, survives: Survives): Uint8Array {
  if (inode.pending.length === 0) return inode.synced;
  let capacity = inode.synced.length;
  for (const change of inode.pending)
    capacity = Math.max(capacity, "size" in change ? change.size : change.position + change.bytes.length);
  const data = new Uint8Array(capacity);
  data.set(inode.synced);
  let size = inode.synced.length;
  /** Zeros written where there are zeros make no other state. */
  let untouched = inode.synced.findLastIndex((byte) => byte !== 0) + 1;
  for (const change of inode.pending) {
    if ("size" in change) {
      if (!survives()) continue;
      data.fill(0, change.size, Math.max(size, change.size));
      size = change.size;
      continue;
    }
    for (let at = 0; at < change.bytes.length; ) {
      const end = Math.min(change.bytes.length, at + blockBytes - ((change.position + at) % blockBytes));
      const zero =
        change.position + at >= untouched &&
        change.position + end <= inode.synced.length &&
        change.bytes.subarray(at, end).every((byte) => byte === 0);
      if (!zero) untouched = Math.max(untouched, change.position + end);
      if (!zero && survives()) {
        data.set(change.bytes.subarray(at, end), change.position + at);
        size = Math.max(size, change.position + end);
      }
      at = end;
    }
  }
  return data.subarray(0, size);
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
