// A `BufferReader` for refused points, so that the uploader can send them again, and which of them can be sent.
import { Block, type BlockId } from "../../core/block.ts";
import type { BufferReader, Lane, Settlement, TakeOptions } from "../../core/buffer.ts";
import { epochMicros, type InputId } from "../../core/point.ts";
import { orAbort } from "../../lib/flow/abort.ts";
import { formatTimestamp, parseTimestamp } from "../../wire/timestamp.ts";
import type { RejectLine } from "./reject-files.ts";

interface RetriedPoint {
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

  readonly #sign: 1 | -1;

  /** If two points of an input have the same time, the later one counts. `sign`: of the ids of the blocks. */
  constructor(points: Iterable<RetriedPoint>, sign: 1 | -1 = 1) {
    this.#sign = sign;
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

  async take(lane: Lane, { wait, inputs, except }: TakeOptions, signal: AbortSignal): Promise<Block | undefined> {
    signal.throwIfAborted();
    // Refused points are not new, so the live lane has none.
    const block = lane === "live" && !wait ? undefined : this.#next(inputs, except);
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

  /** The first block of the selected inputs. A block has one input. */
  #next(inputs: TakeOptions["inputs"], except: TakeOptions["except"]): Block | undefined {
    const isWanted = ({ inputs: [input = "" as InputId] }: Block) =>
      inputs?.includes(input) !== false && except?.includes(input) !== true;
    const index = this.#waiting.findIndex(isWanted);
    return index < 0 ? undefined : this.#waiting.splice(index, 1)[0];
  }

  #add(input: InputId, points: readonly (readonly [time: number, value: number])[]): void {
    const id = (this.#sign * (this.#waiting.length + 1)) as BlockId; // unique within this reader
    const times = Float64Array.from(points, ([time]) => time);
    const values = Float64Array.from(points, ([, value]) => value);
    this.#waiting.push(Block.of(id, [{ input, times, values }]));
  }
}

interface Sendable {
  /** All readable rejects. */
  readonly lines: readonly RejectLine[];
  readonly points: readonly RetriedPoint[];
  /** Rejects that cannot be sent, since their time or value is invalid. */
  readonly kept: readonly RejectLine[];
  /** The reject of each point, by `keyOfPoint`. */
  readonly sendable: ReadonlyMap<string, RejectLine>;
}

/** Rejects as the iterator does. */
export async function sendableOf(rejects: AsyncIterable<RejectLine | undefined>): Promise<Sendable> {
  const lines: RejectLine[] = [];
  const kept: RejectLine[] = [];
  const points: RetriedPoint[] = [];
  const sendable = new Map<string, RejectLine>();
  for await (const line of rejects) {
    if (!line) continue;
    lines.push(line);
    const point = pointOf(line);
    if (!point) kept.push(line);
    else {
      points.push(point);
      sendable.set(keyOfPoint(point), line);
    }
  }
  return { lines, points, kept, sendable };
}

function pointOf({ input, time, value }: RejectLine): RetriedPoint | undefined {
  const at = typeof time === "string" ? parseTimestamp(time) : undefined;
  if (at === undefined || typeof value !== "number") return undefined;
  return { input, time: at, value };
}

export function keyOfPoint({ input, time }: RetriedPoint): string {
  return `${input} ${formatTimestamp(epochMicros(time))}`;
}
