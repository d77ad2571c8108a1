// Writes what a person has seen as a difference, and takes it up. What the agent refuses is taken back.
import { rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { ownAs, writeAtomically, writeNewFile } from "../../lib/files/atomic-file.ts";
import { textHash, textOf } from "./config-files.ts";
import type { Proposal } from "./proposal.ts";

/** As the running agent reports a reload. */
export interface ReloadResult {
  readonly ok: boolean;
  readonly reason?: string;
}

export type WriteResult =
  /** The file is not the one that the difference was made against. Nothing was written. */
  | { readonly outcome: "stale" }
  | { readonly outcome: "written"; readonly reload: ReloadResult }
  /** The agent refused the configuration. The file is as it was before. */
  | { readonly outcome: "refused"; readonly reload: ReloadResult };

/** Everyone may read a new file: passwords are in files of their own. */
const newFileMode = 0o644;

/**
 * Call it for one proposal at a time. Rejects as `node:fs` does; the file is then as it was. After a crash the file has
 * its old or its new content, and the new one was checked.
 */
export async function write(proposal: Proposal, reload: () => Promise<ReloadResult>): Promise<WriteResult> {
  const { file, before, after, secret } = proposal;
  const folder = dirname(file);
  if (textHash(await textOf(file)) !== proposal.base) return { outcome: "stale" };
  const mode = before === undefined ? { mode: newFileMode } : await stat(file);
  try {
    // A file that is there already belongs to something else.
    if (secret) await writeNewFile(secret.file, `${secret.value}\n`, 0o600, async () => ownAs(folder, secret.file));
    await writeAtomically(file, after, mode);
    if (before === undefined) ownAs(folder, file);
    const result = await reload();
    if (result.ok) return { outcome: "written", reload: result };
    await takeBack(proposal, mode);
    // The status shows the failed reload until another one succeeds.
    await reload();
    return { outcome: "refused", reload: result };
  } catch (error) {
    await takeBack(proposal, mode);
    throw error;
  }
}

/** Leaves the file alone if another program has changed it since. */
async function takeBack({ file, before, result, secret }: Proposal, like: { readonly mode: number }): Promise<void> {
  if (textHash(await textOf(file)) === result) {
    if (before === undefined) await rm(file);
    else await writeAtomically(file, before, like);
  }
  if (secret && (await textOf(secret.file)) === `${secret.value}\n`) await rm(secret.file);
}
