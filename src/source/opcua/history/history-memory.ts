// Persists for each node the time up to which its values are on disk, and where unfilled gaps begin.
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { z } from "zod";
import { type EpochMicros, epochMicros } from "../../../core/point.ts";
import { readStateFile, writeStateFile } from "../../../lib/files/state-file.ts";
import { InPlaceFile } from "../session/state-files.ts";
import type { Cause } from "./gaps.ts";

const times = z.record(z.string(), z.int());
const content = z.union([
  z.object({
    version: z.literal(2),
    stored: times,
    open: times,
    causes: z.record(z.string(), z.array(z.enum(["interruption", "overflow"]))).default({}),
  }),
  // The first format, without gaps.
  times.transform((stored) => ({ stored, open: {}, causes: {} })),
]);

interface Open {
  readonly from: EpochMicros;
  readonly causes: ReadonlySet<Cause>;
}

/**
 * Keys are NodeIds that survive a server restart (`portableNodeId`).
 *
 * The stored times are written with each acknowledgement into a separate file, which is up to date after a crash.
 * `history.json` is synced and up to half a minute old.
 *
 *   +----------+-----------+-----------+----
 *   | keys     | time of   | time of   | …   8 bytes each, times in microseconds as doubles
 *   | (digest) | the first | the second|
 *   +----------+-----------+-----------+----
 *
 * `history.json` has the keys in order. After a power cut the times file may be outdated, never ahead; then
 * `history.json` counts.
 */
export class HistoryMemory implements AsyncDisposable {
  readonly #path: string;
  readonly #open: Map<string, Open>;
  readonly #timesFile: InPlaceFile;
  /** Key → index in the times file. Keys are never removed. */
  readonly #places = new Map<string, number>();
  /** Content of the times file, with spare capacity. Element 0 holds the digest of the keys. */
  #times = new Float64Array(1);
  /** Number of keys in the digest. */
  #digested = -1;
  #timesAreDue = false;
  #dirty = false;
  /** A gap was closed since the last write. */
  #closedUnsaved = false;
  /** Count of opened gaps and new nodes, and how many of them are on disk. */
  #news = 0;
  #newsOnDisk = 0;
  #saving: Promise<void> = Promise.resolve();

  private constructor(path: string, { stored, open, causes }: Omit<z.output<typeof content>, "version">) {
    this.#path = path;
    // Copy the bytes, so that a concurrent change cannot corrupt a time.
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

  /** Never rejects: an unreadable file counts as missing. */
  static async open(path: string): Promise<HistoryMemory> {
    const found = (await readStateFile(path, content)) ?? { stored: {}, open: {}, causes: {} };
    const memory = new HistoryMemory(path, found);
    memory.#takeOver(await readFile(timesIn(path)).catch(() => Buffer.alloc(0)));
    return memory;
  }

  /** Time up to which the node's values are on disk. Undefined if it never had one. */
  storedUpTo(key: string): EpochMicros | undefined {
    const place = this.#places.get(key);
    return place === undefined ? undefined : this.storedAt(place);
  }

  /** Like `storedUpTo`, by the index that `stored` returned. */
  storedAt(place: number): EpochMicros {
    return epochMicros(this.#times[place] ?? 0);
  }

  /** Records a stored value. Returns the node's permanent index; `known` is that index, if the caller has it. */
  stored(key: string, time: EpochMicros, known?: number): number {
    const place = known ?? this.#places.get(key);
    if (place !== undefined && time <= this.storedAt(place)) return place;
    if (place === undefined) this.#news++;
    return this.#set(place ?? this.#placeFor(key), time);
  }

  /** The server's clock was set back: older values count as new from now on. Closes the node's gap. */
  setBack(key: string, time: EpochMicros): void {
    this.#set(this.#placeFor(key), time);
    this.closed(key);
  }

  /** Start of the node's unfilled gap. Undefined if there is none. */
  openSince(key: string): EpochMicros | undefined {
    return this.#open.get(key)?.from;
  }

  /** It has no time of any node: which values are missing cannot be determined. */
  get isEmpty(): boolean {
    return this.#places.size === 0 && this.#open.size === 0;
  }

  get gaps(): number {
    return this.#open.size;
  }

  causesOf(key: string): ReadonlySet<Cause> {
    return this.#open.get(key)?.causes ?? new Set();
  }

  /** Records that values may be missing from this time on, whatever is stored later. */
  opened(key: string, from: EpochMicros, causes: ReadonlySet<Cause>): void {
    const before = this.#open.get(key);
    if (before && before.from <= from && [...causes].every((cause) => before.causes.has(cause))) return;
    const first = epochMicros(Math.min(from, before?.from ?? from));
    this.#open.set(key, { from: first, causes: new Set([...this.causesOf(key), ...causes]) });
    this.#news++;
    this.#dirty = true;
  }

  /** Whether a crash now would forget a gap, or where the first gap of a node would begin. */
  get forgetful(): boolean {
    return this.#newsOnDisk < this.#news;
  }

  /** Whether the disk still shows a closed gap as open. After a crash, the next process would report it again. */
  get outdated(): boolean {
    return this.#closedUnsaved;
  }

  /** Closes the gap of a node that is filled or lost. */
  closed(key: string): void {
    if (!this.#open.delete(key)) return;
    this.#dirty = true;
    this.#closedUnsaved = true;
  }

  /** Writes pending changes. Rejects on a disk error. */
  save(): Promise<void> {
    const saving = this.#saving.then(() => this.#write());
    this.#saving = saving.catch(() => {});
    return saving;
  }

  /** Closes the times file. Call `save` first. */
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

  /** Schedules a write of all times. On failure, only the state after a crash is older. */
  #set(place: number, time: EpochMicros): number {
    this.#dirty = true;
    this.#times[place] = time;
    if (this.#timesAreDue) return place;
    this.#timesAreDue = true;
    this.#timesFile.write().catch(() => {});
    return place;
  }

  /** Adopts newer times from the last write if the file has the same keys. */
  #takeOver(bytes: Buffer): void {
    const own = this.#bytes();
    if (bytes.length < own.length || !bytes.subarray(0, 8).equals(own.subarray(0, 8))) return;
    for (const place of this.#places.values()) {
      const time = bytes.readDoubleLE(8 * place);
      // A time of 0 was not written completely.
      if (Number.isSafeInteger(time) && time > this.storedAt(place)) this.#times[place] = time;
    }
  }

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

function timesIn(path: string): string {
  return `${path.replace(/\.json$/, "")}.times`;
}
