// Takes blocks from the log thread, and settles and releases them there.
import { Block, type BlockId } from "../../../core/block.ts";
import type { BufferReader, Lane, Settlement, TakeOptions } from "../../../core/buffer.ts";
import type { InputId } from "../../../core/point.ts";
import { orAbort } from "../../../lib/flow/abort.ts";
import type { LeasedBlock } from "../blocks/block-cut.ts";
import type { InputTable } from "../format/input-table.ts";
import { closedError } from "./group-commit.ts";
import type { BareRequest, StoreReply } from "./worker-port.ts";

export interface DiskReaderOptions {
  readonly call: (request: BareRequest) => Promise<StoreReply>;
  /** Maps the input numbers in blocks to names. Returns another table after the log thread was restarted. */
  readonly inputs: () => Pick<InputTable, "inputsAt" | "find">;
  readonly onDispose: () => void;
}

/** Resolves when a lane may have points again. `empty`: lanes that had none, so that the log is not asked again. */
const nextNews = () => ({ ...Promise.withResolvers<void>(), empty: new Set<Lane>() });

/** Lists of inputs that are kept. A second of polls may be leased in several blocks. */
const mostRecent = 3;

export class DiskReader implements BufferReader {
  readonly #options: DiskReaderOptions;
  #news = nextNews();
  #closed = false;
  #revoked: Error | undefined;
  #lastTable: ReturnType<DiskReaderOptions["inputs"]> | undefined;
  /** Lists of inputs in recent blocks, the latest first. */
  #recent: readonly { readonly numbers: Uint32Array; readonly names: readonly InputId[] }[] = [];
  /** Input numbers of the name lists in blocks and earlier settlements. */
  #numbers = new WeakMap<readonly InputId[], Uint32Array>();

  constructor(options: DiskReaderOptions) {
    this.#options = options;
  }

  async take(wanted: Lane, options: TakeOptions, signal: AbortSignal): Promise<Block | undefined> {
    const { wait, maxPoints, enough, inputs, except } = options;
    let lane = wanted;
    let from: number | undefined;
    let news = this.#news;
    for (;;) {
      signal.throwIfAborted();
      if (this.#closed) throw closedError();
      if (this.#revoked) throw this.#revoked;
      if (from === undefined && lane === wanted) news = this.#news;
      const isAll = inputs === undefined && except === undefined;
      if (!isAll || !news.empty.has(lane)) {
        const reply = this.#options.call({ kind: "take", lane, maxPoints, enough, inputs, except, from });
        let block: LeasedBlock | undefined;
        try {
          ({ block, resumeAt: from } = await orAbort(reply, signal));
        } catch (error) {
          // The caller no longer waits: release the block.
          if (signal.aborted) void reply.then(({ block: late }) => late && this.release([late.id])).catch(() => {});
          throw error;
        }
        if (block) return this.#toBlock(block);
        if (from !== undefined) continue;
        if (isAll) news.empty.add(lane);
      }
      if (!wait) return undefined;
      // Without a block in the live lane, take late points, which only the backlog has.
      const isOther = lane !== wanted;
      lane = lane === "live" ? "backlog" : wanted;
      if (isOther || lane === wanted) await orAbort(news.promise, signal);
    }
  }

  async settle(done: readonly Settlement[]): Promise<void> {
    // Blocks and settlements share name lists, so that each list is converted once and sent once per call.
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
    const settled = this.#options.call({ kind: "settle", done: requests });
    // It may release late points. Requests are answered in order, so calls woken now find them.
    this.wake();
    await settled;
  }

  release(blocks: readonly number[]): void {
    // If the log is gone, this fails, and the next log leases the points again anyway.
    this.#options.call({ kind: "release", blocks }).catch(() => {});
    this.wake();
  }

  /** Wakes waiting calls of `take`: there may be a block now. */
  wake(): void {
    this.#news.resolve();
    this.#news = nextNews();
  }

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

  #toBlock(block: LeasedBlock): Block {
    return new Block(block.id as BlockId, { ...block, inputs: this.#namesOf(block.inputs) });
  }

  /** Blocks of polled tags repeat the inputs of an earlier one and share its list of names. */
  #namesOf(numbers: Uint32Array): readonly InputId[] {
    const table = this.#options.inputs();
    if (table !== this.#lastTable) {
      this.#numbers = new WeakMap();
      this.#recent = [];
      this.#lastTable = table;
    }
    const [latest] = this.#recent;
    const known = this.#recent.find((each) => areEqual(each.numbers, numbers));
    if (known && known === latest) return known.names;
    const now = known ?? { numbers, names: table.inputsAt(numbers) };
    this.#recent = [now, ...this.#recent.filter((each) => each !== known)].slice(0, mostRecent);
    this.#numbers.set(now.names, numbers);
    return now.names;
  }
}

function areEqual(some: Uint32Array, others: Uint32Array): boolean {
  return some.length === others.length && bytesOf(some).equals(bytesOf(others));
}

function bytesOf({ buffer, byteOffset, byteLength }: Uint32Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
