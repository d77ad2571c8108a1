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
export class Rejects {
  readonly #path: string;
  readonly #runtime: Runtime;
  readonly #text = new TimeWriter();
  #waiting: { readonly text: string; readonly points: number; readonly kept: () => void }[] = [];
  /** Time of the last failed write, in monotonic milliseconds. Undefined: writes succeed. */
  #failedAt: number | undefined;
  #count: number;
  /** Settles after the latest change of the files. */
  #last: Promise<unknown> = Promise.resolve();

  private constructor(path: string, count: number, runtime: Runtime) {
    this.#path = path;
    this.#count = count;
    this.#runtime = runtime;
  }

  /** An unreadable file counts as empty, since it must not prevent the start. */
  static async open(path: string, runtime: Runtime): Promise<Rejects> {
    return new Rejects(path, await countLines(path), runtime);
  }

  /** Runs `change` of the files while nothing is appended to them, then counts the rejects again. */
  alone<T>(change: () => Promise<T>): Promise<T> {
    return this.#inTurn(async () => {
      try {
        return await change();
      } finally {
        this.#count = await countLines(this.#path);
      }
    });
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {});
    return done;
  }

  /** Points in the files. */
  get count(): number {
    return this.#count;
  }

  /** Points that are not written yet. */
  get waiting(): number {
    return this.#waiting.reduce((sum, { points }) => sum + points, 0);
  }

  /**
   * Stores rejects. Calls `kept` once they are on disk, at the latest after a successful `flush`. Never rejects: while
   * the disk fails, they wait in memory.
   */
  async add(rejects: readonly Reject[], kept: () => void): Promise<void> {
    if (rejects.length === 0) return;
    const at = this.#time(this.#runtime.clock.now());
    const text = rejects.map((reject) => `${this.#line(at, reject)}\n`).join("");
    this.#waiting.push({ text, points: rejects.length, kept });
    // While the disk fails, only `flush` tries again.
    if (this.#failedAt === undefined) await this.#write();
  }

  /** Repeats failed writes at intervals. */
  async flush(): Promise<void> {
    const { clock } = this.#runtime;
    if (this.#failedAt === undefined || clock.monotonic() - this.#failedAt < retryMs) return;
    await this.#write();
  }

  #write(): Promise<void> {
    return this.#inTurn(() => this.#writeNow());
  }

  async #writeNow(): Promise<void> {
    const { clock, log } = this.#runtime;
    // A copy, since rejects may be added during the append.
    const waiting = [...this.#waiting];
    try {
      await this.#append(waiting.map(({ text }) => text).join(""));
    } catch (error) {
      if (this.#failedAt === undefined)
        log.error(
          { reason: reasonOf(error), points: this.waiting, path: this.#path },
          "refused points cannot be written to disk; they stay in the buffer until they can",
        );
      this.#failedAt = clock.monotonic();
      return;
    }
    if (this.#failedAt !== undefined) log.info({ points: this.waiting }, "refused points are written down again");
    this.#failedAt = undefined;
    this.#count += waiting.reduce((sum, { points }) => sum + points, 0);
    this.#waiting = this.#waiting.slice(waiting.length);
    for (const { kept } of waiting) kept();
  }

  /** Appends all of `text`. After a failure it removes the part that was written. */
  async #append(text: string): Promise<void> {
    await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 });
    const size = await stat(this.#path).then(
      (found) => found.size,
      () => 0,
    );
    if (size > mostBytes) await rename(this.#path, older(this.#path));
    await using file = await open(this.#path, "a+", 0o600);
    const { size: before } = await file.stat();
    try {
      await file.appendFile((await endsInLine(file, before)) ? text : `\n${text}`);
      await file.datasync();
      if (before === 0) await syncName(this.#path);
    } catch (error) {
      await file.truncate(before).catch(() => {});
      throw error;
    }
  }

  #line(at: string | number, { input, time, value, code, reason }: Reject): string {
    const written = Number.isFinite(value) ? value : String(value);
    return JSON.stringify({ at, input, time: this.#time(time), value: written, code, reason });
  }

  #time(micros: number): string | number {
    if (!isWritableTime(micros)) return micros;
    const bytes = Buffer.alloc(32);
    return bytes.toString("latin1", 0, this.#text.write(bytes, 0, micros));
  }
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
