// The settled frames, regardless of their positions in the stream. Stored under one key of the bucket.
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { z } from "zod";
import type { KeyBucket } from "../../cluster/connection/jetstream.ts";
import type { Loss } from "../../core/buffer.ts";
import { AgentError, isAgentError } from "../../core/errors.ts";
import { epochMicros } from "../../core/point.ts";
import type { Clock } from "../../core/runtime.ts";
import { readStateFile, writeStateFile } from "../../lib/files/state-file.ts";
import { RangeSet } from "../disk/counters/ranges.ts";
import { epochKey, type FrameHeader, type StreamFrame } from "./stream-frame.ts";

const settledKey = "settled.points";
/** Maximum epochs kept per node: while the stream may hold their frames, and once it is drained. */
const mostEpochs = 256;
const keptEpochs = 8;
/** By then an agent that runs has removed settled frames from its kept tail. */
const forgottenAfterMs = 600_000;
const retryMs = 250;
/** Below the default limit of NATS, 1 MiB. */
const mostBytes = 900 * 1_024;
/** Bounds kept per epoch if the record would be too large; even. */
const mostBounds = 2_000;

export interface PartialFrame {
  readonly epoch: string;
  readonly number: number;
  /** Start and end of each range of unsettled series. */
  readonly open: readonly number[];
}

export interface StoredSettlement {
  /** Identifies the reader that wrote it. A reader of an earlier term detects another one by it. */
  readonly token: string;
  readonly generation: number;
  /** Stream and leader that the sequences in `whole` refer to. */
  readonly stream: string;
  readonly whole: readonly number[];
  readonly partial: readonly PartialFrame[];
  /** Settled frame numbers by `epochKey`, the newest epoch of a node last. */
  readonly frames: readonly (readonly [epoch: string, bounds: readonly number[]])[];
}

export class SettledFrames {
  readonly #epochs = new Map<string, RangeSet>();
  /** Monotonic time of the last settlement of the epoch by this object. */
  readonly #settledAt = new Map<string, number>();
  readonly #now: () => number;

  /** `now`: the monotonic time, needed to add frames. */
  constructor(stored: StoredSettlement["frames"] = [], now = () => 0) {
    this.#now = now;
    for (const [epoch, bounds] of stored) this.#epochs.set(epoch, new RangeSet(bounds));
  }

  has(frame: FrameHeader): boolean {
    return this.#epochs.get(epochKey(frame))?.covers(frame.number, frame.number + 1) ?? false;
  }

  /** How many frames of the epoch, from number `from` to before `to`, are settled. */
  countIn(epoch: Pick<FrameHeader, "node" | "epoch">, from: number, to: number): number {
    return this.#epochs.get(epochKey(epoch))?.countIn(from, to) ?? 0;
  }

  add(frame: FrameHeader): void {
    const key = epochKey(frame);
    this.#settledAt.set(key, this.#now());
    let ranges = this.#epochs.get(key);
    if (!ranges) {
      this.#epochs.set(key, (ranges = new RangeSet()));
      this.#forget(mostEpochs, 0);
    }
    ranges.add(frame.number, frame.number + 1);
  }

  /** After a drain, only kept tails may still bring frames of earlier epochs. */
  drained(): void {
    this.#forget(keptEpochs, forgottenAfterMs);
  }

