// The settled frames, regardless of their positions in the stream. Stored under one key of the bucket.
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import type { KeyBucket } from "../../cluster/connection/jetstream.ts";
import { AgentError, isAgentError } from "../../core/errors.ts";
import type { Clock } from "../../core/runtime.ts";
import { RangeSet } from "../disk/counters/ranges.ts";
import { epochKey, type FrameHeader } from "./stream-frame.ts";

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
