// What a configuration may refer to outside itself: environment variables, files, and the places of the package.

import { open, readdir, statfs } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname, resolve } from "node:path";
import { AgentError, type ErrorCode, reasonOf } from "../core/errors.ts";
import type { Issues, Place } from "./issue.ts";

export interface Environment {
  readonly hostname: string;
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** Absolute path that relative paths of the command line and of `dataDir` start from. */
  readonly cwd: string;
  /** Bytes of the file at an absolute path. Rejects as `node:fs` does, and when it is longer than `maxFileBytes`. */
  readFile(path: string): Promise<Uint8Array>;
  /** Names in the folder at an absolute path. Rejects as `node:fs` does. */
  listFolder(path: string): Promise<readonly string[]>;
  /** Bytes that are free for users on the volume of an absolute path, which need not be there yet. Undefined: it is not known. */
  freeDisk?(path: string): Promise<number | undefined>;
}

/** More than any list of tags needs; keeps `/dev/zero` out of the memory. */
const maxFileBytes = 64 * 2 ** 20;

export function processEnvironment(): Environment {
  return { hostname: hostname(), variables: process.env, cwd: process.cwd(), readFile, listFolder: readdir, freeDisk };
}

async function freeDisk(path: string): Promise<number | undefined> {
  try {
    const { bavail, bsize } = await statfs(path);
    return bavail * bsize;
  } catch (error) {
    const above = dirname(path);
    const absent = error instanceof Error && "code" in error && error.code === "ENOENT";
    return absent && above !== path ? await freeDisk(above) : undefined;
  }
}

async function readFile(path: string): Promise<Uint8Array> {
  await using file = await open(path, "r");
  const chunks: Buffer[] = [];
  let length = 0;
  for (;;) {
    const chunk = Buffer.allocUnsafe(65_536);
    const { bytesRead } = await file.read(chunk, 0, chunk.length, null);
    if (bytesRead === 0) return Buffer.concat(chunks);
    length += bytesRead;
    if (length > maxFileBytes) throw new Error(`longer than ${maxFileBytes / 2 ** 20} MiB`);
    chunks.push(chunk.subarray(0, bytesRead));
  }
}

/** The text of `file` (relative to `cwd`), or undefined; then `issues` says why, at `place`. */
export async function readTextFile(
  file: string,
  place: Place,
  environment: Environment,
  issues: Issues,
): Promise<string | undefined> {
  // A position in the file itself names it already.
  const what = place.at.file === file ? "" : `${file} `;
  let bytes: Uint8Array;
  try {
    bytes = await environment.readFile(resolve(environment.cwd, file));
  } catch (error) {
    const wanted = what === "" ? "name it with -c FILE, or write one with `tagferry init`" : undefined;
    issues.error(place, `${what}cannot be read: ${fileProblem(error)}`, wanted);
    return undefined;
  }
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    issues.read(file, text);
    return text;
  } catch {
    issues.error(place, `${what}is not UTF-8 text`, "save it as UTF-8");
    return undefined;
  }
}

/** What a file holds that `flag` names, without its last line end. Rejects with `code`. */
export async function lineIn(file: string, flag: string, code: ErrorCode): Promise<string> {
  try {
    return new TextDecoder().decode(await readFile(file)).replace(/\r?\n$/, "");
  } catch (error) {
    throw new AgentError(code, `${flag} ${file} cannot be read: ${fileProblem(error)}`, { cause: error });
  }
}

/** What the operating system said, for people. */
export function fileProblem(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
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

/** Where the package has the configuration, and its unit the data. */
export const packaged = { config: "/etc/tagferry/tagferry.yaml", dataDir: "/var/lib/tagferry" } as const;

/** Absolute path. `file`: of the configuration, in which `given` stands. */
export function dataDirOf(given: string | undefined, file: string, { variables, cwd }: Environment): string {
  // systemd gives several folders separated by colons where the unit names several.
  const folder = variables.STATE_DIRECTORY?.split(":")[0];
  // Only the unit is told its folder: a command that a person types must find the same one.
  const usual = resolve(cwd, file) === packaged.config ? packaged.dataDir : "data";
  return resolve(cwd, given ?? (folder || usual));
}

/** The name of the machine, as far as it may stand in an Input ID. */
export function nameOf(hostname: string): string {
  const name = hostname
    .replace(/[^A-Za-z0-9_.-]+/g, "-")
    .replace(/^[^A-Za-z0-9]+/, "")
    .slice(0, 64);
  return name === "" ? "tagferry" : name;
}
