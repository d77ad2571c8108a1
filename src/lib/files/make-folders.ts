import { existsSync, mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Creates a folder, and those above it, for the user alone. Returns the topmost folder created. `recursive` of Node
 * reports ENOENT on a read-only file system, and never returns where the system does, as below /proc.
 */
export function makeFolders(path: string): string | undefined {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return undefined;
  const parent = dirname(path);
  const first = existsSync(parent) ? undefined : makeFolders(parent);
  mkdirSync(path, { mode: 0o700 });
  return first ?? path;
}
