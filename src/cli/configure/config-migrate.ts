// `tagferry config migrate`: version 1 is the only format of the configuration, so it says whether a file is of it.
import { loadConfig } from "../../config/load.ts";
import type { Console } from "../terminal/console.ts";
import { type ExitStatus, exitStatus } from "../terminal/exit-status.ts";
import { visible } from "../terminal/table.ts";

/** Rejects as `loadConfig` does. The file stays as it is. */
export async function migrateConfig(
  { config: file, json = false }: { readonly config: string; readonly json?: boolean },
  io: Pick<Console, "print" | "environment">,
): Promise<ExitStatus> {
  await loadConfig(file, io.environment);
  io.print(
    json
      ? JSON.stringify({ file, version: 1, migrated: false }, undefined, 2)
      : visible(`${file} has version 1, the present one: nothing to migrate`),
  );
  return exitStatus.done;
}
