// Small JSON files in which a part remembers something from one run to the next.
import { mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { z } from "zod";
import { writeAtomically } from "./atomic-file.ts";

/**
 * What a file holds. Never rejects. Undefined: there is no file, or it cannot be read, which is as good as none; `unreadable` is
 * called with the reason then.
 */
export async function readStateFile<S extends z.ZodType>(
  path: string,
  content: S,
  unreadable: (error: unknown) => void = () => {},
): Promise<z.output<S> | undefined> {
  try {
    return content.parse(JSON.parse(await readFile(path, "utf8")));
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) unreadable(error);
    return undefined;
  }
}

/** Replaces a file, in a folder that is made if need be. Resolves once that survives a power cut. Rejects when the disk fails. */
export async function writeStateFile(path: string, state: unknown): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeAtomically(path, JSON.stringify(state));
}
