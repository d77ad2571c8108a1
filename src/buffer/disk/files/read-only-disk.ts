// A disk that is read and never written, for who does not own it alone.
import type { Disk } from "./disk.ts";

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
