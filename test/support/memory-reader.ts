// A buffer in memory that says what was settled, for tests of what reads from one.
import { Block, type BlockId, type Series } from "../../src/core/block.ts";
import type { BufferReader, Lane, Settlement, TakeOptions } from "../../src/core/buffer.ts";
import type { InputId } from "../../src/core/point.ts";
import { orAbort } from "../../src/lib/abort.ts";

export type Points = Readonly<Record<string, readonly (readonly [micros: number, value: number])[]>>;

export class MemoryReader implements BufferReader {
  /** Not handed out, oldest first. */
  #waiting: Block[] = [];
  readonly #out = new Map<BlockId, Block>();
  readonly settled: Settlement[] = [];
  #wake = Promise.withResolvers<void>();
  #nextId = 1;

  /** Appends a block; gives its ID. */
  append(points: Points): BlockId {
    const id = this.#nextId++ as BlockId; // as the buffer would number it
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

  /** Blocks that are neither waiting nor settled. */
  get out(): number {
    return this.#out.size;
  }

  /** Blocks not handed out. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Everything that was appended is settled. */
  get empty(): boolean {
    return this.#waiting.length === 0 && this.#out.size === 0;
  }

  async take(lane: Lane, options: TakeOptions, signal: AbortSignal): Promise<Block | undefined> {
    const isWanted = wantedBy(options);
    for (;;) {
      signal.throwIfAborted();
      const block = this.#waiting[lane === "live" ? "findLast" : "find"]((each) => each.series.some(isWanted));
      if (block) {
        // What is left of it is another block, in the same place.
        const rest = block.series.filter((series) => !isWanted(series));
        const taken = Block.of(block.id, block.series.filter(isWanted));
        const others = rest.length > 0 ? [Block.of(this.#nextId++ as BlockId, rest)] : [];
        this.#waiting.splice(this.#waiting.indexOf(block), 1, ...others);
        this.#out.set(taken.id, taken);
        return taken;
      }
      if (!options.wait) return undefined;
      this.#wake = Promise.withResolvers();
      await orAbort(this.#wake.promise, signal);
    }
  }

  async settle(done: readonly Settlement[]): Promise<void> {
    for (const settlement of done) {
      const block = this.#out.get(settlement.block);
      if (!block) throw new Error(`block ${settlement.block} is not out`);
      const done = new Set(settlement.inputs);
      const rest = block.series.filter(({ input }) => !done.has(input));
      if (rest.length !== block.series.length - done.size) throw new Error(`block ${block.id} has no such series`);
      if (rest.length > 0) this.#out.set(block.id, Block.of(block.id, rest));
      else this.#out.delete(block.id);
      this.settled.push(settlement);
    }
  }

  release(blocks: readonly BlockId[]): void {
    for (const id of blocks) {
      const block = this.#out.get(id);
      if (!block) throw new Error(`block ${id} is not out`);
      this.#out.delete(id);
      this.#waiting.push(block);
    }
    this.#waiting.sort((a, b) => firstTime(a) - firstTime(b) || a.id - b.id);
    if (blocks.length > 0) this.#wake.resolve();
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

/** Whether a take with these options wants a series. */
export function wantedBy({ inputs, except }: TakeOptions): (series: Series) => boolean {
  return ({ input }) => (inputs?.includes(input) ?? true) && !except?.includes(input);
}

function firstTime({ series }: Block): number {
  return Math.min(...series.map(({ times }) => times[0] ?? 0));
}
