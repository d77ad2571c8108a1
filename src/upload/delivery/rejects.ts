// Points that the service refused for good: kept in a readable file with its reasons, and counted.

import { createReadStream } from "node:fs";
import { type FileHandle, mkdir, open, rename, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { reasonOf } from "../../core/errors.ts";
import type { InputId } from "../../core/point.ts";
import type { Runtime } from "../../core/runtime.ts";
import { syncName } from "../../lib/atomic-file.ts";
import { isWritableTime, TimeWriter } from "../series/number-text.ts";

export interface Reject {
  readonly input: InputId;
  /** Microseconds since the epoch. */
  readonly time: number;
  readonly value: number;
  /** JSON-RPC error or HTTP status; undefined: it could not be sent at all. */
  readonly code?: number | undefined;
  readonly reason: string;
}

/** Two files of this size are kept at most; older rejects are counted, not kept. */
const mostBytes = 16 * 2 ** 20;
const newLine = 10;
/** Between two tries to write. */
const retryMs = 5_000;

/** `rejects.ndjson`: one JSON object a line, `{"at","input","time","value","code","reason"}`. */
export class Rejects {
  readonly #path: string;
  readonly #runtime: Runtime;
  readonly #text = new TimeWriter();
  #waiting: { readonly text: string; readonly points: number; readonly kept: () => void }[] = [];
  /** Monotonic milliseconds; undefined: writing works. */
  #failedAt: number | undefined;
  #count: number;

  private constructor(path: string, count: number, runtime: Runtime) {
    this.#path = path;
    this.#count = count;
    this.#runtime = runtime;
  }

  /** A file that cannot be read counts as empty: it must not stop the start. */
  static async open(path: string, runtime: Runtime): Promise<Rejects> {
    let count = 0;
    for (const file of [path, older(path)]) {
      try {
        for await (const chunk of createReadStream(file))
          for (const byte of chunk as Buffer) if (byte === newLine) count++; // without an encoding chunks are Buffers
      } catch {
        // Not there: nothing was refused yet.
      }
    }
    return new Rejects(path, count, runtime);
  }

  /** Points in the files. */
  get count(): number {
    return this.#count;
  }

  /** Points that could not be written yet. */
  get waiting(): number {
    return this.#waiting.reduce((sum, { points }) => sum + points, 0);
  }

  /**
   * Keeps them; `kept` is called once they are on disk, at the latest after a `flush` that succeeds. Where the disk takes
   * nothing they wait in memory. Never rejects: that must not hold up the others.
   */
  async add(rejects: readonly Reject[], kept: () => void): Promise<void> {
    if (rejects.length === 0) return;
    const at = this.#time(this.#runtime.clock.now());
    const text = rejects.map((reject) => `${this.#line(at, reject)}\n`).join("");
    this.#waiting.push({ text, points: rejects.length, kept });
    // One after the other fails for the same reason: then it is tried again from time to time.
    if (this.#failedAt === undefined) await this.#write();
  }

  /** Tries again what could not be written, from time to time. */
  async flush(): Promise<void> {
    const { clock } = this.#runtime;
    if (this.#failedAt === undefined || clock.monotonic() - this.#failedAt < retryMs) return;
    await this.#write();
  }

  async #write(): Promise<void> {
    const { clock, log } = this.#runtime;
    const waiting = this.#waiting;
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
    this.#count += this.waiting;
    this.#waiting = [];
    for (const { kept } of waiting) kept();
  }

  /** All of it or, where that fails, nothing that a reader would take for a line. */
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

/** False where a crash cut the last line short: what is written behind it must not become a part of it. */
async function endsInLine(file: FileHandle, size: number): Promise<boolean> {
  if (size === 0) return true;
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer[0] === newLine;
}

function older(path: string): string {
  return path.replace(/(\.[^.]*)?$/, ".1$1");
}
