// Makes the names of created, renamed and removed files durable.
import { closeSync, fsyncSync, openSync } from "node:fs";

/** Windows refuses to sync a folder (EPERM). NTFS keeps a journal of names, of which a power cut may lose the last ones. */
export function canSyncFolders(platform: NodeJS.Platform = process.platform): boolean {
  return platform !== "win32";
}

/** Returns once the names in `folder` survive a power cut, if the platform can sync folders. */
export function syncFolder(folder: string, platform?: NodeJS.Platform): void {
  if (!canSyncFolders(platform)) return;
  const descriptor = openSync(folder, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
