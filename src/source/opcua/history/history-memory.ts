// Remembers for each node the time up to which its values are on disk, and where gaps begin that are not filled, so that a
// later connection knows what is missing.
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { z } from "zod";
import { type EpochMicros, epochMicros } from "../../../core/point.ts";
import { readStateFile, writeStateFile } from "../../../lib/state-file.ts";
import { InPlaceFile } from "../session/state-files.ts";
import type { Cause } from "./gaps.ts";

const times = z.record(z.string(), z.int());
const content = z.union([
  z.object({
    version: z.literal(2),
    stored: times,
    open: times,
    /** Why, of each in `open`. */
    causes: z.record(z.string(), z.array(z.enum(["interruption", "overflow"]))).default({}),
  }),
  // As it was written before gaps had a place of their own.
  times.transform((stored) => ({ stored, open: {}, causes: {} })),
]);

/** Keys are NodeIds that stay true when the server starts again (`portableNodeId`). */
export class HistoryMemory implements AsyncDisposable {
  readonly #path: string;
  readonly #open: Map<string, EpochMicros>;
  readonly #causes: Map<string, ReadonlySet<Cause>>;
  readonly #times: StoredTimes;
  #dirty = false;
  /** A gap was closed since the last write. */
  #closedUnsaved = false;
  /** Gaps that have opened and nodes that had their first value, and how many of them are on disk. */
  #news = 0;
  #newsOnDisk = 0;
  #saving: Promise<void> = Promise.resolve();

  private constructor(path: string, { stored, open, causes }: Omit<z.output<typeof content>, "version">) {
    this.#path = path;
    this.#open = new Map(Object.entries(open).map(([key, time]) => [key, epochMicros(time)]));
    this.#causes = new Map(Object.entries(causes).map(([key, all]) => [key, new Set(all)]));
    this.#times = new StoredTimes(timesIn(path), Object.entries(stored));
  }

  /** Never rejects: a file that cannot be read is as good as none. */
  static async open(path: string): Promise<HistoryMemory> {
    const memory = new HistoryMemory(
      path,
      (await readStateFile(path, content)) ?? { stored: {}, open: {}, causes: {} },
    );
    await memory.#times.takeOver();
    return memory;
  }

  /** Up to when values of this node are on disk. Undefined: there never was one. */
  storedUpTo(key: string): EpochMicros | undefined {
    const place = this.#times.placeOf(key);
    return place === undefined ? undefined : this.storedAt(place);
  }

  /** As `storedUpTo`, at the place that `stored` gave. */
  storedAt(place: number): EpochMicros {
    return this.#times.at(place);
  }

