// A disk in memory for tests of storage: it tracks what is synced, can lose power, and can be made to fail or lie on
// any call.
import { dirname } from "node:path";
import { crc32 } from "node:zlib";
import type { Disk, DiskFile } from "../../src/buffer/disk/files/disk.ts";
import { type Inode, resized, type Survives, survivingData, usedBytes, written } from "./memory-inode.ts";

export type DiskCall =
  | "makeFolder"
  | "list"
  | "open"
  | "remove"
  | "rename"
  | "syncFolder"
  | "free"
  | "write"
  | "read"
  | "setSize"
  | "size"
  | "sync"
  | "close";

/** Called before each call. Throw to make it fail; "ignore" does nothing and reports success; "short" writes half. */
export type Fault = (call: DiskCall, path: string) => "ignore" | "short" | undefined;

export interface MemoryDiskOptions {
  /** The size of the volume in bytes. */
  readonly capacity?: number;
}

export class MemoryDisk implements Disk {
  readonly #capacity: number;
  readonly #folders = new Set<string>(["/"]);
  #names = new Map<string, Inode>();
  #syncedNames = new Map<string, Inode>();
  fault: Fault = () => undefined;
  /** The number of calls so far. */
  calls = 0;
  /** Paths of the files that are open, once per descriptor. */
  readonly openFiles: string[] = [];

  constructor(options: MemoryDiskOptions = {}) {
    this.#capacity = options.capacity ?? Number.POSITIVE_INFINITY;
  }

  /** A copy as it may be found after a power failure at this moment. The original is unchanged. */
  afterPowerCut(survives: Survives): MemoryDisk {
    const after = new MemoryDisk({ capacity: this.#capacity });
    for (const folder of this.#folders) after.#folders.add(folder);
    const copies = new Map<Inode, Inode>();
    const names = new Map(this.#syncedNames);
    for (const path of new Set([...this.#names.keys(), ...this.#syncedNames.keys()])) {
      if (this.#names.get(path) === this.#syncedNames.get(path) || !survives()) continue;
      const inode = this.#names.get(path);
      if (inode) names.set(path, inode);
      else names.delete(path);
    }
    for (const [path, inode] of names) {
      let copy = copies.get(inode);
      if (!copy) {
        const data = survivingData(inode, survives);
        copy = { data, owned: false, synced: data, pending: [] };
        copies.set(inode, copy);
      }
      after.#names.set(path, copy);
      after.#syncedNames.set(path, copy);
    }
    return after;
  }

  /** A copy after only the process died: all writes are there. */
  afterKill(): MemoryDisk {
    return this.afterPowerCut(() => true);
  }

  makeFolder(path: string): void {
    this.#check("makeFolder", path);
    for (let folder = path; folder !== "/"; folder = dirname(folder)) this.#folders.add(folder);
  }

  list(folder: string): string[] {
    this.#check("list", folder);
    if (!this.#folders.has(folder)) throw failure("ENOENT", folder);
    return [...this.#names.keys()]
      .filter((path) => dirname(path) === folder)
      .map((path) => path.slice(folder.length + 1));
  }

  open(path: string, mode: "create" | "write" | "read"): DiskFile {
    const ignored = this.#check("open", path) === "ignore";
    const there = this.#names.get(path);
    if (mode === "create") {
      if (there) throw failure("EEXIST", path);
      if (!this.#folders.has(dirname(path))) throw failure("ENOENT", path);
      const inode = { data: new Uint8Array(), owned: false, synced: new Uint8Array(), pending: [] };
      if (!ignored) this.#names.set(path, inode);
      return this.#file(path, inode);
    }
    if (!there) throw failure("ENOENT", path);
    return this.#file(path, there);
  }

  remove(path: string): void {
    if (this.#check("remove", path) === "ignore") return;
    if (!this.#names.delete(path)) throw failure("ENOENT", path);
  }

  rename(from: string, to: string): void {
    if (this.#check("rename", from) === "ignore") return;
    const inode = this.#names.get(from);
    if (!inode) throw failure("ENOENT", from);
    this.#names.delete(from);
    this.#names.set(to, inode);
  }

  syncFolder(folder: string): void {
    if (this.#check("syncFolder", folder) === "ignore") return;
    for (const path of new Set([...this.#names.keys(), ...this.#syncedNames.keys()])) {
      if (dirname(path) !== folder) continue;
      const inode = this.#names.get(path);
      if (inode) this.#syncedNames.set(path, inode);
      else this.#syncedNames.delete(path);
    }
  }

  free(folder: string): number {
    this.#check("free", folder);
    return this.#capacity - this.#used();
  }

  /** Changes stored bytes, as damage does. */
  change(path: string, change: (bytes: Uint8Array) => Uint8Array): void {
    const inode = this.#names.get(path);
    if (!inode) throw failure("ENOENT", path);
    inode.data = change(inode.data.slice());
    inode.owned = false;
    inode.synced = inode.data;
    inode.pending = [];
  }

  content(path: string): Uint8Array {
    return this.#names.get(path)?.data.slice() ?? new Uint8Array();
  }

  /**
   * The same for disks with equal files, and different for others. `known`: checksums of a disk that was not written
   * since.
   */
  fingerprint(known: WeakMap<Uint8Array, number>): string {
    const files = [...this.#names].map(([path, { data }]) => {
      const checksum = known.get(data) ?? crc32(data);
      known.set(data, checksum);
      return `${path} ${data.length} ${checksum}`;
    });
    return files.toSorted().join("\n");
  }

  #file(path: string, inode: Inode): DiskFile {
    this.openFiles.push(path);
    return {
      write: (bytes, position) => {
        const fault = this.#check("write", path);
        if (fault === "ignore") return bytes.length;
        const room = Number.isFinite(this.#capacity)
          ? this.#capacity - this.#used() + Math.max(0, usedBytes(inode) - position)
          : bytes.length;
        const count = Math.min(fault === "short" ? Math.ceil(bytes.length / 2) : bytes.length, room);
        if (count <= 0) throw failure("ENOSPC", path);
        const part = bytes.slice(0, count);
        inode.data = written(inode.owned ? inode.data : inode.data.slice(), part, position);
        inode.owned = true;
        inode.pending.push({ position, bytes: part });
        return count;
      },
      read: (into, position) => {
        this.#check("read", path);
        const part = inode.data.subarray(position, position + into.length);
        into.set(part);
        return part.length;
      },
      setSize: (size) => {
        if (this.#check("setSize", path) === "ignore") return;
        inode.data = resized(inode.data, size);
        inode.owned = true;
        inode.pending.push({ size });
      },
      size: () => {
        this.#check("size", path);
        return inode.data.length;
      },
      sync: () => {
        if (this.#check("sync", path) === "ignore") return;
        inode.synced = inode.data;
        inode.owned = false;
        inode.pending = [];
      },
      close: () => {
        this.#check("close", path);
        this.openFiles.splice(this.openFiles.indexOf(path), 1);
      },
    };
  }

  #check(call: DiskCall, path: string): "ignore" | "short" | undefined {
    this.calls++;
    return this.fault(call, path);
  }

  #used(): number {
    let bytes = 0;
    for (const inode of this.#names.values()) bytes += usedBytes(inode);
    return bytes;
  }
}

/** An error as Node's file functions throw it. */
export function failure(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${path}`), { code });
}
