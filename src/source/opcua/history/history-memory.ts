// Remembers for each node the time up to which its values are on disk, and where gaps begin that are not filled, so that a
// later connection knows what is missing.
import { mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";
import type { EpochMicros } from "../../../core/point.ts";
import { epochMicros } from "../../../core/point.ts";
import { writeAtomically } from "../../../lib/atomic-file.ts";
import type { Cause } from "./gaps.ts";
import { readStoredTimes, StoredTimes } from "./stored-times.ts";

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
export class HistoryMemory {
  readonly #path: string;
  readonly #stored: Map<string, EpochMicros>;
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
    this.#stored = new Map(Object.entries(stored).map(([key, time]) => [key, epochMicros(time)]));
    this.#open = new Map(Object.entries(open).map(([key, time]) => [key, epochMicros(time)]));
    this.#causes = new Map(Object.entries(causes).map(([key, all]) => [key, new Set(all)]));
    this.#times = new StoredTimes(timesIn(path), this.#stored);
  }

  /** Never rejects: a file that cannot be read is as good as none. */
  static async open(path: string): Promise<HistoryMemory> {
    const stored = await readFile(path, "utf8")
      .then((text) => content.parse(JSON.parse(text)))
      .catch(() => ({ stored: {}, open: {}, causes: {} }));
    const memory = new HistoryMemory(path, stored);
    const newer = await readStoredTimes(timesIn(path), [...memory.#stored.keys()]);
    for (const [key, time] of newer) if (time > (memory.#stored.get(key) ?? time)) memory.#stored.set(key, time);
    return memory;
  }

  /** Up to when values of this node are on disk. Undefined: there never was one. */
  storedUpTo(key: string): EpochMicros | undefined {
    return this.#stored.get(key);
  }

  /** A value is on disk. */
  stored(key: string, time: EpochMicros): void {
    const before = this.#stored.get(key);
    if (before !== undefined && time <= before) return;
    if (before === undefined) this.#news++;
    this.#stored.set(key, time);
    this.#dirty = true;
    this.#times.write();
  }

  /** The clock of the server was set back to this: what comes now is new although it is older. Gaps of the other time are void. */
  setBack(key: string, time: EpochMicros): void {
    this.#stored.set(key, time);
    this.#times.write();
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

  async #write(): Promise<void> {
    await this.#times.settled();
    if (!this.#dirty) return;
    this.#dirty = false;
    this.#closedUnsaved = false;
    const news = this.#news;
    try {
      await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 });
      const [stored, open] = [this.#stored, this.#open].map((map) => Object.fromEntries(map));
      const causes = Object.fromEntries(this.#causes.entries().map(([key, all]) => [key, [...all]]));
      await writeAtomically(this.#path, JSON.stringify({ version: 2, stored, open, causes }));
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
