// Reads the stream of the cluster through the same interface as the local buffer.

import { randomBytes } from "node:crypto";
import type { KeyBucket, PointStream } from "../../cluster/connection/jetstream.ts";
import { Block, type BlockId } from "../../core/block.ts";
import type { BufferReader, Lane, TakeOptions } from "../../core/buffer.ts";
import { AgentError, isAgentError } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import { layOut } from "../disk/blocks/block-cut.ts";
import { SeriesSorter } from "../disk/format/columns.ts";
import { InputTable } from "../disk/format/input-table.ts";
import { SettlementOrder } from "../disk/segments/late-points.ts";
import { SettledFrames, SettlementRecord } from "./settled-frames.ts";
import { StreamCutter } from "./stream-cut.ts";
import { FrameLease } from "./stream-leases.ts";
import { StreamNames } from "./stream-names.ts";

export interface StreamReaderOptions {
  readonly stream: PointStream;
  /** A bucket whose entries do not expire. */
  readonly state: KeyBucket;
  readonly generation: number;
}

const lostMetric = {
  name: "cluster_lost_messages_total",
  help: "Messages that left the stream before they were delivered, or were damaged, while this agent delivered",
} as const;

/** Polling interval of a waiting take. */
const pollMs = 200;
/** The stream is trimmed after this many settled messages at its start, or after this time. */
const trimMessages = 64;
const trimMs = 10_000;

/** Takes over from an earlier term's reader, whose next settlement fails. Rejects as the servers do, or on abort. */
export async function openStreamReader(
  { stream, state: bucket, generation }: StreamReaderOptions,
  { clock, log, metrics, random }: Runtime,
  opening: AbortSignal,
): Promise<BufferReader> {
  const record = new SettlementRecord(bucket, randomBytes(8).toString("hex"), clock);
  let before = await record.open();
  const settled = new SettledFrames(before?.frames, () => clock.monotonic());
  const inputs = new InputTable();
  const sorter = new SeriesSorter();
  const names = new StreamNames(bucket, clock);
  const cutter = new StreamCutter(
    { stream, names, inputs, settled, onLost: lost, onPassed: passed },
    before?.partial ?? [],
  );
  const { positions } = cutter;
  const leased = new Map<number, FrameLease>();
  const order = new SettlementOrder(leased, {
    settle(lease, settlement) {
      lease?.settle(settlement.inputs);
      cutter.update(lease?.frames ?? []);
    },
    release(lease) {
      lease?.release();
      cutter.update(lease?.frames ?? []);
    },
  });
  const closed = new AbortController();
  const passedFor = new Set<string>();
  // A random start, so that block IDs of an earlier term are unknown.
  let nextId = Math.floor(random() * 2 ** 20) * 2 ** 32;
  let turn: Promise<unknown> = Promise.resolve();
  let writing: Promise<void> = Promise.resolve();
  let news = Promise.withResolvers<void>();
  let trimmedAt = 0;

  async function cut(lane: Lane, options: TakeOptions, signal: AbortSignal): Promise<Block | undefined> {
    if (signal.aborted) return undefined;
    try {
      await follow();
      const found = await cutter.cut(lane, options);
      if (!found) return undefined;
      const lease = new FrameLease(found.frames, found.series);
      cutter.update(found.frames);
      const id = nextId++;
      leased.set(id, lease);
      const { block } = layOut(id, { ...found, late: lease.late }, numbersUpTo(inputs.size), sorter);
      return new Block(id as BlockId, { ...block, inputs: inputs.inputsAt(block.inputs) }); // brand of a new block ID
    } catch (error) {
      // Unreachable servers count as an empty stream for now.
      if (isAgentError(error, "CLUSTER_UNREACHABLE")) return undefined;
      throw error;
    }
  }

  async function follow(): Promise<void> {
    const state = await stream.state();
    if (!state) return;
    const earlier = before;
    before = undefined;
    positions.follow(state, earlier);
    if (positions.isDrained) settled.drained();
    await trim();
  }

  /** Removes only messages stored as settled, at positions that the leader has confirmed since. */
  async function trim(): Promise<void> {
    const { settledUpTo, first } = positions;
    const now = clock.monotonic();
    if (settledUpTo === first || (settledUpTo - first < trimMessages && now - trimmedAt < trimMs)) return;
    await persist();
    // While the servers did not answer, they may have lost messages and given their positions to others.
    const state = await stream.state();
    if (!state || !positions.isValidFor(state)) return;
    await stream.purgeBefore(settledUpTo);
    trimmedAt = now;
  }

  function persist(): Promise<void> {
    const written = writing.then(() => write(closed.signal));
    writing = written.catch(() => {});
    return written;
  }

  async function write(signal: AbortSignal): Promise<void> {
    const { stream: leader, done: whole } = positions;
    const { partial } = cutter;
    await record.write({ generation, stream: leader, whole, partial, frames: settled.stored }, signal);
  }

  /** Counts them once a write shows that no later reader has delivered and removed them: this agent may be suspended. */
  function lost(messages: number): void {
    const count = () => {
      metrics.counter(lostMetric).add(messages);
      log.error({ messages }, "the stream of the cluster has lost messages that were not delivered");
    };
    persist().then(count, () => {}); // the term is over
  }

  function passed(reason: string): void {
    if (passedFor.has(reason)) return;
    passedFor.add(reason);
    log.error({ reason }, "messages of the cluster cannot be delivered; they stay in the stream");
  }

  /** Takes run one after the other. */
  function inTurn<T>(call: () => Promise<T>): Promise<T> {
    const result = turn.then(call);
    turn = result.catch(() => {});
    return result;
  }

  function release(blocks: readonly BlockId[]): void {
    order.release(blocks);
    news.resolve();
    news = Promise.withResolvers();
  }

  await follow();
  // Once it is written, an earlier reader can no longer settle.
  await write(opening);
  return {
    async take(lane, options, signal) {
      for (;;) {
        signal.throwIfAborted();
        closed.signal.throwIfAborted();
        const awaited = news.promise;
        // Without a block in the live lane, take late points, which only the backlog has.
        const lanes: readonly Lane[] = lane === "live" && options.wait ? ["live", "backlog"] : [lane];
        for (const each of lanes) {
          const block = await inTurn(() => cut(each, options, signal));
          if (block && signal.aborted) release([block.id]);
          signal.throwIfAborted();
          if (block) return block;
        }
        if (!options.wait) return undefined;
        await Promise.race([awaited, clock.sleep(pollMs, AbortSignal.any([signal, closed.signal]))]);
      }
    },
    async settle(done) {
      order.settle(
        done.map(({ block, inputs: ids, refused = 0 }) => {
          const numbers = ids.map((input) => inputs.find(input)).filter((number) => number !== undefined);
          return { block, inputs: Uint32Array.from(numbers), refused };
        }),
      );
      await persist();
    },
    release,
    async [Symbol.asyncDispose]() {
      closed.abort(new AgentError("BUFFER_UNAVAILABLE", "the reader of the stream is closed"));
      await turn;
      await writing;
    },
  };
}

/** Maps each number to itself, because the places in a cut already are input numbers. */
let identity: number[] = [];
function numbersUpTo(count: number): readonly number[] {
  if (identity.length < count) identity = Array.from({ length: 2 * count }, (_, i) => i);
  return identity;
}
