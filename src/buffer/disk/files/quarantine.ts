// Keeps copies of damaged bytes for inspection, at most `maxFiles`.
import { attempt } from "../../../lib/flow/attempt.ts";
import { type Disk, withFile, writeFully } from "./disk.ts";

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
