// Reads the stream of the cluster through the same interface as the local buffer.

import { randomBytes } from "node:crypto";
import type { KeyBucket, PointStream } from "../../cluster/connection/jetstream.ts";
import { Block, type BlockId } from "../../core/block.ts";
import type { BufferReader, Lane, Settlement, TakeOptions } from "../../core/buffer.ts";
import { AgentError, isAgentError } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import { layOut } from "../disk/blocks/block-cut.ts";
import { SeriesSorter } from "../disk/format/columns.ts";
import { InputTable } from "../disk/format/input-table.ts";
import { SettlementOrder } from "../disk/segments/late-points.ts";
import { SettledFrames, SettlementRecord, type StoredSettlement } from "./settled-frames.ts";
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
  options: StreamReaderOptions,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<StreamReader> {
  const record = new SettlementRecord(options.state, randomBytes(8).toString("hex"), runtime.clock);
  const before = await record.open();
  const reader = new StreamReader(options, runtime, record, before);
  await reader.open(signal);
  return reader;
}

export class StreamReader implements BufferReader {
  readonly #options: StreamReaderOptions;
  readonly #runtime: Runtime;
  readonly #record: SettlementRecord;
  readonly #settled: SettledFrames;
  readonly #cutter: StreamCutter;
  readonly #inputs = new InputTable();
  readonly #sorter = new SeriesSorter();
  readonly #leased = new Map<number, FrameLease>();
  readonly #order = new SettlementOrder(this.#leased, {
    settle: (lease, { inputs }) => {
      lease?.settle(inputs);
      this.#cutter.update(lease?.frames ?? []);
    },
    release: (lease) => {
      lease?.release();
      this.#cutter.update(lease?.frames ?? []);
    },
  });
  readonly #closed = new AbortController();
  #before: StoredSettlement | undefined;
  #nextId: number;
  #turn: Promise<unknown> = Promise.resolve();
  #writing: Promise<void> = Promise.resolve();
  #wake = Promise.withResolvers<void>();
  #trimmedAt = 0;
  readonly #passedFor = new Set<string>();

  constructor(
    options: StreamReaderOptions,
    runtime: Runtime,
    record: SettlementRecord,
    before: StoredSettlement | undefined,
  ) {
    this.#options = options;
    this.#runtime = runtime;
    this.#record = record;
    this.#before = before;
    this.#settled = new SettledFrames(before?.frames, () => runtime.clock.monotonic());
    const parts = {
      stream: options.stream,
      names: new StreamNames(options.state, runtime.clock),
      inputs: this.#inputs,
      settled: this.#settled,
      onLost: (messages: number) => this.#lost(messages),
      onPassed: (reason: string) => this.#passed(reason),
    };
    this.#cutter = new StreamCutter(parts, before?.partial ?? []);
    // A random start, so that block IDs of an earlier term are unknown.
    this.#nextId = Math.floor(runtime.random() * 2 ** 20) * 2 ** 32;
  }

  /** Resolves once an earlier reader can no longer settle. */
  async open(signal: AbortSignal): Promise<void> {
    await this.#follow();
    await this.#write(signal);
  }

  async take(lane: Lane, options: TakeOptions, signal: AbortSignal): Promise<Block | undefined> {
    for (;;) {
      signal.throwIfAborted();
      this.#closed.signal.throwIfAborted();
      const news = this.#wake.promise;
      // Without a block in the live lane, take late points, which only the backlog has.
      const lanes: readonly Lane[] = lane === "live" && options.wait ? ["live", "backlog"] : [lane];
      for (const each of lanes) {
        const block = await this.#inTurn(() => this.#cut(each, options, signal));
        if (block || signal.aborted) {
          if (block && signal.aborted) this.release([block.id]);
          signal.throwIfAborted();
          return block;
        }
      }
      if (!options.wait) return undefined;
      const both = AbortSignal.any([signal, this.#closed.signal]);
      await Promise.race([news, this.#runtime.clock.sleep(pollMs, both)]);
    }
  }

  async settle(done: readonly Settlement[]): Promise<void> {
    const settlements = done.map(({ block, inputs, refused = 0 }) => {
      const numbers = inputs.map((input) => this.#inputs.find(input)).filter((number) => number !== undefined);
      return { block, inputs: Uint32Array.from(numbers), refused };
    });
    this.#order.settle(settlements);
    await this.#persist();
  }

  release(blocks: readonly BlockId[]): void {
    this.#order.release(blocks);
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort(new AgentError("BUFFER_UNAVAILABLE", "the reader of the stream is closed"));
    await this.#turn;
    await this.#writing;
  }

  async #cut(lane: Lane, options: TakeOptions, signal: AbortSignal): Promise<Block | undefined> {
    if (signal.aborted) return undefined;
    try {
      await this.#follow();
      const cut = await this.#cutter.cut(lane, options);
      if (!cut) return undefined;
      const lease = new FrameLease(cut.frames, cut.series);
      this.#cutter.update(cut.frames);
      const id = this.#nextId++;
      this.#leased.set(id, lease);
      const { block } = layOut(id, { ...cut, late: lease.late }, numbersUpTo(this.#inputs.size), this.#sorter);
      const inputs = this.#inputs.inputsAt(block.inputs);
      return new Block(id as BlockId, { ...block, inputs }); // brand of a new block ID
    } catch (error) {
      // Unreachable servers count as an empty stream for now.
      if (isAgentError(error) && error.code === "CLUSTER_UNREACHABLE") return undefined;
      throw error;
    }
  }

  async #follow(): Promise<void> {
    const state = await this.#options.stream.state();
    if (!state) return;
    const before = this.#before;
    this.#before = undefined;
    const { positions } = this.#cutter;
    positions.follow(state, before);
    if (positions.isDrained) this.#settled.drained();
    await this.#trim();
  }

  /** Removes only messages stored as settled, at positions that the leader has confirmed since. */
  async #trim(): Promise<void> {
    const { settledUpTo, first } = this.#cutter.positions;
    const now = this.#runtime.clock.monotonic();
    if (settledUpTo === first || (settledUpTo - first < trimMessages && now - this.#trimmedAt < trimMs)) return;
    await this.#persist();
    // While the servers did not answer, they may have lost messages and given their positions to others.
    const state = await this.#options.stream.state();
    if (!state || !this.#cutter.positions.isValidFor(state)) return;
    await this.#options.stream.purgeBefore(settledUpTo);
    this.#trimmedAt = now;
  }

  #persist(): Promise<void> {
    const writing = this.#writing.then(() => this.#write(this.#closed.signal));
    this.#writing = writing.catch(() => {});
    return writing;
  }

  async #write(signal: AbortSignal): Promise<void> {
    const { partial, positions } = this.#cutter;
    const { stream, done: whole } = positions;
    const { generation } = this.#options;
    await this.#record.write({ generation, stream, whole, partial, frames: this.#settled.stored }, signal);
  }

  /** Counts them once a write shows that no later reader has delivered and removed them: this agent may be suspended. */
  #lost(messages: number): void {
    const count = () => {
      this.#runtime.metrics.counter(lostMetric).add(messages);
      this.#runtime.log.error({ messages }, "the stream of the cluster has lost messages that were not delivered");
    };
    this.#persist().then(count, () => {}); // the term is over
  }

  #passed(reason: string): void {
    if (this.#passedFor.has(reason)) return;
    this.#passedFor.add(reason);
    this.#runtime.log.error({ reason }, "messages of the cluster cannot be delivered; they stay in the stream");
  }

  /** Takes run one after the other. */
  #inTurn<T>(call: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(call);
    this.#turn = result.catch(() => {});
    return result;
  }
}

/** Maps each number to itself, because the places in a cut already are input numbers. */
let identity: number[] = [];
function numbersUpTo(count: number): readonly number[] {
  if (identity.length < count) identity = Array.from({ length: 2 * count }, (_, i) => i);
  return identity;
}