  /** A value is on disk. `known`: the place of this node, if it is known. Gives it: it stays the same. */
  stored(key: string, time: EpochMicros, known?: number): number {
    const place = known ?? this.#times.placeOf(key);
    if (place !== undefined && time <= this.#times.at(place)) return place;
    if (place === undefined) this.#news++;
    this.#dirty = true;
    return this.#times.set(place ?? key, time);
  }

  /** The clock of the server was set back to this: what comes now is new although it is older. Gaps of the other time are void. */
  setBack(key: string, time: EpochMicros): void {
    this.#times.set(key, time);
    this.closed(key);
    this.#dirty = true;
  }

  /** Where the gap of this node begins that is not filled. Undefined: there is none. */
  openSince(key: string): EpochMicros | undefined {
    return this.#open.get(key);
  }

  /** How many nodes have gaps that are not filled. */
  get gaps(): number {
    return this.#open.size;
  }

  /** Why it is open. */
  causesOf(key: string): ReadonlySet<Cause> {
    return this.#causes.get(key) ?? new Set(this.#open.has(key) ? ["interruption"] : []);
  }

  /** From here on something may be missing, whatever is stored after it. */
  opened(key: string, from: EpochMicros, causes: ReadonlySet<Cause>): void {
    const [before, why] = [this.#open.get(key), this.causesOf(key)];
    if (before !== undefined && before <= from && [...causes].every((cause) => why.has(cause))) return;
    this.#open.set(key, epochMicros(Math.min(from, before ?? from)));
    this.#causes.set(key, new Set([...why, ...causes]));
    this.#news++;
    this.#dirty = true;
  }

  /** Whether a gap, or where the first of a node would begin, would be forgotten if the process were killed now. */
  get forgetful(): boolean {
    return this.#newsOnDisk < this.#news;
  }

  /** On disk a gap is open that is closed. If the process is killed now, the next one reports it a second time. */
  get outdated(): boolean {
    return this.#closedUnsaved;
  }

  /** All that was missing is on disk, or will never be had. */
  closed(key: string): void {
    if (!this.#open.delete(key)) return;
    this.#causes.delete(key);
    this.#dirty = true;
    this.#closedUnsaved = true;
  }

  /** Writes what has changed. Rejects when the disk does. */
  save(): Promise<void> {
    const saving = this.#saving.then(() => this.#write());
    this.#saving = saving.catch(() => {});
    return saving;
  }

  /** Closes the file of the times; `save` comes before. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#times.close();
  }

  async #write(): Promise<void> {
    await this.#times.settled();
    if (!this.#dirty) return;
    this.#dirty = false;
    this.#closedUnsaved = false;
    const news = this.#news;
    try {
      const [stored, open] = [this.#times.entries(), this.#open].map((entries) => Object.fromEntries(entries));
      const causes = Object.fromEntries(this.#causes.entries().map(([key, all]) => [key, [...all]]));
      await writeStateFile(this.#path, { version: 2, stored, open, causes });
      this.#newsOnDisk = news;
    } catch (error) {
      this.#dirty = true;
      this.#closedUnsaved = true;
      throw error;
    }
  }
}

/** Beside `history.json`. */
function timesIn(path: string): string {
  return `${path.replace(/\.json$/, "")}.times`;
}

/**
 * Up to when the values of each node are on disk, written with each acknowledgement: a process that is killed knows it to the last
 * value, while `history.json`, which is forced to the disk, is up to half a minute behind.
 *
 *   +----------+-----------+-----------+----
 *   | keys     | time of   | time of   | …   8 bytes each, times in microseconds as doubles
 *   | (digest) | the first | the second|
 *   +----------+-----------+-----------+----
 *
 * The keys and their order stand in `history.json`. The file is written in place and not forced to the disk: it survives the death
 * of the process. After a power cut it may be behind, never ahead, and what stands in `history.json` counts.
 */
class StoredTimes {
  readonly #path: string;
  readonly #file: InPlaceFile;
  /** By key: its place in the file. None is ever removed. */
  readonly #places = new Map<string, number>();
  /** The file, with room for more: in the place of a number the digest of the keys, then the times. */
  #numbers = new Float64Array(1);
  /** Keys that the digest is of. */
  #digested = -1;
  #isDue = false;

  constructor(path: string, times: readonly (readonly [string, number])[]) {
    this.#path = path;
    // A copy: a time that changes while it is written would be neither the one before nor the one after.
    this.#file = new InPlaceFile(path, () => Buffer.from(this.#bytes()));
    for (const [key, time] of times) {
      const place = this.#add(key);
      this.#numbers[place] = time;
    }
  }

  placeOf(key: string): number | undefined {
    return this.#places.get(key);
  }

  at(place: number): EpochMicros {
    return epochMicros(this.#numbers[place] ?? 0);
  }

  /**
   * Takes the time of a key, which may be new, or of a place, and gives the place. All times are written soon: what changes until then
   * is in it. A failure changes nothing but how much is known after a kill.
   */
  set(where: string | number, time: EpochMicros): number {
    const place = typeof where === "number" ? where : this.#add(where);
    this.#numbers[place] = time;
    if (this.#isDue) return place;
    this.#isDue = true;
    this.#file.write().catch(() => {});
    return place;
  }

  entries(): (readonly [string, number])[] {
    return Array.from(this.#places, ([key, place]) => [key, this.#numbers[place] ?? 0]);
  }

  /** Takes the times over that were written last, where they are of these very keys and later. Never rejects. */
  async takeOver(): Promise<void> {
    const bytes = await readFile(this.#path).catch(() => Buffer.alloc(0));
    const own = this.#bytes();
    if (bytes.length < own.length || !bytes.subarray(0, 8).equals(own.subarray(0, 8))) return;
    for (const place of this.#places.values()) {
      const time = bytes.readDoubleLE(8 * place);
      // A time of 0 was not written to the end.
      if (Number.isSafeInteger(time) && time > (this.#numbers[place] ?? 0)) this.#numbers[place] = time;
    }
  }

  /** Resolves when nothing is being written. */
  settled(): Promise<void> {
    return this.#file.settled();
  }

  /** Resolves when nothing is being written and the file is closed. */
  async close(): Promise<void> {
    await this.#file[Symbol.asyncDispose]();
  }

  /** The place of a key, which may be new. */
  #add(key: string): number {
    let place = this.#places.get(key);
    if (place === undefined) this.#places.set(key, (place = this.#places.size + 1));
    if (place >= this.#numbers.length) {
      const numbers = new Float64Array(2 * this.#numbers.length);
      numbers.set(this.#numbers);
      this.#numbers = numbers;
    }
    return place;
  }

  #bytes(): Buffer {
    this.#isDue = false;
    const bytes = Buffer.from(this.#numbers.buffer, 0, 8 * (this.#places.size + 1));
    if (this.#digested !== this.#places.size) digestOf([...this.#places.keys()]).copy(bytes);
    this.#digested = this.#places.size;
    return bytes;
  }
}

function digestOf(keys: readonly string[]): Buffer {
  return createHash("sha256").update(JSON.stringify(keys)).digest().subarray(0, 8);
}
