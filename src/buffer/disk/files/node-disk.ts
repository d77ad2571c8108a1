// The real disk, on Node's synchronous file calls.
import {
  closeSync,
  constants,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
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
import { makeFolders } from "../../../lib/files/make-folders.ts";
import type { Disk, DiskFile } from "./disk.ts";

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

function syncFolder(folder: string): void {
  const descriptor = openSync(folder, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
