// Small JSON files with the persistent state of a part.
import { mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { z } from "zod";
import { codeOf } from "../values/error-code.ts";
import { writeAtomically } from "./atomic-file.ts";

/** Content of a file, or undefined if missing or unreadable (calls `unreadable` then). Never rejects. */
export async function readStateFile<S extends z.ZodType>(
  path: string,
  content: S,
  unreadable: (error: unknown) => void = () => {},
): Promise<z.output<S> | undefined> {
  try {
    return content.parse(JSON.parse(await readFile(path, "utf8")));
  } catch (error) {
    if (codeOf(error) !== "ENOENT") unreadable(error);
    return undefined;
  }
}

/** Replaces a file and creates its folder. Resolves once durable. Rejects if the disk fails. */
export async function writeStateFile(path: string, state: unknown): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeAtomically(path, JSON.stringify(state));
}
