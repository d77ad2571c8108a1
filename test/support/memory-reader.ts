// A buffer in memory that records what was settled, for tests of its readers.
import { Block, type BlockId, type Series } from "../../src/core/block.ts";
import type { BufferReader, Lane, Settlement, TakeOptions } from "../../src/core/buffer.ts";
import type { InputId } from "../../src/core/point.ts";
import { orAbort } from "../../src/lib/flow/abort.ts";

export type Points = Readonly<Record<string, readonly (readonly [micros: number, value: number])[]>>;

export class MemoryReader implements BufferReader {
  /** Blocks that are not leased, oldest first. */
  #waiting: Block[] = [];
  readonly #leased = new Map<BlockId, Block>();
  readonly settled: Settlement[] = [];
  #wake = Promise.withResolvers<void>();
  #nextId = 1;

  /** Appends a block. Returns its ID. */
  append(points: Points): BlockId {
    const id = this.#nextId++ as BlockId; // a BlockId as the buffer assigns it
    const series = Object.entries(points).map(([input, of]) => ({
      input: input as InputId,
      times: Float64Array.from(of, ([time]) => time),
      values: Float64Array.from(of, ([, value]) => value),
    }));
    this.#waiting.push(Block.of(id, series));
    this.#wake.resolve();
    return id;
  }

  /** Points that were settled as refused. */
  get refused(): number {
    return this.settled.reduce((sum, { refused = 0 }) => sum + refused, 0);
  }

  /** The number of blocks that are leased and not settled. */
  get leased(): number {
    return this.#leased.size;
  }

  /** The number of blocks that are not leased. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Whether everything that was appended is settled. */
  get empty(): boolean {
    return this.#waiting.length === 0 && this.#leased.size === 0;
  }

  async take(lane: Lane, options: TakeOptions, signal: AbortSignal): Promise<Block | undefined> {
    const isWanted = wantedBy(options);
    for (;;) {
      signal.throwIfAborted();
      const block = this.#waiting[lane === "live" ? "findLast" : "find"]((each) => each.series.some(isWanted));
      if (block) {
        // The rest of the block becomes another block in the same place.
        const rest = block.series.filter((series) => !isWanted(series));
        const taken = Block.of(block.id, block.series.filter(isWanted));
        const others = rest.length > 0 ? [Block.of(this.#nextId++ as BlockId, rest)] : [];
        this.#waiting.splice(this.#waiting.indexOf(block), 1, ...others);
        this.#leased.set(taken.id, taken);
        return taken;
      }
      if (!options.wait) return undefined;
      this.#wake = Promise.withResolvers();
      await orAbort(this.#wake.promise, signal);
    }
  }

  async settle(done: readonly Settlement[]): Promise<void> {
    for (const settlement of done) {
      const block = this.#leased.get(settlement.block);
      if (!block) throw new Error(`block ${settlement.block} is not leased`);
      const done = new Set(settlement.inputs);
      const rest = block.series.filter(({ input }) => !done.has(input));
      if (rest.length !== block.series.length - done.size) throw new Error(`block ${block.id} has no such series`);
      if (rest.length > 0) this.#leased.set(block.id, Block.of(block.id, rest));
      else this.#leased.delete(block.id);
      this.settled.push(settlement);
    }
  }

  release(blocks: readonly BlockId[]): void {
    for (const id of blocks) {
      const block = this.#leased.get(id);
      if (!block) throw new Error(`block ${id} is not leased`);
      this.#leased.delete(id);
      this.#waiting.push(block);
    }
    this.#waiting.sort((a, b) => firstTime(a) - firstTime(b) || a.id - b.id);
    if (blocks.length > 0) this.#wake.resolve();
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

/** Whether a take with these options includes a series. */
export function wantedBy({ inputs, except }: TakeOptions): (series: Series) => boolean {
  return ({ input }) => (inputs?.includes(input) ?? true) && !except?.includes(input);
}

function firstTime({ series }: Block): number {
  return Math.min(...series.map(({ times }) => times[0] ?? 0));
}
