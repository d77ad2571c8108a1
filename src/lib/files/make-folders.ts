import { existsSync, mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { codeOf } from "../values/error-code.ts";

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
