// Tracks which series of a frame are free, leased or settled.
import { lowerBound } from "../../lib/values/lower-bound.ts";
import { RangeSet } from "../disk/counters/ranges.ts";
import type { FrameHeader } from "./stream-frame.ts";

const free = 0;
const leased = 1;
const settled = 2;
/** More than the entries of a block; times the number of inputs it is below 2^53. */
const positions = 2 ** 26;

/** A frame with leased series, or with some settled ones. */
export class OpenFrame {
  readonly header: FrameHeader;
  /** Sequence in the stream. Undefined: unknown since the stream lost messages. */
  sequence: number | undefined;
  readonly inputs: Uint32Array;
  readonly #states: Uint8Array;
  #free: number;
  #unsettled: number;

  /** `open`: ranges of unsettled series. Undefined: all are unsettled. */
  constructor(header: FrameHeader, inputs: Uint32Array, open?: readonly number[]) {
    this.header = header;
    this.inputs = inputs;
    this.#states = new Uint8Array(inputs.length).fill(open ? settled : free);
    for (const [from, to] of new RangeSet(open).ranges(0, inputs.length)) this.#states.fill(free, from, to);
    this.#unsettled = this.#free = this.#states.filter((state) => state === free).length;
  }

  get hasFree(): boolean {
    return this.#free > 0;
  }

  get isLeased(): boolean {
    return this.#free < this.#unsettled;
  }

  get isSettled(): boolean {
    return this.#unsettled === 0;
  }

  get isUntouched(): boolean {
    return this.#free === this.inputs.length;
  }

  get freeInputs(): Uint32Array {
    return this.inputs.filter((_, series) => this.isFree(series));
  }

  isFree(series: number): boolean {
    return this.#states[series] === free;
  }

  lease(series: number): void {
    this.#states[series] = leased;
    this.#free--;
  }

  release(series: number): void {
    this.#states[series] = free;
    this.#free++;
  }

  settle(series: number): void {
    this.#states[series] = settled;
    this.#unsettled--;
  }

  get open(): readonly number[] {
    const ranges = new RangeSet();
    for (const [series, state] of this.#states.entries()) if (state !== settled) ranges.add(series, series + 1);
    return ranges.bounds;
  }
}

/** A leased block: columns of frame and series, sorted by input. */
export class FrameLease {
  readonly frames: readonly OpenFrame[];
  readonly late: ReadonlySet<number>;
  readonly #inputs: Uint32Array;
  readonly #frameAt: Uint32Array;
  readonly #seriesAt: Uint32Array;
  readonly #isOpen: Uint8Array;
  #count = 0;

  constructor(frames: readonly OpenFrame[], series: readonly (readonly number[])[]) {
    this.frames = frames;
    const count = series.reduce((sum, { length }) => sum + length, 0);
    const frameOf = new Uint32Array(count);
    const seriesOf = new Uint32Array(count);
    // Input and position in one number: a block has up to millions of entries, and objects would take seconds to sort.
    const keys = new Float64Array(count);
    const late = new Set<number>();
    let at = 0;
    for (const [f, frame] of frames.entries())
      for (const s of series[f]!) {
        const input = frame.inputs[s]!;
        if (frame.header.late) late.add(input);
        frameOf[at] = f;
        seriesOf[at] = s;
        keys[at] = input * positions + at++;
      }
    keys.sort();
    this.late = late;
    this.#inputs = Uint32Array.from(keys, (key) => key / positions);
    this.#frameAt = Uint32Array.from(keys, (key) => frameOf[key % positions]!);
    this.#seriesAt = Uint32Array.from(keys, (key) => seriesOf[key % positions]!);
    this.#isOpen = new Uint8Array(count).fill(1);
    for (const [i, input] of this.#inputs.entries()) if (input !== this.#inputs[i - 1]) this.#count++;
    for (const [f, frame] of frames.entries()) for (const s of series[f]!) frame.lease(s);
  }

  /** Number of unsettled inputs. */
  get count(): number {
    return this.#count;
  }

  has(input: number): boolean {
    const at = lowerBound(this.#inputs, input);
    return this.#inputs[at] === input && this.#isOpen[at] === 1;
  }

  settle(inputs: Uint32Array): void {
    for (const input of inputs) {
      if (!this.has(input)) continue;
      this.#count--;
      for (let at = lowerBound(this.#inputs, input); this.#inputs[at] === input; at++) this.#end(at, "settle");
    }
  }

  release(): void {
    for (let at = 0; at < this.#inputs.length; at++) if (this.#isOpen[at] === 1) this.#end(at, "release");
  }

  #end(at: number, how: "settle" | "release"): void {
    this.#isOpen[at] = 0;
    this.frames[this.#frameAt[at]!]![how](this.#seriesAt[at]!);
  }
}
