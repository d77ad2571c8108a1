// A disk that announces each call before it is made.
import type { Disk, DiskFile } from "../../src/buffer/disk/files/disk.ts";
import type { DiskCall } from "./memory-disk.ts";

/** `before` may throw; the call is then not made. */
export function watched(disk: Disk, before: (call: DiskCall) => void): Disk {
  const told = <T>(name: DiskCall, call: () => T): T => {
    before(name);
    return call();
  };
  const watchedFile = (file: DiskFile): DiskFile => ({
    write: (bytes, position) => told("write", () => file.write(bytes, position)),
    read: (into, position) => told("read", () => file.read(into, position)),
    setSize: (bytes) => told("setSize", () => file.setSize(bytes)),
    size: () => told("size", () => file.size()),
    sync: () => told("sync", () => file.sync()),
    close: () => told("close", () => file.close()),
  });
  return {
    makeFolder: (path) => told("makeFolder", () => disk.makeFolder(path)),
    list: (folder) => told("list", () => disk.list(folder)),
    open: (path, mode) => told("open", () => watchedFile(disk.open(path, mode))),
    remove: (path) => told("remove", () => disk.remove(path)),
    rename: (from, to) => told("rename", () => disk.rename(from, to)),
    syncFolder: (folder) => told("syncFolder", () => disk.syncFolder(folder)),
    free: (folder) => told("free", () => disk.free(folder)),
  };
}
