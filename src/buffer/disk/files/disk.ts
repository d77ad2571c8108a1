// The file system calls that the log needs. Tests replace them with a disk that fails, reports false syncs or loses
// power. All calls are synchronous, since the log thread has no other work, and throw errors with a `code`.

import {
  closeSync,
  constants,
  fdatasyncSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  statfsSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { syncFolder } from "../../../lib/files/atomic-file.ts";
import { makeFolders } from "../../../lib/files/paths.ts";
import { attempt } from "../../../lib/flow/attempt.ts";

export interface Disk {
  /** Creates the folder and its parents with mode 0700. Their names survive a power cut. */
  makeFolder(path: string): void;
  list(folder: string): string[];
  /** `create` fails if the file exists, and uses mode 0600. `write` and `read` fail if it does not exist. */
  open(path: string, mode: "create" | "write" | "read"): DiskFile;
  remove(path: string): void;
  rename(from: string, to: string): void;
  /** Once this returns, names created, renamed and removed in the folder survive a power cut. */
  syncFolder(folder: string): void;
  free(folder: string): number;
}

export interface DiskFile {
  /** Writes at `position` and returns the number of bytes written, which may be less than given. */
  write(bytes: Uint8Array, position: number): number;
  /** Reads from `position` into `into` up to the end of the file. Returns the number of bytes read. */
  read(into: Uint8Array, position: number): number;
  setSize(bytes: number): void;
  size(): number;
  /** Once this returns, earlier writes survive a power cut. If it throws, no later success covers these writes. */
  sync(): void;
  close(): void;
}

/** The error's code, such as `ENOSPC`; empty if it has none. */
export function diskErrorCode(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
}

/** The result of `action`, or undefined if the file does not exist. Rethrows other errors. */
export function ifThere<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch (error) {
    if (diskErrorCode(error) !== "ENOENT") throw error;
    return undefined;
  }
}

/** Writes all of `bytes`. A single write may write a part only, without an error. */
export function writeFully(file: DiskFile, bytes: Uint8Array, position: number): void {
  let done = 0;
  while (done < bytes.length) {
    const count = file.write(done === 0 ? bytes : bytes.subarray(done), position + done);
    if (count <= 0) throw Object.assign(new Error("the disk takes no more bytes"), { code: "ENOSPC" });
    done += count;
  }
}

/** Reads until `into` is full or the file ends. Returns the number of bytes read. */
export function readFully(file: DiskFile, into: Uint8Array, position: number): number {
  let done = 0;
  while (done < into.length) {
    const count = file.read(done === 0 ? into : into.subarray(done), position + done);
    if (count <= 0) break;
    done += count;
  }
  return done;
}

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

export function readFile(disk: Disk, path: string): Uint8Array {
  return withFile(disk, path, "read", (file) => readPart(file, 0, file.size()));
}

/** Reads `length` bytes, or fewer if the file ends before. */
export function readPart(file: DiskFile, from: number, length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  return bytes.subarray(0, readFully(file, bytes, from));
}

/** Writes a small file atomically. The new content survives a power cut only after `syncFolder`. */
export function replaceFile(disk: Disk, folder: string, name: string, bytes: Uint8Array): void {
  const temporary = `${folder}/${name}.tmp`;
  attempt(() => disk.remove(temporary));
  withFile(disk, temporary, "create", (file) => {
    writeFully(file, bytes, 0);
    file.sync();
  });
  disk.rename(temporary, `${folder}/${name}`);
}

/** Whether a write failed because the volume or a quota is full. */
export function isFull(error: unknown): boolean {
  return ["ENOSPC", "EDQUOT"].includes(diskErrorCode(error));
}

/** Tries up to three times, so that a transient I/O error does not count as damage. */
export function withRetries<T>(action: () => T): T {
  for (let left = 2; ; left--)
    try {
      return action();
    } catch (error) {
      if (left === 0 || ["", "ENOENT"].includes(diskErrorCode(error))) throw error;
    }
}

export interface Note {
  readonly level: "info" | "warn" | "error";
  readonly fields: Readonly<Record<string, string | number | undefined>>;
  readonly message: string;
}
export type Notes = (level: Note["level"], fields: Note["fields"], message: string) => void;

/** Wraps a disk so that every change throws `EROFS`, as on a volume mounted read-only. */
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
    // Nothing was written, so there is nothing to sync.
    syncFolder() {},
    free: (folder) => disk.free(folder),
  };
}

// The real disk, on Node's synchronous file calls.

// Symbolic links are not followed (ELOOP): they could lead to a file of another user.
const flags = {
  create: constants.O_RDWR | constants.O_CREAT | constants.O_EXCL,
  write: constants.O_RDWR | constants.O_NOFOLLOW,
  read: constants.O_RDONLY | constants.O_NOFOLLOW,
};

export function nodeDisk(sync: (folder: string) => void = syncFolder): Disk {
  return {
    makeFolder(path) {
      const first = makeFolders(path);
      if (first === undefined) return;
      // The name of each new folder is durable only after its parent folder is synced.
      for (let made = path; ; made = dirname(made)) {
        sync(dirname(made));
        if (made === first || made === dirname(made)) break;
      }
    },
    list: (folder) => readdirSync(folder),
    open(path, mode) {
      return nodeFile(openSync(path, flags[mode], 0o600));
    },
    remove: (path) => unlinkSync(path),
    rename: (from, to) => renameSync(from, to),
    syncFolder: sync,
    free(folder) {
      const volume = statfsSync(folder);
      return volume.bavail * volume.bsize;
    },
  };
}

function nodeFile(descriptor: number): DiskFile {
  return {
    write: (bytes, position) => writeSync(descriptor, bytes, 0, bytes.length, position),
    read: (into, position) => readSync(descriptor, into, 0, into.length, position),
    setSize: (bytes) => ftruncateSync(descriptor, bytes),
    size: () => fstatSync(descriptor).size,
    sync: () => fdatasyncSync(descriptor),
    close: () => closeSync(descriptor),
  };
}

// Copies of damaged bytes for inspection, at most `maxFiles`.

const folderName = "quarantine";
const maxFiles = 64;

/** Copies damaged bytes if possible. Never throws. */
export function copyToQuarantine(disk: Disk, folder: string, name: string, bytes: Uint8Array): void {
  attempt(() => {
    const path = `${folder}/${folderName}`;
    disk.makeFolder(path);
    const there = disk.list(path);
    if (there.length >= maxFiles || there.includes(name) || bytes.length === 0) return;
    withFile(disk, `${path}/${name}`, "create", (file) => writeFully(file, bytes, 0));
  });
}

/** Moves a foreign file into the quarantine folder. Throws the disk's error. */
export function moveToQuarantine(disk: Disk, folder: string, name: string): void {
  const target = `${folder}/${folderName}`;
  disk.makeFolder(target);
  const there = new Set(disk.list(target));
  let free = name;
  for (let i = 1; there.has(free); i++) free = `${name}.${i}`;
  disk.rename(`${folder}/${name}`, `${target}/${free}`);
  // Sync the target first: if the source folder is synced first, a power cut could lose both names.
  disk.syncFolder(target);
}
