// `tagferry config migrate`: brings a configuration of an older format to the present one, and shows what that changes.
import { chown, constants, copyFile, open, rename, rm, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { loadConfig } from "../../config/load.ts";
import { currentVersion, migrate } from "../../config/migrate.ts";
import { fileProblem } from "../../config/read-file.ts";
import { AgentError } from "../../core/errors.ts";
import type { Console } from "../terminal/console.ts";
import { type ExitStatus, exitStatus } from "../terminal/exit-status.ts";
import { lineDifference } from "../terminal/line-difference.ts";
import { visible } from "../terminal/table.ts";

export interface MigrateOptions {
  readonly config: string;
  /** Only shows it. */
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

/** Resolves with `config` where the version is none that can be migrated. Rejects as `loadConfig` does where it is no YAML. */
export async function migrateConfig(options: MigrateOptions, io: Console): Promise<ExitStatus> {
  const { config: file, dryRun = false, json = false } = options;
  const path = resolve(io.environment.cwd, file);
  const text = new TextDecoder().decode(
    await io.environment.readFile(path).catch((error: unknown) => {
      throw new AgentError("CONFIG_INVALID", `${file} cannot be read: ${fileProblem(error)}`, { cause: error });
    }),
  );
  const migrated = migrate(text);
  const say = (lines: readonly string[], result: object) => {
    if (json) io.print(JSON.stringify({ file, version: currentVersion, ...result }, undefined, 2));
    else for (const line of lines) io.print(visible(line));
  };
  switch (migrated.kind) {
    case "current":
      say([`${file} has version ${currentVersion}, the present one: nothing to migrate`], { migrated: false });
      return exitStatus.done;
    case "unreadable":
      await loadConfig(file, io.environment);
      throw new AgentError("CONFIG_INVALID", `${file} cannot be understood`);
    case "unknown":
      io.complain(
        visible(
          `tagferry: ${file} has version ${migrated.version}, of which this program knows nothing; a newer one may`,
        ),
      );
      return exitStatus.config;
    case "migrated": {
      const { from, did } = migrated;
      const difference = lineDifference(text, migrated.text);
      const saved = dryRun ? undefined : await replace(path, migrated.text);
      say(
        [
          `${file}: from ${from === undefined ? "no version" : `version ${from}`} to version ${currentVersion}`,
          ...did.map((what) => `  ${what}`),
          ...difference,
          saved === undefined ? "nothing was written" : `written; the file of before is ${saved}`,
        ],
        { migrated: !dryRun, from: from ?? null, did, difference, saved: saved ?? null },
      );
      return exitStatus.done;
    }
  }
}

/** The file of before is kept beside it; nothing that is there is written over. Resolves with its name. */
async function replace(path: string, text: string): Promise<string> {
  const { mode, uid, gid } = await stat(path);
  const saved = await keep(path);
  const temporary = `${path}.new`;
  try {
    {
      await using file = await open(temporary, "wx", mode & 0o777);
      await file.writeFile(text);
      await file.datasync();
    }
    await chown(temporary, uid, gid).catch(() => {});
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  return saved;
}

async function keep(path: string): Promise<string> {
  for (let n = 1; ; n++) {
    const saved = n === 1 ? `${path}.bak` : `${path}.bak${n}`;
    try {
      await copyFile(path, saved, constants.COPYFILE_EXCL);
      return saved;
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST") || n >= 100) throw error;
    }
  }
}
