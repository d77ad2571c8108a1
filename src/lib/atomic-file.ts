// Small state files that are either the old or the new one, whatever happens in between.
import { randomBytes } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";

/** Replaces `path` by `data`, mode 0600. Resolves once the new content and its name survive a power cut. */
export async function writeAtomically(path: string, data: string | Uint8Array): Promise<void> {
  const temporary = `${path}.${randomBytes(4).toString("hex")}.tmp`;
  try {
    {
      await using file = await open(temporary, "wx", 0o600);
      await file.writeFile(data);
      await file.datasync();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {});
    throw error;
  }
  // Without this the rename itself may be undone by a power cut (seen on ext4 and xfs).
  await syncName(path);
}

/** Resolves once the name of a file that was made or renamed survives a power cut. */
export async function syncName(path: string): Promise<void> {
  await using folder = await open(dirname(path), "r");
  await folder.sync();
}
