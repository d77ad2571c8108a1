// Up to when the values of each node are on disk, written with each acknowledgement: a process that is killed knows it to the
// last value, while `history.json`, which is forced to the disk, is up to half a minute behind.
//
//   +----------+-----------+-----------+----
//   | keys     | time of   | time of   | …   8 bytes each, times in microseconds as doubles
//   | (digest) | the first | the second|
//   +----------+-----------+-----------+----
//
// The keys and their order stand in `history.json`. The file is written in place and not forced to the disk: it survives the
// death of the process. After a power cut it may be behind, never ahead, and what stands in `history.json` counts.
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { type EpochMicros, epochMicros } from "../../../core/point.ts";

type Times = ReadonlyMap<string, EpochMicros>;

/** As they were written last. Empty where there are none of these very keys. Never rejects. */
export async function readStoredTimes(path: string, keys: readonly string[]): Promise<Times> {
  const bytes = await readFile(path).catch(() => Buffer.alloc(0));
  if (!bytes.subarray(0, 8).equals(digestOf(keys)) || bytes.length < 8 * (keys.length + 1)) return new Map();
  // A time of 0 was not written to the end.
  return new Map(
    keys.flatMap((key, i) => {
      const time = bytes.readDoubleLE(8 * (i + 1));
      return Number.isSafeInteger(time) && time > 0 ? [[key, epochMicros(time)] as const] : [];
    }),
  );
}

export class StoredTimes {
  readonly #path: string;
  readonly #times: Times;
  #digest = digestOf([]);
  #digested = 0;
  #writing: Promise<void> = Promise.resolve();
  #waiting = false;

  /** `times`: what is written; its keys keep their order, and none is ever removed. */
  constructor(path: string, times: Times) {
    this.#path = path;
    this.#times = times;
  }

  /** Writes all of them soon: what changes until then is in it. A failure changes nothing but how much is known after a kill. */
  write(): void {
    if (this.#waiting) return;
    this.#waiting = true;
    this.#writing = this.#writing.then(() => this.#write()).catch(() => {});
  }

  /** Resolves when nothing is being written. */
  settled(): Promise<void> {
    return this.#writing;
  }

  async #write(): Promise<void> {
    this.#waiting = false;
    if (this.#digested !== this.#times.size) this.#digest = digestOf([...this.#times.keys()]);
    this.#digested = this.#times.size;
    const bytes = Buffer.alloc(8 * (this.#times.size + 1));
    this.#digest.copy(bytes);
    let at = 8;
    for (const time of this.#times.values()) at = bytes.writeDoubleLE(time, at);
    await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 });
    await using file = await open(this.#path, constants.O_WRONLY | constants.O_CREAT, 0o600);
    await file.write(bytes, 0, bytes.length, 0);
  }
}

function digestOf(keys: readonly string[]): Buffer {
  return createHash("sha256").update(JSON.stringify(keys)).digest().subarray(0, 8);
}
