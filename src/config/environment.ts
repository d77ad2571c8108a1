// What a configuration may refer to outside itself: environment variables and files.
import { open, readdir, statfs } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname } from "node:path";

export interface Environment {
  /** Name of the machine. */
  readonly hostname: string;
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** Absolute path that relative paths of the command line and of `dataDir` start from. */
  readonly cwd: string;
  /** Bytes of the file at an absolute path. Rejects as `node:fs` does, and when it is longer than `maxFileBytes`. */
  readFile(path: string): Promise<Uint8Array>;
  /** Names in the folder at an absolute path. Rejects as `node:fs` does. */
  listFolder(path: string): Promise<readonly string[]>;
  /** Bytes that are free for users on the volume of an absolute path, which need not be there yet. Undefined: it cannot be told. */
  freeDisk?(path: string): Promise<number | undefined>;
}

/** More than any list of tags needs; keeps `/dev/zero` out of the memory. */
const maxFileBytes = 64 * 2 ** 20;

/** The environment of the process. */
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
