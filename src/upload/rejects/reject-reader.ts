// A `BufferReader` for refused points, so that the uploader can send them again, and which of them can be sent.
import { Block, type BlockId } from "../../core/block.ts";
import type { BufferReader, Lane, Settlement, TakeOptions } from "../../core/buffer.ts";
import { epochMicros, type InputId } from "../../core/point.ts";
import { orAbort } from "../../lib/flow/abort.ts";
import { rpcErrors } from "../../wire/json-rpc.ts";
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

/** Points of a later block. A block for each of 100,000 inputs would take 100 MB. */
interface BlockPoints {
  readonly id: BlockId;
  readonly input: InputId;
  /** By time. */
  readonly points: readonly (readonly [time: number, value: number])[];
}

export class RejectReader implements BufferReader {
  readonly #waiting: BlockPoints[] = [];
  readonly #out = new Map<BlockId, BlockPoints>();
  readonly #all = Promise.withResolvers<void>();
  /** Inputs of blocks that came back unsettled. */
  readonly #returned = new Set<InputId>();
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
      for (let at = 0; at < sorted.length; at += pointsPerBlock) {
        // Unique within this reader, and negative, as the ids of no buffer are.
        const id = -(this.#waiting.length + 1) as BlockId;
        this.#waiting.push({ id, input, points: sorted.slice(at, at + pointsPerBlock) });
      }
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
    for (const { input, points } of [...this.#waiting, ...this.#out.values()])
      for (const [time, value] of points) yield { input, time, value };
  }

  /** Whether nothing is leased, and all that waits are inputs of `except` that were sent and came back. */
  hasOnly(except: TakeOptions["except"] = []): boolean {
    const isRefused = ({ input }: BlockPoints) => this.#returned.has(input) && except.includes(input);
    return this.#out.size === 0 && this.#waiting.length > 0 && this.#waiting.every(isRefused);
  }

  async take(lane: Lane, { wait, inputs, except }: TakeOptions, signal: AbortSignal): Promise<Block | undefined> {
    signal.throwIfAborted();
    // Refused points are not new, so the live lane has none.
    const next = lane === "live" && !wait ? undefined : this.#next(inputs, except);
    if (!next) {
      if (wait) await orAbort(new Promise(() => {}), signal);
      return undefined;
    }
    const { id, input, points } = next;
    this.#out.set(id, next);
    const times = Float64Array.from(points, ([time]) => time);
    const values = Float64Array.from(points, ([, value]) => value);
    return Block.of(id, [{ input, times, values }]);
  }

  async settle(done: readonly Settlement[]): Promise<void> {
    for (const { block: id, refused = 0 } of done) {
      const block = this.#out.get(id);
      if (!block) continue;
      this.#out.delete(id);
      this.#settled += block.points.length;
      this.#refused += refused;
    }
    if (this.#waiting.length === 0 && this.#out.size === 0) this.#all.resolve();
  }

  release(blocks: readonly BlockId[]): void {
    for (const id of blocks) {
      const block = this.#out.get(id);
      if (!block) continue;
      this.#waiting.push(block);
      this.#returned.add(block.input);
      this.#out.delete(id);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  /** The points of the first block of the selected inputs. */
  #next(inputs: TakeOptions["inputs"], except: TakeOptions["except"]): BlockPoints | undefined {
    const isWanted = ({ input }: BlockPoints) => inputs?.includes(input) !== false && except?.includes(input) !== true;
    const index = this.#waiting.findIndex(isWanted);
    return index < 0 ? undefined : this.#waiting.splice(index, 1)[0];
  }
}

interface Sendable {
  readonly points: readonly RetriedPoint[];
  /** Number of rejects that cannot be sent, since their time or value is invalid. */
  readonly unsendable: number;
}

/** Keeps the points alone: the lines stay in their file, since they would take ten times as much memory. */
export async function sendableOf(rejects: AsyncIterable<RejectLine | undefined>): Promise<Sendable> {
  const points: RetriedPoint[] = [];
  // Of up to 200,000 points, few have an Input ID of their own.
  const names = new Map<InputId, InputId>();
  let unsendable = 0;
  for await (const line of rejects) {
    if (!line) continue;
    const point = pointOf(line);
    if (!point) {
      unsendable++;
      continue;
    }
    const input = names.get(point.input) ?? point.input;
    names.set(input, input);
    points.push({ ...point, input });
  }
  return { points, unsendable };
}

/**
 * The lines that a retry with `reader` leaves: those that cannot be sent, and those of undecided points, with the
 * reason of `reasonOf` where there is one. `since`: lines written since the retry began. Their points have been refused
 * again, though other points of their blocks are undecided. Undefined: there are none.
 */
export async function restOf(
  reader: Pick<RejectReader, "unsettled">,
  unsendable: number,
  since: AsyncIterable<RejectLine | undefined>,
  reasonOf: (input: InputId) => string | undefined,
): Promise<((line: RejectLine) => RejectLine | undefined) | undefined> {
  const undecided = new Set(Array.from(reader.unsettled(), keyOfPoint));
  for await (const line of since) {
    const point = line && pointOf(line);
    if (point) undecided.delete(keyOfPoint(point));
  }
  if (undecided.size === 0 && unsendable === 0) return undefined;
  return (line) => {
    const point = pointOf(line);
    if (!point) return line;
    if (!undecided.has(keyOfPoint(point))) return undefined;
    const reason = reasonOf(point.input);
    return reason === undefined ? line : { ...line, code: rpcErrors.partialFailure.code, reason };
  };
}

function pointOf({ input, time, value }: RejectLine): RetriedPoint | undefined {
  const at = typeof time === "string" ? parseTimestamp(time) : undefined;
  if (at === undefined || typeof value !== "number") return undefined;
  return { input, time: at, value };
}

function keyOfPoint({ input, time }: RetriedPoint): string {
  return `${input} ${formatTimestamp(epochMicros(time))}`;
}
