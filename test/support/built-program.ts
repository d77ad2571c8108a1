// The program as installed, for the end-to-end tests. vitest calls `setup` once per run, before the first of them.
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { architectureOf, release, root } from "../../packaging/release.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The file that starts the built program. */
    readonly program: string;
  }
}

const builds = join(root, ".cache", "program");
/** All inputs of a build. The lock file stands for the libraries. */
const sources = ["src", "config/recipes", "packaging", "systemd", "package.json", "package-lock.json"];
/** Several, because a run that started before a change of the sources still uses its build. */
const mostKept = 5;

export async function setup(project: TestProject): Promise<void> {
  project.provide("program", join(await builtProgram(), "main.js"));
}

/**
 * The folder with the build of these sources. Builds only if it is missing. Safe to call in several processes at once.
 */
async function builtProgram(): Promise<string> {
  const folder = join(builds, digest());
  if (!existsSync(folder)) {
    const building = `${folder}.${process.pid}`;
    await release(building, architectureOf(undefined));
    try {
      renameSync(building, folder);
    } catch (error) {
      // Another process has finished the same build first.
      rmSync(building, { recursive: true });
      if (!existsSync(folder)) throw error;
    }
  }
  const now = new Date();
  utimesSync(folder, now, now);
  removeOldBuilds();
  return folder;
}

function digest(): string {
  const hash = createHash("sha256");
  for (const source of sources) {
    const path = join(root, source);
    const files = statSync(path).isDirectory()
      ? readdirSync(path, { recursive: true, withFileTypes: true })
          .filter((entry) => entry.isFile())
          .map((entry) => join(entry.parentPath, entry.name))
      : [path];
    for (const file of files.toSorted()) hash.update(`${file}\n`).update(readFileSync(file));
  }
  return hash.digest("hex").slice(0, 16);
}

function removeOldBuilds(): void {
  const usedAt = (name: string) => statSync(join(builds, name), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const kept = readdirSync(builds).filter((name) => !name.includes("."));
  const old = kept.toSorted((a, b) => usedAt(b) - usedAt(a)).slice(mostKept);
  for (const name of old) rmSync(join(builds, name), { recursive: true, force: true });
}
