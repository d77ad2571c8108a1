// Points that the service refused for good: kept in a readable file with its reasons, and counted.
import { createReadStream } from "node:fs";
import { mkdir, open, rename, stat } from "node:fs/promises";
import { dirname } from "node:path";
import type { InputId } from "../core/point.ts";
import type { Runtime } from "../core/runtime.ts";
import { isWritableTime, TimeWriter } from "./time-text.ts";

export interface Reject {
  readonly input: InputId;
  /** Microseconds since the epoch. */
  readonly time: number;
  readonly value: number;
  /** JSON-RPC error or HTTP status; undefined: it could not be sent at all. */
  readonly code: number | undefined;
  readonly reason: string;
}

/** Two files of this size are kept at most; older rejects are counted, not kept. */
const mostBytes = 16 * 2 ** 20;

/** `rejects.ndjson`: one JSON object a line, `{"at","input","time","value","code","reason"}`. */
export class Rejects {
  readonly #path: string;
  readonly #runtime: Runtime;
  readonly #text = new TimeWriter();
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
        for await (const chunk of createReadStream(file)) for (const byte of chunk as Buffer) if (byte === 10) count++; // without an encoding chunks are Buffers
      } catch {
        // Not there: nothing was refused yet.
      }
    }
    return new Rejects(path, count, runtime);
  }

  /** Points in the files, and those added since. */
  get count(): number {
    return this.#count;
  }

  /** Resolves once they are on disk, or with a logged error when they cannot be: that must not hold up the others. */
  async add(rejects: readonly Reject[]): Promise<void> {
    if (rejects.length === 0) return;
    this.#count += rejects.length;
    const at = this.#time(this.#runtime.clock.now());
    const lines = rejects.map(({ input, time, value, code, reason }) =>
      JSON.stringify({
        at,
        input,
        time: this.#time(time),
        value: Number.isFinite(value) ? value : String(value),
        code,
        reason,
      }),
    );
    try {
      await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 });
      const size = await stat(this.#path).then(
        (found) => found.size,
        () => 0,
      );
      if (size > mostBytes) await rename(this.#path, older(this.#path));
      await using file = await open(this.#path, "a", 0o600);
      await file.appendFile(`${lines.join("\n")}\n`);
      await file.datasync();
    } catch (error) {
      this.#runtime.log.error(
        { err: error, points: rejects.length, first: lines[0] },
        "refused points could not be kept",
      );
    }
  }

  #time(micros: number): string | number {
    if (!isWritableTime(micros)) return micros;
    const bytes = Buffer.alloc(32);
    return bytes.toString("latin1", 0, this.#text.write(bytes, 0, micros));
  }
}

function older(path: string): string {
  return path.replace(/(\.[^.]*)?$/, ".1$1");
}
