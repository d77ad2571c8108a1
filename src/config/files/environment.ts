// External inputs of a configuration: environment variables, files, and the packaged paths.

import { open, readdir, stat, statfs } from "node:fs/promises";
import { hostname } from "node:os";
import { delimiter, dirname, resolve } from "node:path";
import { AgentError, codeOf, type ErrorCode } from "../../core/errors.ts";
import { fileProblem } from "../../lib/files/paths.ts";
import type { Issues, Place } from "../nodes/issue.ts";

export interface Environment {
  readonly hostname: string;
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** Absolute base of relative paths on the command line and of `dataDir`. */
  readonly cwd: string;
  /**
   * Content of the file at an absolute path. Rejects as `node:fs` does, and if the file is longer than `maxFileBytes` or
   * a named pipe, device or socket.
   */
  readFile(path: string): Promise<Uint8Array>;
  /** Names in the folder at an absolute path. Rejects as `node:fs` does. */
  listFolder(path: string): Promise<readonly string[]>;
  /** Free bytes on the volume of an absolute path, which need not exist yet. Undefined: unknown. */
  freeDisk?(path: string): Promise<number | undefined>;
}

/** More than any list of tags needs. */
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
    const absent = codeOf(error) === "ENOENT";
    return absent && above !== path ? await freeDisk(above) : undefined;
  }
}

/** The pipe of a shell, as in `check -c <(…)`. The shell connects it, so that opening it does not wait. */
const shellPipe = /^\/(?:dev\/stdin$|(?:dev|proc\/self)\/fd\/)/;

async function readFile(path: string): Promise<Uint8Array> {
  const found = await stat(path);
  // A named pipe without a writer would block a thread, and with it the end of the process. A device may do so as well.
  if (!found.isFile() && !found.isDirectory() && !shellPipe.test(path)) throw new Error("it is not a regular file");
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

/** The text of `file` (relative to `cwd`). Undefined: unreadable, with the reason in `issues` at `place`. */
export async function readTextFile(
  file: string,
  place: Place,
  environment: Environment,
  issues: Issues,
): Promise<string | undefined> {
  // A position in the same file already names it.
  const what = place.at.file === file ? "" : `${file} `;
  let bytes: Uint8Array;
  try {
    bytes = await environment.readFile(resolve(environment.cwd, file));
  } catch (error) {
    const wanted = what === "" ? "correct the name of the file; `tagferry init` writes a configuration" : undefined;
    issues.error(place, `${what}cannot be read: ${fileProblem(error)}`, wanted);
    return undefined;
  }
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    issues.read(file, bytes, text);
    if (!text.includes("\0")) return text;
    issues.error(place, `${what}has null characters in it`, "save it as UTF-8, or restore it after a power cut");
    return undefined;
  } catch {
    issues.error(place, `${what}is not UTF-8 text`, "save it as UTF-8");
    return undefined;
  }
}

/** The content of the file given for `flag`, without its last line break. Rejects with `code`. */
export async function lineIn(file: string, flag: string, code: ErrorCode): Promise<string> {
  try {
    return new TextDecoder().decode(await readFile(file)).replace(/\r?\n$/, "");
  } catch (error) {
    throw new AgentError(code, `${flag} ${file} cannot be read: ${fileProblem(error)}`, { cause: error });
  }
}

/** The packaged path of the configuration, and the data directory of its systemd unit. */
export const packaged = { config: "/etc/tagferry/tagferry.yaml", dataDir: "/var/lib/tagferry" } as const;

/** The absolute path of the data directory. `given`: the value in the configuration `file`. */
export function dataDirOf(given: string | undefined, file: string, { variables, cwd }: Environment): string {
  // systemd separates several folders by colons.
  const folder = variables.STATE_DIRECTORY?.split(delimiter)[0];
  // Only the unit has STATE_DIRECTORY. A command on a shell must find the same folder.
  const usual = resolve(cwd, file) === packaged.config ? packaged.dataDir : "data";
  return resolve(cwd, given ?? (folder || usual));
}

/** The host name reduced to characters that an Input ID allows. */
export function nameOf(hostname: string): string {
  const name = hostname
    .replace(/[^A-Za-z0-9_.-]+/g, "-")
    .replace(/^[^A-Za-z0-9]+/, "")
    .slice(0, 64);
  return name === "" ? "tagferry" : name;
}
