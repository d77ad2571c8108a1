// Takes blocks from the log thread and tells it what became of them.
import { Block, type BlockId } from "../../../core/block.ts";
import type { BufferReader, Lane, Settlement, TakeOptions } from "../../../core/buffer.ts";
import type { InputId } from "../../../core/point.ts";
import { orAbort } from "../../../lib/abort.ts";
import type { ShelfBlock } from "../blocks/block-layout.ts";
import type { InputTable } from "../format/input-table.ts";
import { closedError } from "./group-commit.ts";
import type { BareRequest, StoreReply } from "./protocol.ts";

export interface DiskReaderOptions {
  readonly call: (request: BareRequest) => Promise<StoreReply>;
  /** Names of the numbers in blocks. Another table where the log thread was started again. */
  readonly inputs: () => Pick<InputTable, "inputAt" | "find">;
  readonly onDispose: () => void;
}

export class DiskReader implements BufferReader {
  readonly #options: DiskReaderOptions;
  #news = Promise.withResolvers<void>();
  #closed = false;
  #revoked: Error | undefined;
  #lastTable: ReturnType<DiskReaderOptions["inputs"]> | undefined;
  #lastNumbers: Uint32Array = new Uint32Array();
  #lastNames: readonly InputId[] = [];
  /** Of lists that blocks have, or that were settled before. */
  #numbers = new WeakMap<readonly InputId[], Uint32Array>();

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
        // The caller has gone: the block is released.
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
    // Blocks share lists of inputs, and go on sharing them: a list travels to the log thread once.
    const table = this.#options.inputs();
    if (table !== this.#lastTable) this.#numbers = new WeakMap();
    const numbersOf = (inputs: readonly InputId[]) => {
      let numbers = this.#numbers.get(inputs);
      if (!numbers) {
        numbers = Uint32Array.from(inputs.map((input) => table.find(input)).filter((number) => number !== undefined));
        this.#numbers.set(inputs, numbers);
      }
      return numbers;
    };
    const requests = done.map(({ block, inputs, refused = 0 }) => ({ block, inputs: numbersOf(inputs), refused }));
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
    return new Block(block.id as BlockId, { ...block, inputs: this.#namesOf(block.inputs) });
  }

  /** Blocks of polled tags have the same inputs again and again: one list of names serves them all. */
  #namesOf(numbers: Uint32Array): readonly InputId[] {
    const known = this.#lastNumbers;
    const table = this.#options.inputs();
    let same = table === this.#lastTable && numbers.length === known.length;
    for (let i = 0; same && i < numbers.length; i++) same = numbers[i] === known[i];
    if (!same) {
      if (table !== this.#lastTable) this.#numbers = new WeakMap();
      this.#lastTable = table;
      this.#lastNumbers = numbers;
      const names: InputId[] = [];
      // An iterator would make an object for each.
      for (let i = 0; i < numbers.length; i++) names.push(table.inputAt(numbers[i]!));
      this.#lastNames = names;
      this.#numbers.set(names, numbers);
    }
    return this.#lastNames;
  }
}
