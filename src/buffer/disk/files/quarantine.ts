// Keeps copies of damaged bytes for inspection, within bounds. A failure to copy them has no consequence.
import { attempt } from "../../../lib/attempt.ts";
import { type Disk, withFile, writeFully } from "./disk.ts";

const folderName = "quarantine";
const maxFiles = 64;

/** Keeps a copy of damaged bytes. Never throws: it is a courtesy, not a promise. */
export function keepAside(disk: Disk, folder: string, name: string, bytes: Uint8Array): void {
  // A disk that takes nothing more must not make things worse.
  attempt(() => {
    const path = `${folder}/${folderName}`;
    disk.makeFolder(path);
    const there = disk.list(path);
    if (there.length >= maxFiles || there.includes(name) || bytes.length === 0) return;
    withFile(disk, `${path}/${name}`, "create", (file) => writeFully(file, bytes, 0));
  });
}

/** Moves a file that is not of this buffer out of the way. Throws what the disk throws. */
export function moveAside(disk: Disk, folder: string, name: string): void {
  const target = `${folder}/${folderName}`;
  disk.makeFolder(target);
  const there = new Set(disk.list(target));
  let free = name;
  for (let i = 1; there.has(free); i++) free = `${name}.${i}`;
  disk.rename(`${folder}/${name}`, `${target}/${free}`);
  // Here first: the next sync of the folder it came from must not leave it without any name.
  disk.syncFolder(target);
}
