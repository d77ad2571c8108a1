// Takes blocks from the log thread and tells it what became of them.
import type { Block, BlockId, BufferReader, Lane, Series, Settlement, TakeOptions } from "../../../core/buffer.ts";
import type { InputId } from "../../../core/point.ts";
import { orAbort } from "../../../lib/abort.ts";
import type { ShelfBlock } from "../blocks/block-layout.ts";
import { closedError } from "./group-commit.ts";
import type { BareRequest, StoreReply } from "./protocol.ts";

export interface DiskReaderOptions {
  readonly call: (request: BareRequest) => Promise<StoreReply>;
  readonly inputAt: (number: number) => InputId;
  readonly numberOf: (input: InputId) => number | undefined;
  readonly onDispose: () => void;
}

export class DiskReader implements BufferReader {
  readonly #options: DiskReaderOptions;
  #news = Promise.withResolvers<void>();
  #closed = false;
  #revoked: Error | undefined;

  constructor(options: DiskReaderOptions) {
    this.#options = options;
  }

  async take(wanted: Lane, options: TakeOptions, signal: AbortSignal): Promise<Block | undefined> {
    const { wait, maxPoints, enough, inputs, except } = options;
    let lane = wanted;
    let from: number | undefined;
    let { promise: news } = this.#news;
    for (;;) {
      signal.throwIfAborted();
      if (this.#closed) throw closedError();
      if (this.#revoked) throw this.#revoked;
      if (from === undefined && lane === wanted) news = this.#news.promise;
      const reply = this.#options.call({ kind: "take", lane, maxPoints, enough, inputs, except, from });
      let block: ShelfBlock | undefined;
      try {
        ({ block, resumeAt: from } = await orAbort(reply, signal));
      } catch (error) {
        // The block that is on its way to nobody goes back.
        if (signal.aborted) void reply.then(({ block: late }) => late && this.#giveBack([late.id])).catch(() => {});
        throw error;
      }
      if (block) return this.#toBlock(block);
      if (from !== undefined) continue;
      if (!wait) return undefined;
      // Late points alone are no reason to go on waiting, and only the backlog has them.
      const isOther = lane !== wanted;
      lane = lane === "live" ? "backlog" : wanted;
      if (isOther || lane === wanted) await orAbort(news, signal);
    }
  }

  async settle(done: readonly Settlement[]): Promise<void> {
    const requests = done.map(({ block, inputs, refused = 0 }) => ({
      block,
      inputs: inputs.map((input) => this.#options.numberOf(input)).filter((number) => number !== undefined),
      refused,
    }));
    await this.#options.call({ kind: "settle", done: requests });
  }

  release(blocks: readonly BlockId[]): void {
    this.#giveBack(blocks);
  }

  /** Something may be there to take that was not before. */
  wake(): void {
    this.#news.resolve();
    this.#news = Promise.withResolvers();
  }

  /** Nothing more may be taken, for this reason. */
  revoke(reason: Error): void {
    this.#revoked = reason;
    this.wake();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.wake();
    await this.#options.call({ kind: "release", blocks: "all" }).catch(() => {});
    this.#options.onDispose();
  }

  #giveBack(blocks: readonly number[]): void {
    // It fails when the log is gone, and what is out comes again then anyway.
    this.#options.call({ kind: "release", blocks }).then(
      () => this.wake(),
      () => {},
    );
  }

  #toBlock(block: ShelfBlock): Block {
    const series: Series[] = [];
    const { inputs } = block;
    for (let i = 0; i < inputs.length; i++) series.push(new BlockSeries(this.#options.inputAt(inputs[i]!), block, i));
    return { id: block.id as BlockId, series };
  }
}

/** A series of a block. Its columns are views that are made when they are looked at: there may be a series for each point. */
class BlockSeries implements Series {
  readonly input: InputId;
  readonly #block: ShelfBlock;
  readonly #at: number;

  constructor(input: InputId, block: ShelfBlock, at: number) {
    this.input = input;
    this.#block = block;
    this.#at = at;
  }

  get times(): Float64Array {
    const { timeStarts, times } = this.#block;
    const start = timeStarts[this.#at]!;
    return times.subarray(start, start + this.#count);
  }

  get values(): Float64Array {
    const { valueStarts, values } = this.#block;
    const start = valueStarts[this.#at]!;
    return values.subarray(start, start + this.#count);
  }

  get late(): boolean {
    return this.#block.late[this.#at] === 1;
  }

  get #count(): number {
    const { valueStarts } = this.#block;
    return valueStarts[this.#at + 1]! - valueStarts[this.#at]!;
  }
}
