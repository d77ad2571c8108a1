// Paths: how they are written, what is there, and why not.

import { existsSync, mkdirSync, statSync } from "node:fs";
import { access } from "node:fs/promises";
import { dirname, sep } from "node:path";
import { codeOf, reasonOf } from "../../core/errors.ts";

/** A path as configurations, documents and imports write it: with slashes on every platform. */
export function withSlashes(path: string): string {
  return path.split(sep).join("/");
}

/** False also if the path cannot be looked up. */
export async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}

/**
 * Creates a folder, and those above it, for the user alone. Returns the topmost folder created. `recursive` of Node
 * reports ENOENT on a read-only file system, and never returns where the system does, as below /proc.
 */
export function makeFolders(path: string): string | undefined {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return undefined;
  const parent = dirname(path);
  const first = existsSync(parent) ? undefined : makeFolders(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Windows reports ENOENT if the parent is a file, as if there were none.
    if (codeOf(error) !== "ENOENT" || !statSync(parent, { throwIfNoEntry: false })?.isFile()) throw error;
    const message = `ENOTDIR: not a directory, mkdir '${path}'`;
    throw Object.assign(new Error(message, { cause: error }), { code: "ENOTDIR", syscall: "mkdir", path });
  }
  return first ?? path;
}

export function fileProblem(error: unknown): string {
  const code = codeOf(error);
  switch (code) {
    case "ENOENT":
      return "there is no such file";
    case "EACCES":
    case "EPERM":
      return "no permission";
    case "EISDIR":
      return "it is a folder";
    case "ENOTDIR":
      return "a part of its path is not a folder";
    default:
      return reasonOf(error);
  }
}

/** Why the new file `path` could not be written. */
export function creationProblem(error: unknown, path: string): string {
  const code = codeOf(error);
  if (code === "ENOENT") return `there is no folder ${dirname(path)}`;
  return code === "EEXIST" ? "it is there already" : fileProblem(error);
}
