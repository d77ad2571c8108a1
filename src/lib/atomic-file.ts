// Small state files that are either the old or the new one, whatever happens in between.
import { randomBytes } from "node:crypto";
import { chownSync, statSync } from "node:fs";
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
    // Calls with an open file do not say which.
    throw error instanceof Error && !("path" in error) ? Object.assign(error, { path }) : error;
  }
  // Without this the rename itself may be undone by a power cut (seen on ext4 and xfs).
  await syncName(path);
}

/** An operator may be root where the agent is not: gives `path` to the owner of `model`, so that the agent can write it. */
export function ownAs(model: string, path: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(model);
  chownSync(path, uid, gid);
}

/** Resolves once the name of a file that was made or renamed survives a power cut. */
export async function syncName(path: string): Promise<void> {
  await using folder = await open(dirname(path), "r");
  await folder.sync();
}
