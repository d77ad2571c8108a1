// A `BufferReader` for refused points, so that the uploader can send them again.
import { Block, type BlockId } from "../../core/block.ts";
import type { BufferReader, Lane, Settlement, TakeOptions } from "../../core/buffer.ts";
import type { InputId } from "../../core/point.ts";
import { orAbort } from "../../lib/abort.ts";

export interface RetriedPoint {
  readonly input: InputId;
  /** Microseconds. */
  readonly time: number;
  readonly value: number;
}

/** The uploader requests at least this many. */
const pointsPerBlock = 100;

export class RejectReader implements BufferReader {
  readonly #waiting: Block[] = [];
  readonly #out = new Map<BlockId, Block>();
  readonly #all = Promise.withResolvers<void>();
  #settled = 0;
  #refused = 0;

  /** If two points of an input have the same time, the later one counts. */
  constructor(points: Iterable<RetriedPoint>) {
    const byInput = new Map<InputId, Map<number, number>>();
    for (const { input, time, value } of points) {
      const series = byInput.get(input) ?? new Map<number, number>();
      byInput.set(input, series.set(time, value));
    }
    for (const [input, series] of byInput) {
      const sorted = [...series].toSorted(([a], [b]) => a - b);
      for (let at = 0; at < sorted.length; at += pointsPerBlock)
        this.#add(input, sorted.slice(at, at + pointsPerBlock));
    }
    if (this.#waiting.length === 0) this.#all.resolve();
  }

  /** Resolves when every point is settled. */
  get all(): Promise<void> {
    return this.#all.promise;
  }

  /** Settled points, and how many of them the service refused again. */
  get settled(): { readonly points: number; readonly refused: number } {
    return { points: this.#settled, refused: this.#refused };
  }

  *unsettled(): Generator<RetriedPoint> {
    for (const { series } of [...this.#waiting, ...this.#out.values()])
      for (const { input, times, values } of series)
        for (const [i, time] of times.entries()) yield { input, time, value: values[i] ?? 0 };
  }

  async take(lane: Lane, { wait }: TakeOptions, signal: AbortSignal): Promise<Block | undefined> {
    signal.throwIfAborted();
    // Refused points are not new, so the live lane has none.
    const block = lane === "live" && !wait ? undefined : this.#waiting.shift();
    if (block) this.#out.set(block.id, block);
    else if (wait) await orAbort(new Promise(() => {}), signal);
    return block;
  }

  async settle(done: readonly Settlement[]): Promise<void> {
    for (const { block: id, refused = 0 } of done) {
      const block = this.#out.get(id);
      if (!block) continue;
      this.#out.delete(id);
      this.#settled += block.points;
      this.#refused += refused;
    }
    if (this.#waiting.length === 0 && this.#out.size === 0) this.#all.resolve();
  }

  release(blocks: readonly BlockId[]): void {
    for (const id of blocks) {
      const block = this.#out.get(id);
      if (block) this.#waiting.push(block);
      this.#out.delete(id);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  #add(input: InputId, points: readonly (readonly [time: number, value: number])[]): void {
    const id = (this.#waiting.length + 1) as BlockId; // unique within this reader
    const times = Float64Array.from(points, ([time]) => time);
    const values = Float64Array.from(points, ([, value]) => value);
    this.#waiting.push(Block.of(id, [{ input, times, values }]));
  }
}
