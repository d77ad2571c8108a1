// Atomic replacement of small state files: after a crash a file has either its old or its new content.
import { randomBytes } from "node:crypto";
import { chownSync, closeSync, fsyncSync, openSync, statSync } from "node:fs";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";

/** Replaces `path` by `data`, by default with mode 0600. Resolves once content and name survive a power cut. */
export async function writeAtomically(
  path: string,
  data: string | Uint8Array | AsyncIterable<string>,
  like?: FileModel,
): Promise<void> {
  const temporary = `${path}.${randomBytes(4).toString("hex")}.tmp`;
  try {
    {
      await using file = await open(temporary, "wx", 0o600);
      if (like) await takeAfter(file, like);
      await file.writeFile(data);
      await file.datasync();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {});
    // Errors of calls on an open descriptor contain no path.
    throw error instanceof Error && !("path" in error) ? Object.assign(error, { path }) : error;
  }
  // Without this, a power cut may undo the rename (seen on ext4 and xfs).
  await syncName(path);
}

/**
 * Creates `path`. Resolves once content and name survive a power cut. Rejects with `EEXIST` if it is there already, and
 * then leaves it alone; after any other failure there is no file. `prepare` may set owner and mode.
 */
export async function writeNewFile(
  path: string,
  data: string | AsyncIterable<string>,
  mode: number,
  prepare: (file: FileHandle) => Promise<void> = async () => {},
): Promise<void> {
  await using file = await open(path, "wx", mode);
  try {
    await prepare(file);
    await file.writeFile(data);
    await file.datasync();
    await syncName(path);
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  }
}

/** Permissions and owner for a file. Without an owner: the user of this process. */
export interface FileModel {
  readonly mode: number;
  readonly uid?: number;
  readonly gid?: number;
}

async function takeAfter(file: FileHandle, { mode, uid, gid }: FileModel): Promise<void> {
  const own = await file.stat();
  if ((uid ?? own.uid) !== own.uid || (gid ?? own.gid) !== own.gid) await file.chown(uid ?? own.uid, gid ?? own.gid);
  // The umask does not apply to a change of the mode.
  await file.chmod(mode & 0o7777);
}

/** Gives `path` the owner of `model`, so that the agent can write it even if root created it. */
export function ownAs(model: string, path: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(model);
  chownSync(path, uid, gid);
}

/** Resolves once the name of a created or renamed file survives a power cut, if the platform can sync folders. */
export async function syncName(path: string, platform?: NodeJS.Platform): Promise<void> {
  if (!canSyncFolders(platform)) return;
  await using folder = await open(dirname(path), "r");
  await folder.sync();
}

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
