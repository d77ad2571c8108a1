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

/** What is missing of a node, and why. */
interface Open {
  readonly from: EpochMicros;
  readonly causes: ReadonlySet<Cause>;
}

/**
 * Keys are NodeIds that stay true when the server starts again (`portableNodeId`).
 *
 * Up to when the values of each node are on disk is written with each acknowledgement into a file of its own: a process that is killed
 * knows it to the last value, while `history.json`, which is forced to the disk, is up to half a minute behind.
 *
 *   +----------+-----------+-----------+----
 *   | keys     | time of   | time of   | …   8 bytes each, times in microseconds as doubles
 *   | (digest) | the first | the second|
 *   +----------+-----------+-----------+----
 *
 * The keys and their order stand in `history.json`. After a power cut the file of the times may be behind, never ahead, and what stands
 * in `history.json` counts.
 */
export class HistoryMemory implements AsyncDisposable {
  readonly #path: string;
  readonly #open: Map<string, Open>;
  readonly #timesFile: InPlaceFile;
  /** By key: its place in the file of the times. None is ever removed. */
  readonly #places = new Map<string, number>();
  /** That file, with room for more: in the place of a number the digest of the keys, then the times. */
  #times = new Float64Array(1);
  /** Keys that the digest is of. */
  #digested = -1;
  #timesAreDue = false;
  #dirty = false;
  /** A gap was closed since the last write. */
  #closedUnsaved = false;
  /** Gaps that have opened and nodes that had their first value, and how many of them are on disk. */
  #news = 0;
  #newsOnDisk = 0;
  #saving: Promise<void> = Promise.resolve();

  private constructor(path: string, { stored, open, causes }: Omit<z.output<typeof content>, "version">) {
    this.#path = path;
    // A copy: a time that changes while it is written would be neither the one before nor the one after.
    this.#timesFile = new InPlaceFile(timesIn(path), () => Buffer.from(this.#bytes()));
    const why = new Map<string, readonly Cause[]>(Object.entries(causes));
    this.#open = new Map(
      Object.entries(open).map(([key, from]) => [
        key,
        { from: epochMicros(from), causes: new Set(why.get(key) ?? ["interruption"]) },
      ]),
    );
    for (const [key, time] of Object.entries(stored)) {
      const place = this.#placeFor(key);
      this.#times[place] = time;
    }
  }

  /** Never rejects: a file that cannot be read is as good as none. */
  static async open(path: string): Promise<HistoryMemory> {
    const found = (await readStateFile(path, content)) ?? { stored: {}, open: {}, causes: {} };
    const memory = new HistoryMemory(path, found);
    memory.#takeOver(await readFile(timesIn(path)).catch(() => Buffer.alloc(0)));
    return memory;
  }

  /** Up to when values of this node are on disk. Undefined: there never was one. */
  storedUpTo(key: string): EpochMicros | undefined {
    const place = this.#places.get(key);
    return place === undefined ? undefined : this.storedAt(place);
  }

  /** As `storedUpTo`, at the place that `stored` gave. */
  storedAt(place: number): EpochMicros {
    return epochMicros(this.#times[place] ?? 0);
  }

  /** A value is on disk. `known`: the place of this node, if it is known. Gives it: it stays the same. */
  stored(key: string, time: EpochMicros, known?: number): number {
    const place = known ?? this.#places.get(key);
    if (place !== undefined && time <= this.storedAt(place)) return place;
    if (place === undefined) this.#news++;
    return this.#set(place ?? this.#placeFor(key), time);
  }

  /** The clock of the server was set back to this: what comes now is new although it is older. Gaps of the other time are void. */
  setBack(key: string, time: EpochMicros): void {
    this.#set(this.#placeFor(key), time);
    this.closed(key);
  }

  /** Where the gap of this node begins that is not filled. Undefined: there is none. */
  openSince(key: string): EpochMicros | undefined {
    return this.#open.get(key)?.from;
  }

  /** How many nodes have gaps that are not filled. */
  get gaps(): number {
    return this.#open.size;
  }

  /** Why it is open. */
  causesOf(key: string): ReadonlySet<Cause> {
    return this.#open.get(key)?.causes ?? new Set();
  }

  /** From here on something may be missing, whatever is stored after it. */
  opened(key: string, from: EpochMicros, causes: ReadonlySet<Cause>): void {
    const before = this.#open.get(key);
    if (before && before.from <= from && [...causes].every((cause) => before.causes.has(cause))) return;
    const first = epochMicros(Math.min(from, before?.from ?? from));
    this.#open.set(key, { from: first, causes: new Set([...this.causesOf(key), ...causes]) });
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
    await this.#timesFile[Symbol.asyncDispose]();
  }

  async #write(): Promise<void> {
    await this.#timesFile.settled();
    if (!this.#dirty) return;
    this.#dirty = false;
    this.#closedUnsaved = false;
    const news = this.#news;
    try {
      await writeStateFile(this.#path, {
        version: 2,
        stored: Object.fromEntries(this.#places.entries().map(([key, place]) => [key, this.#times[place] ?? 0])),
        open: Object.fromEntries(this.#open.entries().map(([key, { from }]) => [key, from])),
        causes: Object.fromEntries(this.#open.entries().map(([key, { causes }]) => [key, [...causes]])),
      });
      this.#newsOnDisk = news;
    } catch (error) {
      this.#dirty = true;
      this.#closedUnsaved = true;
      throw error;
    }
  }

  /** All times are written soon: what changes until then is in it. A failure changes nothing but how much is known after a kill. */
  #set(place: number, time: EpochMicros): number {
    this.#dirty = true;
    this.#times[place] = time;
    if (this.#timesAreDue) return place;
    this.#timesAreDue = true;
    this.#timesFile.write().catch(() => {});
    return place;
  }

  /** Takes the times over that were written last, where they are of these very keys and later. */
  #takeOver(bytes: Buffer): void {
    const own = this.#bytes();
    if (bytes.length < own.length || !bytes.subarray(0, 8).equals(own.subarray(0, 8))) return;
    for (const place of this.#places.values()) {
      const time = bytes.readDoubleLE(8 * place);
      // A time of 0 was not written to the end.
      if (Number.isSafeInteger(time) && time > this.storedAt(place)) this.#times[place] = time;
    }
  }

  /** The place of a key, which may be new. */
  #placeFor(key: string): number {
    const known = this.#places.get(key);
    if (known !== undefined) return known;
    const place = this.#places.size + 1;
    this.#places.set(key, place);
    if (place >= this.#times.length) {
      const times = new Float64Array(2 * this.#times.length);
      times.set(this.#times);
      this.#times = times;
    }
    return place;
  }

  #bytes(): Buffer {
    this.#timesAreDue = false;
    const bytes = Buffer.from(this.#times.buffer, 0, 8 * (this.#places.size + 1));
    if (this.#digested !== this.#places.size) {
      const keys = JSON.stringify([...this.#places.keys()]);
      createHash("sha256").update(keys).digest().copy(bytes, 0, 0, 8);
      this.#digested = this.#places.size;
    }
    return bytes;
  }
}

/** Beside `history.json`. */
function timesIn(path: string): string {
  return `${path.replace(/\.json$/, "")}.times`;
}
