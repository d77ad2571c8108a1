// Persists for each node the time up to which its values are on disk, and where unfilled gaps begin.
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { z } from "zod";
import { type EpochMicros, epochMicros } from "../../../core/point.ts";
import { readStateFile, writeStateFile } from "../../../lib/files/state-file.ts";
import { inPlaceFile } from "../session/state-files.ts";
import type { Cause } from "./gaps.ts";

const times = z.record(z.string(), z.int());
const content = z.object({
  version: z.literal(2),
  stored: times,
  open: times,
  causes: z.record(z.string(), z.array(z.enum(["interruption", "overflow"]))),
});

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
export type HistoryMemory = Awaited<ReturnType<typeof openHistoryMemory>>;

/** Never rejects: an unreadable file counts as missing. */
export async function openHistoryMemory(path: string) {
  const empty: Omit<z.output<typeof content>, "version"> = { stored: {}, open: {}, causes: {} };
  const { stored: found, open, causes } = (await readStateFile(path, content)) ?? empty;
  const openGaps = new Map<string, Open>(
    Object.entries(open).map(([key, from]) => [key, { from: epochMicros(from), causes: new Set(causes[key]) }]),
  );
  // Copy the bytes, so that a concurrent change cannot corrupt a time.
  const timesFile = inPlaceFile(timesIn(path), () => Buffer.from(fileBytes()));
  /** Key → index in the times file. Keys are never removed. */
  const places = new Map<string, number>();
  /** Content of the times file, with spare capacity. Element 0 holds the digest of the keys. */
  let kept = new Float64Array(1);
  /** Number of keys in the digest. */
  let digested = -1;
  let timesAreDue = false;
  let dirty = false;
  /** A gap was closed since the last write. */
  let closedUnsaved = false;
  /** Count of opened gaps and new nodes, and how many of them are on disk. */
  let newsSoFar = 0;
  let newsOnDisk = 0;
  let lastSave: Promise<void> = Promise.resolve();

  async function write(): Promise<void> {
    await timesFile.settled();
    if (!dirty) return;
    dirty = false;
    closedUnsaved = false;
    const news = newsSoFar;
    try {
      await writeStateFile(path, {
        version: 2,
        stored: Object.fromEntries(places.entries().map(([key, place]) => [key, kept[place] ?? 0])),
        open: Object.fromEntries(openGaps.entries().map(([key, { from }]) => [key, from])),
        causes: Object.fromEntries(openGaps.entries().map(([key, { causes }]) => [key, [...causes]])),
      });
      newsOnDisk = news;
    } catch (error) {
      dirty = true;
      closedUnsaved = true;
      throw error;
    }
  }

  /** Schedules a write of all times. On failure, only the state after a crash is older. */
  function set(place: number, time: EpochMicros): number {
    dirty = true;
    kept[place] = time;
    if (timesAreDue) return place;
    timesAreDue = true;
    timesFile.write().catch(() => {});
    return place;
  }

  /** Adopts newer times from the last write if the file has the same keys. */
  function takeOver(bytes: Buffer): void {
    const own = fileBytes();
    if (bytes.length < own.length || !bytes.subarray(0, 8).equals(own.subarray(0, 8))) return;
    for (const place of places.values()) {
      const time = bytes.readDoubleLE(8 * place);
      // A time of 0 was not written completely.
      if (Number.isSafeInteger(time) && time > storedAt(place)) kept[place] = time;
    }
  }

  function placeFor(key: string): number {
    const known = places.get(key);
    if (known !== undefined) return known;
    const place = places.size + 1;
    places.set(key, place);
    if (place >= kept.length) {
      const times = new Float64Array(2 * kept.length);
      times.set(kept);
      kept = times;
    }
    return place;
  }

  function fileBytes(): Buffer {
    timesAreDue = false;
    const view = Buffer.from(kept.buffer, 0, 8 * (places.size + 1));
    if (digested !== places.size) {
      const keys = JSON.stringify([...places.keys()]);
      createHash("sha256").update(keys).digest().copy(view, 0, 0, 8);
      digested = places.size;
    }
    return view;
  }

  /** Like `storedUpTo`, by the index that `stored` returned. */
  function storedAt(place: number): EpochMicros {
    return epochMicros(kept[place] ?? 0);
  }

  function causesOf(key: string): ReadonlySet<Cause> {
    return openGaps.get(key)?.causes ?? new Set();
  }

  /** Closes the gap of a node that is filled or lost. */
  function closed(key: string): void {
    if (!openGaps.delete(key)) return;
    dirty = true;
    closedUnsaved = true;
  }

  for (const [key, time] of Object.entries(found)) {
    const place = placeFor(key);
    kept[place] = time;
  }
  takeOver(await readFile(timesIn(path)).catch(() => Buffer.alloc(0)));

  return {
    storedAt,
    causesOf,
    closed,
    /** Time up to which the node's values are on disk. Undefined if it never had one. */
    storedUpTo(key: string): EpochMicros | undefined {
      const place = places.get(key);
      return place === undefined ? undefined : storedAt(place);
    },
    /** Records a stored value. Returns the node's permanent index; `known` is that index, if the caller has it. */
    stored(key: string, time: EpochMicros, known?: number): number {
      const place = known ?? places.get(key);
      if (place !== undefined && time <= storedAt(place)) return place;
      if (place === undefined) newsSoFar++;
      return set(place ?? placeFor(key), time);
    },
    /** The server's clock was set back: older values count as new from now on. Closes the node's gap. */
    setBack(key: string, time: EpochMicros): void {
      set(placeFor(key), time);
      closed(key);
    },
    /** Start of the node's unfilled gap. Undefined if there is none. */
    openSince: (key: string): EpochMicros | undefined => openGaps.get(key)?.from,
    /** It has no time of any node: which values are missing cannot be determined. */
    get isEmpty(): boolean {
      return places.size === 0 && openGaps.size === 0;
    },
    get gaps(): number {
      return openGaps.size;
    },
    /** Records that values may be missing from this time on, whatever is stored later. */
    opened(key: string, from: EpochMicros, causes: ReadonlySet<Cause>): void {
      const before = openGaps.get(key);
      if (before && before.from <= from && [...causes].every((cause) => before.causes.has(cause))) return;
      const first = epochMicros(Math.min(from, before?.from ?? from));
      openGaps.set(key, { from: first, causes: new Set([...causesOf(key), ...causes]) });
      newsSoFar++;
      dirty = true;
    },
    /** Whether a crash now would forget a gap, or where the first gap of a node would begin. */
    get forgetful(): boolean {
      return newsOnDisk < newsSoFar;
    },
    /** Whether the disk still shows a closed gap as open. After a crash, the next process would report it again. */
    get outdated(): boolean {
      return closedUnsaved;
    },
    /** Writes pending changes. Rejects on a disk error. */
    save(): Promise<void> {
      const saving = lastSave.then(write);
      lastSave = saving.catch(() => {});
      return saving;
    },
    /** Closes the times file. Call `save` first. */
    [Symbol.asyncDispose]: () => timesFile[Symbol.asyncDispose](),
  };
}

function timesIn(path: string): string {
  return `${path.replace(/\.json$/, "")}.times`;
}
