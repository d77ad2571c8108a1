// Remembers what a namespace index stood for when a tag first used it: after a restart of the server it may stand for
// another, and a tag must never show another variable under its name.
import { mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";
import { writeAtomically } from "../../../lib/atomic-file.ts";

const content = z.record(z.string().regex(/^\d+$/), z.string());

/** Gives what is known of the indexes, after learning those in `used` that are new from `namespaces`. Rejects when the disk does. */
export async function rememberNamespaces(
  path: string,
  used: readonly number[],
  namespaces: readonly string[],
): Promise<ReadonlyMap<number, string>> {
  const known = await readKnown(path);
  const fresh = used.filter((index) => !known.has(index) && namespaces[index] !== undefined);
  if (fresh.length === 0) return known;
  for (const index of fresh) known.set(index, namespaces[index] ?? "");
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeAtomically(path, JSON.stringify(Object.fromEntries(known)));
  return known;
}

async function readKnown(path: string): Promise<Map<number, string>> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "{}";
    throw error;
  });
  return new Map(Object.entries(content.parse(JSON.parse(text))).map(([index, uri]) => [Number(index), uri]));
}
