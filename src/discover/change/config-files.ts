// Where tags are written: the file of a source, or a new one in conf.d, and whether the agent may write there.
import { createHash } from "node:crypto";
import { access, constants, lstat, readFile } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { type Environment, packaged } from "../../config/files/environment.ts";
import type { Config } from "../../config/format/config.ts";
import { loadConfig } from "../../config/load.ts";
import { shownLine } from "../../config/nodes/excerpt.ts";
import { AgentError, codeOf } from "../../core/errors.ts";
import { fileProblem, withSlashes } from "../../lib/files/paths.ts";
import { definesSource } from "./add-tags.ts";

/** Folder next to the configuration for files that the page writes. */
export const confFolder = "conf.d";
/** The line that makes the configuration read them. */
export const includeLine = `include: ${confFolder}/*.yaml`;

/** Why nothing can be written, and what the operator has to do. */
export interface Obstacle {
  readonly reason: string;
  /** Commands and lines, one step each. */
  readonly steps: readonly string[];
}

/** Contents that replace files on the disk, by absolute path. */
export type Overlay = ReadonlyMap<string, string>;

/** Loads the configuration as if these files were there, and tells which files it read. Rejects as `loadConfig`. */
export async function loadWith(
  file: string,
  environment: Environment,
  overlay: Overlay = new Map(),
): Promise<{ readonly config: Config; readonly files: ReadonlySet<string> }> {
  const files = new Set<string>();
  const config = await loadConfig(file, {
    ...environment,
    async readFile(path) {
      files.add(path);
      const text = overlay.get(path);
      return text === undefined ? await environment.readFile(path) : new TextEncoder().encode(text);
    },
    async listFolder(path) {
      const added = [...overlay.keys()].filter((name) => dirname(name) === path).map((name) => basename(name));
      const names = await environment.listFolder(path);
      return [...new Set([...names, ...added])];
    },
  });
  return { config, files };
}

/** The file that has the entry of this source. Undefined: none of `files` has. */
export async function fileOfSource(files: Iterable<string>, source: string): Promise<string | undefined> {
  for (const file of files)
    if (/\.ya?ml$/.test(file)) {
      const text = await textOf(file);
      if (text !== undefined && definesSource(text, source)) return file;
    }
  return undefined;
}

export function newFile(file: string, { cwd }: Pick<Environment, "cwd">, source: string): string {
  return join(dirname(resolve(cwd, file)), confFolder, `${source}.yaml`);
}

/** Undefined: there is no such file. Rejects as `node:fs` does. */
export async function textOf(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** Identifies a content. A missing file differs from an empty one. */
export function textHash(text: string | undefined): string {
  return text === undefined ? "none" : createHash("sha256").update(text).digest("hex");
}

/** Undefined: the agent may write the file. `main`: absolute path of the configuration. */
export async function obstacleTo(file: string, main: string, included: boolean): Promise<Obstacle | undefined> {
  const folder = dirname(file);
  const blocked = await blockedBy(file);
  if (blocked === undefined && included) return undefined;
  const steps = [
    ...(blocked === undefined ? [] : stepsFor(folder, main)),
    ...(included ? [] : [`in ${main}, add the line: ${includeLine}`, "tagferry reload"]),
  ];
  const reason = blocked ?? `${main} does not include ${withSlashes(relative(dirname(main), file))}`;
  return { reason, steps };
}

async function blockedBy(file: string): Promise<string | undefined> {
  const folder = dirname(file);
  try {
    await access(folder, constants.W_OK | constants.X_OK);
  } catch (error) {
    return `the agent cannot write to ${folder}: ${fileProblem(error)}`;
  }
  const there = await lstat(file).catch(() => undefined);
  if (!there) return undefined;
  if (!there.isFile()) return `${file} is not a regular file`;
  const uid = process.getuid?.() ?? there.uid;
  // A replaced file would belong to the agent.
  return uid === 0 || uid === there.uid ? undefined : `${file} belongs to another user than the agent's`;
}

function stepsFor(folder: string, main: string): readonly string[] {
  if (main !== packaged.config) return [`mkdir -p ${folder}`, `chown -R ${process.getuid?.() ?? "USER"} ${folder}`];
  return [
    `sudo install -d -o tagferry -g tagferry -m 0750 ${folder}`,
    "sudo systemctl edit tagferry, and add the lines: [Service] and ReadWritePaths=" + folder,
    "sudo systemctl restart tagferry",
  ];
}

/** Throws `CONFIG_INVALID` if a new source would replace something. */
export async function assertFree(file: string, source: string, config: Config): Promise<void> {
  if (config.sources.some(({ name }) => name === source))
    throw new AgentError("CONFIG_INVALID", `there is a source ${source} already`, {
      hint: "choose another name, or open that source to add tags to it",
    });
  if ((await textOf(file).catch(() => "")) !== undefined)
    throw new AgentError("CONFIG_INVALID", `${file} is there already`, { hint: "choose another name" });
}

/** Lines of the file around a change. */
const context = 3;

/**
 * The unified difference of a file, without the secrets of the lines that are there already. Empty: nothing changes.
 * `before` undefined: there is no such file yet.
 */
export function difference(file: string, before: string | undefined, after: string): string {
  const old = linesOf(before ?? "");
  const next = linesOf(after);
  let same = 0;
  while (same < old.length && same < next.length && old[same] === next[same]) same++;
  let sameEnd = 0;
  while (sameEnd < Math.min(old.length, next.length) - same && old.at(-1 - sameEnd) === next.at(-1 - sameEnd))
    sameEnd++;
  if (before !== undefined && same === old.length && same === next.length) return "";
  const from = Math.max(0, same - context);
  const to = Math.min(sameEnd, context);
  const removed = range(same, old.length - sameEnd);
  // A changed line still has the secrets of the former one. An added one has a reference to a password at most.
  const isAddition = removed.every((i) => shownLine(old, i) === old[i]);
  const lines = [
    ...range(from, same).map((i) => ` ${shownLine(old, i)}`),
    ...removed.map((i) => `-${shownLine(old, i)}`),
    ...range(same, next.length - sameEnd).map((i) => `+${isAddition ? next[i] : shownLine(next, i)}`),
    ...range(old.length - sameEnd, old.length - sameEnd + to).map((i) => ` ${shownLine(old, i)}`),
  ];
  const oldCount = old.length - sameEnd + to - from;
  const newCount = next.length - sameEnd + to - from;
  const place = (count: number) => `${count === 0 ? 0 : from + 1},${count}`;
  return [
    `--- ${before === undefined ? "/dev/null" : file}`,
    `+++ ${file}`,
    `@@ -${place(oldCount)} +${place(newCount)} @@`,
    ...lines,
  ].join("\n");
}

function linesOf(text: string): readonly string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}

function range(from: number, to: number): readonly number[] {
  return Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);
}
