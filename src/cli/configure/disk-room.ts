// Whether the disk has room for the buffer that a configuration wants, for `check`.
import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Config } from "../../config/config.ts";
import type { Environment } from "../../config/environment.ts";

export interface DiskRoom {
  /** Absolute path of the data directory. */
  readonly folder: string;
  readonly freeBytes: number;
  /** What the buffer may come to there: less than `buffer.maxSize` where the disk is short. */
  readonly bufferBytes: number;
}

/** Undefined: nothing is known of the disk. */
export async function diskRoom(
  { agent, buffer: { maxSize, reserveFreeDisk } }: Config,
  environment: Environment,
): Promise<DiskRoom | undefined> {
  const folder = resolve(environment.cwd, agent.dataDir);
  const freeBytes = await environment.freeDisk?.(folder);
  if (freeBytes === undefined) return undefined;
  const room = freeBytes + (await held(join(folder, "buffer"), environment)) - reserveFreeDisk;
  return { folder, freeBytes, bufferBytes: Math.min(maxSize, Math.max(0, room)) };
}

/** Bytes that the buffer has there already. */
async function held(buffer: string, environment: Environment): Promise<number> {
  const names = await environment.listFolder(buffer).catch(() => []);
  const sizes = await Promise.all(
    names.map((name) =>
      stat(join(buffer, name)).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}
