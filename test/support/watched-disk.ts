// A disk that announces each call before it is made.
import type { Disk, DiskFile } from "../../src/buffer/disk/files/disk.ts";
import type { DiskCall } from "./memory-disk.ts";

/** `before` may throw; the call is then not made. */
export function watched(disk: Disk, before: (call: DiskCall) => void): Disk {
  const announced = <T>(name: DiskCall, call: () => T): T => {
    before(name);
    return call();
  };
  const watchedFile = (file: DiskFile): DiskFile => ({
    write: (bytes, position) => announced("write", () => file.write(bytes, position)),
    read: (into, position) => announced("read", () => file.read(into, position)),
    setSize: (bytes) => announced("setSize", () => file.setSize(bytes)),
    size: () => announced("size", () => file.size()),
    sync: () => announced("sync", () => file.sync()),
    close: () => announced("close", () => file.close()),
  });
  return {
    makeFolder: (path) => announced("makeFolder", () => disk.makeFolder(path)),
    list: (folder) => announced("list", () => disk.list(folder)),
    open: (path, mode) => announced("open", () => watchedFile(disk.open(path, mode))),
    remove: (path) => announced("remove", () => disk.remove(path)),
    rename: (from, to) => announced("rename", () => disk.rename(from, to)),
    syncFolder: (folder) => announced("syncFolder", () => disk.syncFolder(folder)),
    free: (folder) => announced("free", () => disk.free(folder)),
  };
}
