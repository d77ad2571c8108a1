// What the log needs of a file system, narrow enough that tests can stand in a disk that fails, lies or loses power.
// All calls are synchronous and throw `DiskError`s, as the one thread that makes them has nothing else to do.

import { attempt } from "../../../lib/attempt.ts";

export interface Disk {
  /** Makes the folder and its parents, mode 0700, and makes their names survive a power cut. */
  makeFolder(path: string): void;
  /** Names in the folder. */
  list(folder: string): string[];
  /** `create`: fails where it exists; mode 0600. `write` and `read`: fail where it does not. */
  open(path: string, mode: "create" | "write" | "read"): DiskFile;
  remove(path: string): void;
  rename(from: string, to: string): void;
  /** Names made, changed and removed in the folder survive a power cut once this returned. */
  syncFolder(folder: string): void;
  /** Bytes that may still be written to the volume. */
  free(folder: string): number;
}

export interface DiskFile {
  /** Writes from `position` on and says how many bytes it took: may be fewer than given. */
  write(bytes: Uint8Array, position: number): number;
  /** Fills `into` from `position` on, as far as the file goes, and says how many bytes came. */
  read(into: Uint8Array, position: number): number;
  setSize(bytes: number): void;
  size(): number;
  /** What was written survives a power cut once this returned. Having thrown, it says nothing about earlier writes, ever. */
  sync(): void;
  close(): void;
}

/** Errors of the file system, as Node gives them. */
export interface DiskError extends Error {
  readonly code?: string;
}

/** The `ENOSPC` of an error; empty where it has none. */
export function diskErrorCode(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
}

/** What `action` gives; undefined where the file is not there. Throws what else the disk throws. */
export function ifThere<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch (error) {
    if (diskErrorCode(error) !== "ENOENT") throw error;
    return undefined;
  }
}

/** Writes all of `bytes`: a single write may take only a part of them without an error. */
export function writeFully(file: DiskFile, bytes: Uint8Array, position: number): void {
  let done = 0;
  while (done < bytes.length) {
    const count = file.write(done === 0 ? bytes : bytes.subarray(done), position + done);
    if (count <= 0) throw Object.assign(new Error("the disk takes no more bytes"), { code: "ENOSPC" });
    done += count;
  }
}

/** Reads until `into` is full or the file ends. Says how many bytes came. */
export function readFully(file: DiskFile, into: Uint8Array, position: number): number {
  let done = 0;
  while (done < into.length) {
    const count = file.read(done === 0 ? into : into.subarray(done), position + done);
    if (count <= 0) break;
    done += count;
  }
  return done;
}

/** Opens the file for the time of `use`. */
export function withFile<T>(
  disk: Disk,
  path: string,
  mode: "create" | "write" | "read",
  use: (file: DiskFile) => T,
): T {
  const file = disk.open(path, mode);
  try {
    return use(file);
  } finally {
    file.close();
  }
}

/** The whole file. */
export function readFile(disk: Disk, path: string): Uint8Array {
  return withFile(disk, path, "read", (file) => readPart(file, 0, file.size()));
}

/** `length` bytes, or as many as the file has. */
export function readPart(file: DiskFile, from: number, length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  return bytes.subarray(0, readFully(file, bytes, from));
}

/** Replaces or makes a small file so that it is the old or the new one after a power cut; the new one once the folder is synced. */
export function replaceFile(disk: Disk, folder: string, name: string, bytes: Uint8Array): void {
  const temporary = `${folder}/${name}.tmp`;
  attempt(() => disk.remove(temporary));
  withFile(disk, temporary, "create", (file) => {
    writeFully(file, bytes, 0);
    file.sync();
  });
  disk.rename(temporary, `${folder}/${name}`);
}

/** Whether the disk refused for want of room. */
export function isFull(error: unknown): boolean {
  return ["ENOSPC", "EDQUOT"].includes(diskErrorCode(error));
}

/** Errors that pass, such as one lost request to a device, are not taken for damage. */
export function withRetries<T>(action: () => T): T {
  for (let left = 2; ; left--)
    try {
      return action();
    } catch (error) {
      if (left === 0 || ["", "ENOENT"].includes(diskErrorCode(error))) throw error;
    }
}

/** A line for the log of the agent. */
export interface Note {
  readonly level: "info" | "warn" | "error";
  readonly fields: Readonly<Record<string, string | number | undefined>>;
  readonly message: string;
}
export type Notes = (level: Note["level"], fields: Note["fields"], message: string) => void;

/** All that would change the disk throws `EROFS`, as it does on a volume that is mounted so. */
export function readOnlyDisk(disk: Disk): Disk {
  const refuse = (path: string) => {
    throw Object.assign(new Error(`EROFS: read-only file system, '${path}'`), { code: "EROFS" });
  };
  return {
    makeFolder: refuse,
    list: (folder) => disk.list(folder),
    open: (path, mode) => (mode === "read" ? disk.open(path, mode) : refuse(path)),
    remove: refuse,
    rename: refuse,
    // Nothing was changed that would have to be made safe.
    syncFolder() {},
    free: (folder) => disk.free(folder),
  };
}
