// Small JSON files with the persistent state of a part.
import { mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { z } from "zod";
import { codeOf } from "../../core/errors.ts";
import type { Logger } from "../../core/runtime.ts";
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

/**
 * The state of a part in a file, whose failures are logged with these messages. `unreadable`: for a file that exists;
 * undefined: nothing is logged.
 */
export function stateFile<S extends z.ZodType>(
  path: string,
  content: S,
  { log, unreadable, unwritable }: { readonly log: Logger; readonly unreadable?: string; readonly unwritable: string },
) {
  let next: { readonly state: z.output<S> } | undefined;
  let saving = Promise.resolve();

  async function write(): Promise<void> {
    const state = next?.state;
    next = undefined;
    await writeStateFile(path, state).catch((err: unknown) => log.warn({ err, path }, unwritable));
  }

  return {
    /** Resolves with the content. Undefined: the file is missing or unreadable. Never rejects. */
    load: (): Promise<z.output<S> | undefined> =>
      readStateFile(path, content, (err) => unreadable !== undefined && log.warn({ err, path }, unreadable)),
    /** Writes `state` after earlier writes. Of several waiting states, only the last is written. Never rejects. */
    save(state: z.output<S>): Promise<void> {
      if (next === undefined) saving = saving.then(write);
      next = { state };
      return saving;
    },
    /** Resolves once the last write has ended. */
    saved: (): Promise<void> => saving,
  };
}