  /** Forgets the oldest epochs of a node that has more than `most`, except those settled less than `ageMs` ago. */
  #forget(most: number, ageMs: number): void {
    const until = this.#now() - ageMs;
    const nodes = Map.groupBy(this.#epochs.keys(), (epoch) => epoch.slice(0, epoch.lastIndexOf("\n")));
    for (const epochs of nodes.values())
      for (const epoch of epochs.slice(0, Math.max(0, epochs.length - most))) {
        if ((this.#settledAt.get(epoch) ?? until) > until) continue;
        this.#epochs.delete(epoch);
        this.#settledAt.delete(epoch);
      }
  }

  get stored(): StoredSettlement["frames"] {
    return Array.from(this.#epochs, ([epoch, { bounds }]) => [epoch, bounds] as const);
  }
}

async function readEntry(bucket: KeyBucket) {
  const entry = await bucket.get(settledKey);
  // The cast is safe: only readers of the stream write this key.
  return (
    entry && {
      stored: JSON.parse(String(zstdDecompressSync(entry.value))) as StoredSettlement,
      revision: entry.revision,
    }
  );
}

/** Undefined: nothing was settled yet, or the servers have lost it. Rejects as the bucket does. */
export async function readSettlement(bucket: KeyBucket): Promise<StoredSettlement | undefined> {
  return (await readEntry(bucket))?.stored;
}

/** Writes the settlement for the reader of one term. A write of a later term ends this one. */
export class SettlementRecord {
  readonly #bucket: KeyBucket;
  readonly #clock: Clock;
  readonly #token: string;
  #revision: number | undefined;

  constructor(bucket: KeyBucket, token: string, clock: Clock) {
    this.#bucket = bucket;
    this.#token = token;
    this.#clock = clock;
  }

  /** The record of the earlier term. Call `write` next, which takes it over. Rejects as the bucket does. */
  async open(): Promise<StoredSettlement | undefined> {
    const found = await readEntry(this.#bucket);
    this.#revision = found?.revision;
    return found?.stored;
  }

  /** Resolves once stored. Rejects with `CLUSTER_FENCED` if another reader has written since, or on abort. */
  async write(settlement: Omit<StoredSettlement, "token">, signal: AbortSignal): Promise<void> {
    const value = this.#encode(settlement);
    for (;;) {
      signal.throwIfAborted();
      try {
        const revision =
          this.#revision === undefined
            ? await this.#bucket.create(settledKey, value)
            : await this.#bucket.update(settledKey, value, this.#revision);
        if (revision === undefined) await this.#lookAgain();
        else {
          this.#revision = revision;
          return;
        }
      } catch (error) {
        if (!isAgentError(error) || error.code === "CLUSTER_FENCED") throw error;
        await this.#clock.sleep(retryMs, signal);
      }
    }
  }

  /** If too large, omits what can be recomputed first, then what causes the fewest repeated deliveries. */
  #encode(settlement: Omit<StoredSettlement, "token">): Uint8Array {
    const newest = settlement.frames.map(([epoch, bounds]) => [epoch, bounds.slice(-mostBounds)] as const);
    const smaller = [{}, { whole: [] }, { whole: [], partial: [] }, { whole: [], partial: [], frames: newest }];
    let value = new Uint8Array();
    for (const change of smaller) {
      value = zstdCompressSync(JSON.stringify({ token: this.#token, ...settlement, ...change }));
      if (value.length <= mostBytes) break;
    }
    return value;
  }

  /** Continues after an own write whose answer was lost. */
  async #lookAgain(): Promise<void> {
    const found = await readEntry(this.#bucket);
    if (found && found.stored.token !== this.#token)
      throw new AgentError("CLUSTER_FENCED", "another agent settles the points of the cluster now");
    this.#revision = found?.revision;
  }
}

// Accounts for frames that left the kept tail before they were settled. If the servers drop them now, as after `maxAge`,
// they cannot be published again: their points are counted as lost, by the agent that recorded them.
//
//   published ─▶ kept tail, 10 min ─▶ run of frames ─▶ settled, or no longer in the stream: lost
//
// A run is judged as a whole. If part of it was settled, the lost points are estimated by the number of frames.

const runFrames = 256;
const keptIntervals = 32;

const run = z.object({
  node: z.string(),
  epoch: z.string(),
  /** Frame numbers, without `end`. */
  first: z.int(),
  end: z.int(),
  points: z.int(),
  /** Creation time of the stream, and the last sequence in it. */
  created: z.string(),
  last: z.int(),
  from: z.number(),
  to: z.number(),
});
const time = z.number().transform(epochMicros);
const interval = z.object({ number: z.int(), points: z.int(), from: time, to: time });
const content = z.object({ runs: z.array(run), lostPoints: z.int(), intervals: z.array(interval) });

export interface UnkeptFrame {
  readonly frame: StreamFrame;
  readonly sequence: number;
  readonly created: string;
}

export type UnkeptFrames = Awaited<ReturnType<typeof openUnkeptFrames>>;

/** Continues the file at `path`. An unreadable one counts as empty. Never rejects. */
export async function openUnkeptFrames(path: string) {
  const record: z.output<typeof content> = (await readStateFile(path, content)) ?? {
    runs: [],
    lostPoints: 0,
    intervals: [],
  };
  return {
    /** Undefined: nothing was lost yet. */
    get loss(): Loss | undefined {
      const { lostPoints: points, intervals } = record;
      if (points === 0) return undefined;
      return { reason: "cluster", points, from: intervals[0]?.from, to: intervals.at(-1)?.to, intervals };
    },
    /** Resolves once stored. Rejects as the disk does. */
    async add(unkept: readonly UnkeptFrame[]): Promise<void> {
      if (unkept.length === 0) return;
      for (const { frame, sequence, created } of unkept) {
        const { node, epoch, number, points, times } = frame;
        const from = times.reduce((least, time) => Math.min(least, time), Number.POSITIVE_INFINITY);
        const to = times.reduce((most, time) => Math.max(most, time), Number.NEGATIVE_INFINITY);
        const ofEpoch = record.runs.filter((one) => epochKey(one) === epochKey(frame));
        // After a crash, frames of the tail are added again.
        if (ofEpoch.some(({ first, end }) => first <= number && number < end)) continue;
        const known = ofEpoch.at(-1);
        if (known?.end === number && known.created === created && number - known.first < runFrames) {
          known.end++;
          known.points += points;
          known.last = Math.max(known.last, sequence);
          known.from = Math.min(known.from, from);
          known.to = Math.max(known.to, to);
        } else
          record.runs.push({ node, epoch, first: number, end: number + 1, points, created, last: sequence, from, to });
      }
      await writeStateFile(path, record);
    },
    /**
     * Removes runs that are settled or lost. `settled` must have been read after the state of the stream. Resolves with
     * the number of points lost, once stored. Rejects as the disk does.
     */
    async judge(settled: SettledFrames, created: string, firstSequence: number): Promise<number> {
      let lost = 0;
      const waiting = record.runs.filter((one) => {
        const frames = one.end - one.first;
        const left = frames - settled.countIn(one, one.first, one.end);
        if (left > 0 && one.created === created && one.last >= firstSequence) return true;
        const points = Math.round((one.points * left) / frames);
        if (points > 0) {
          lost += points;
          const number = (record.intervals.at(-1)?.number ?? 0) + 1;
          const added = { number, points, from: epochMicros(one.from), to: epochMicros(one.to) };
          record.intervals = [...record.intervals, added].slice(-keptIntervals);
        }
        return false;
      });
      record.lostPoints += lost;
      if (waiting.length === record.runs.length) return 0;
      record.runs = waiting;
      await writeStateFile(path, record);
      return lost;
    },
  };
}
