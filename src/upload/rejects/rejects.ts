// Points that the service refused for good, stored in a readable file with the reasons.

import { createReadStream } from "node:fs";
import { mkdir, open, rename, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { reasonOf } from "../../core/errors.ts";
import type { InputId } from "../../core/point.ts";
import type { Runtime } from "../../core/runtime.ts";
import { syncName } from "../../lib/files/atomic-file.ts";
import { isWritableTime, TimeWriter } from "../series/number-text.ts";
import { endsInLine, newLine } from "./reject-files.ts";

export interface Reject {
  readonly input: InputId;
  /** Microseconds since the epoch. */
  readonly time: number;
  readonly value: number;
  /** JSON-RPC error or HTTP status. Undefined: the point could not be sent. */
  readonly code?: number | undefined;
  readonly reason: string;
}

/** Rotation size of each of the two files. Older rejects are only counted. */
const mostBytes = 16 * 2 ** 20;
const retryMs = 5_000;

/** `rejects.ndjson`: one JSON object per line, `{"at","input","time","value","code","reason"}`. */
export type Rejects = Awaited<ReturnType<typeof openRejects>>;

/** An unreadable file counts as empty, since it must not prevent the start. */
export async function openRejects(path: string, { clock, log }: Runtime) {
  let stored = await countLines(path);
  const writer = new TimeWriter();
  /** Settles after the latest change of the files. */
  let last: Promise<unknown> = Promise.resolve();
  let pending: { readonly text: string; readonly points: number; readonly kept: () => void }[] = [];
  /** Time of the last failed write, in monotonic milliseconds. Undefined: writes succeed. */
  let failedAt: number | undefined;

  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = last.then(work);
    last = done.catch(() => {});
    return done;
  }

  function write(): Promise<void> {
    return inTurn(writeNow);
  }

  function waiting(): number {
    return pending.reduce((sum, { points }) => sum + points, 0);
  }

  async function writeNow(): Promise<void> {
    // A copy, since rejects may be added during the append.
    const written = [...pending];
    // An earlier write has taken them along.
    if (written.length === 0) return;
    try {
      await append(written.map(({ text }) => text).join(""));
    } catch (error) {
      if (failedAt === undefined)
        log.error(
          { reason: reasonOf(error), points: waiting(), path },
          "refused points cannot be written to disk; they stay in the buffer until they can",
        );
      failedAt = clock.monotonic();
      return;
    }
    if (failedAt !== undefined) log.info({ points: waiting() }, "refused points are written down again");
    failedAt = undefined;
    stored += written.reduce((sum, { points }) => sum + points, 0);
    pending = pending.slice(written.length);
    for (const { kept } of written) kept();
  }

  /** Appends all of `text`. After a failure it removes the part that was written. */
  async function append(text: string): Promise<void> {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const size = await stat(path).then(
      (found) => found.size,
      () => 0,
    );
    if (size > mostBytes) await rename(path, older(path));
    await using file = await open(path, "a+", 0o600);
    const { size: before } = await file.stat();
    try {
      await file.appendFile((await endsInLine(file, before)) ? text : `\n${text}`);
      await file.datasync();
      if (before === 0) await syncName(path);
    } catch (error) {
      await file.truncate(before).catch(() => {});
      throw error;
    }
  }

  function lineOf(at: string | number, { input, time, value, code, reason }: Reject): string {
    const written = Number.isFinite(value) ? value : String(value);
    return JSON.stringify({ at, input, time: timeText(time), value: written, code, reason });
  }

  function timeText(micros: number): string | number {
    if (!isWritableTime(micros)) return micros;
    const bytes = Buffer.alloc(32);
    return bytes.toString("latin1", 0, writer.write(bytes, 0, micros));
  }

  return {
    /** Runs `change` of the files while nothing is appended to them, then counts the rejects again. */
    alone<T>(change: () => Promise<T>): Promise<T> {
      return inTurn(async () => {
        try {
          return await change();
        } finally {
          stored = await countLines(path);
        }
      });
    },
    /** Points in the files. */
    get count(): number {
      return stored;
    },
    /** Points that are not written yet. */
    get waiting(): number {
      return waiting();
    },
    /**
     * Stores rejects. Calls `kept` once they are on disk, at the latest after a successful `flush`. Never rejects: while
     * the disk fails, they wait in memory.
     */
    async add(rejects: readonly Reject[], kept: () => void): Promise<void> {
      if (rejects.length === 0) return;
      const at = timeText(clock.now());
      const text = rejects.map((reject) => `${lineOf(at, reject)}\n`).join("");
      pending.push({ text, points: rejects.length, kept });
      // While the disk fails, only `flush` tries again.
      if (failedAt === undefined) await write();
    },
    /** Repeats failed writes at intervals. */
    async flush(): Promise<void> {
      if (failedAt === undefined || clock.monotonic() - failedAt < retryMs) return;
      await write();
    },
  };
}

/** Lines of all files of rejects, also of a retry that has not ended. Unreadable files count as empty. */
async function countLines(path: string): Promise<number> {
  let count = 0;
  for (const file of [path, older(path), path.replace(/(\.[^.]*)?$/, ".retry$1")]) {
    try {
      for await (const chunk of createReadStream(file))
        for (const byte of chunk as Buffer) if (byte === newLine) count++; // without an encoding, chunks are Buffers
    } catch {
      // No file: no rejects yet.
    }
  }
  return count;
}

function older(path: string): string {
  return path.replace(/(\.[^.]*)?$/, ".1$1");
}
