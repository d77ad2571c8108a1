// Reads frames from the stream and cuts blocks out of them. Knows which positions of the stream hold nothing that is free;
// frames themselves are told apart by node, epoch and number, so that one that was published again is taken once.
//
// Memory: a range for what is done with, the series of frames that are leased or partly settled, and a few decoded frames.
import type { PointStream, StreamState } from "../../cluster/jetstream.ts";
import type { Lane, TakeOptions } from "../../core/buffer.ts";
import type { InputId } from "../../core/point.ts";
import { RangeSet } from "../disk/accounts/range-set.ts";
import type { InputTable } from "../disk/format/input-table.ts";
import { OpenFrame } from "./frame-lease.ts";
import type { PartialFrame, SettledFrames } from "./settled-frames.ts";
import { decodeFrame, epochKey, type FrameHeader, type StreamFrame } from "./stream-frame.ts";
import type { StreamNames } from "./stream-names.ts";

/** Decoded frames that are kept, since a take may leave a part of one. */
const decodedFrames = 8;
/** Frames that one take by inputs looks through. */
const mostLooks = 256;

export interface StreamCut {
  readonly frames: readonly OpenFrame[];
  /** Of each frame, the series that were taken. */
  readonly series: readonly (readonly number[])[];
  readonly places: Uint32Array;
  readonly times: Float64Array;
  readonly values: Float64Array;
  readonly points: number;
}

interface ReadFrame {
  readonly frame: StreamFrame;
  readonly open: OpenFrame;
}

export interface CutterParts {
  readonly stream: PointStream;
  readonly names: StreamNames;
  readonly inputs: InputTable;
  readonly settled: SettledFrames;
  /** Messages that were not settled are missing from the stream. */
  readonly onLost: (messages: number) => void;
}

const nameOf = (header: Pick<FrameHeader, "node" | "epoch" | "number">) => `${epochKey(header)}\n${header.number}`;

export class StreamCutter {
  readonly #parts: CutterParts;
  /** Positions of frames that are settled. */
  readonly #done = new RangeSet();
  /** Positions with nothing free, and with nothing for the live lane. */
  readonly #taken = new RangeSet();
  readonly #late = new RangeSet();
  readonly #open = new Map<string, OpenFrame>();
  readonly #partial = new Map<string, readonly number[]>();
  readonly #decoded = new Map<number, ReadFrame>();
  #stream = "";
  #first = 1;
  #last = 0;

  constructor(parts: CutterParts, partial: readonly PartialFrame[]) {
    this.#parts = parts;
    for (const { epoch, number, open } of partial) this.#partial.set(`${epoch}\n${number}`, open);
  }

  /** Which stream its positions are of. */
  get stream(): string {
    return this.#stream;
  }

  get done(): readonly number[] {
    return this.#done.bounds;
  }

  /** Frames of which a part is settled. */
  get partial(): PartialFrame[] {
    const frames = [...this.#open.values()].filter((frame) => !frame.isUntouched);
    const found = frames.map(({ header, open }) => ({ epoch: epochKey(header), number: header.number, open }));
    for (const [name, open] of this.#partial) {
      const at = name.lastIndexOf("\n");
      found.push({ epoch: name.slice(0, at), number: Number(name.slice(at + 1)), open });
    }
    return found;
  }

  /** Everything before this position is settled. */
  get settledUpTo(): number {
    return this.#done.endOf(this.#first) ?? this.#first;
  }

  get first(): number {
    return this.#first;
  }

  /**
   * Takes over what the stream is like now. Positions hold as long as the same server leads it without a break: before
   * another one does, messages may have been lost and others have got their sequences.
   */
  follow(state: StreamState, done: readonly number[] = []): void {
    const stream = `${state.created} ${state.leader}`;
    if (stream !== this.#stream || state.lastSequence < this.#last) this.#forgetPositions();
    this.#stream = stream;
    for (const [from, to] of new RangeSet(done).ranges()) this.#finish(from, to);
    this.#dropBefore(state.firstSequence);
    this.#last = state.lastSequence;
  }

  /** Resolves undefined where nothing is free. Rejects as the stream does. */
  async cut(
    lane: Lane,
    { maxPoints, enough = maxPoints, inputs, except }: TakeOptions,
  ): Promise<StreamCut | undefined> {
    const numbersOf = (ids: readonly InputId[] | undefined) =>
      ids && new Set(ids.map((id) => this.#parts.inputs.find(id)));
    const taken: ReadFrame[] = [];
    const series: number[][] = [];
    let points = 0;
    let looks = 0;
    let isFull = false;
    for (let at = this.#next(lane); at !== undefined && !isFull; at = this.#next(lane, at)) {
      const read = await this.#read(at);
      if (!read) continue;
      const { frame, open } = read;
      // Reading the frame may have made its inputs known.
      const [only, without] = [numbersOf(inputs), numbersOf(except)];
      if (inputs && looks++ === mostLooks) break;
      if (lane === "live" && frame.late) {
        this.#late.add(at, at + 1);
        continue;
      }
      const found: number[] = [];
      for (let s = 0; s < open.inputs.length && !isFull; s++) {
        const input = open.inputs[s]!;
        if (!open.isFree(s) || only?.has(input) === false || without?.has(input)) continue;
        const count = frame.valueStarts[s + 1]! - frame.valueStarts[s]!;
        isFull = points > 0 && points + count > maxPoints;
        if (isFull) break;
        found.push(s);
        points += count;
      }
      if (found.length > 0) {
        taken.push(read);
        series.push(found);
      }
      isFull ||= points >= Math.min(maxPoints, enough);
    }
    return points === 0 ? undefined : assemble(taken, series, points);
  }

  /** The states of these frames have changed. */
  update(frames: readonly OpenFrame[]): void {
    for (const frame of frames) {
      const { sequence, header } = frame;
      if (frame.isSettled) {
        this.#parts.settled.add(header);
        if (sequence !== undefined) this.#finish(sequence, sequence + 1);
      } else if (sequence !== undefined) this.#taken[frame.hasFree ? "remove" : "add"](sequence, sequence + 1);
      if (frame.isSettled || frame.isUntouched) this.#open.delete(nameOf(header));
      else this.#open.set(nameOf(header), frame);
    }
  }

  #finish(from: number, to: number): void {
    this.#done.add(from, to);
    this.#taken.add(from, to);
  }

  #forgetPositions(): void {
    for (const ranges of [this.#done, this.#taken, this.#late]) ranges.clear();
    for (const frame of this.#open.values()) frame.sequence = undefined;
    this.#decoded.clear();
    this.#first = 1;
  }

  /** Messages before `first` are gone. */
  #dropBefore(first: number): void {
    if (first <= this.#first) return;
    const gone = first - this.#first - this.#done.countIn(this.#first, first);
    // Of a stream that is new to this reader nothing is known.
    if (gone > 0 && this.#first > 1) this.#parts.onLost(gone);
    for (const ranges of [this.#done, this.#taken, this.#late]) ranges.remove(0, first);
    this.#first = first;
  }

  /** The next position that may have something free: upwards for the backlog, downwards for the live lane. */
  #next(lane: Lane, after?: number): number | undefined {
    if (lane === "backlog") {
      const at = after === undefined ? this.#first : after + 1;
      const free = this.#taken.endOf(at) ?? at;
      return free <= this.#last ? free : undefined;
    }
    for (let at = after === undefined ? this.#last : after - 1; at >= this.#first; at--) {
      const start = this.#taken.startOf(at) ?? this.#late.startOf(at);
      if (start === undefined) return at;
      at = start;
    }
    return undefined;
  }

  /** Undefined: there is nothing to take at this position, or the replica that answered does not have it yet. */
  async #read(at: number): Promise<ReadFrame | undefined> {
    const known = this.#decoded.get(at);
    if (known) {
      // The frame was decoded earlier. Meanwhile all of it may have been settled.
      known.open.sequence = at;
      return this.#isElsewhere(known.open.header, at)
        ? undefined
        : { ...known, open: this.#open.get(nameOf(known.frame)) ?? known.open };
    }
    const { stream, names, inputs, settled } = this.#parts;
    const message = await stream.next(at);
    if (!message) return undefined;
    if (message.sequence !== at) {
      this.#parts.onLost(Math.min(message.sequence, this.#last + 1) - at);
      this.#finish(at, message.sequence);
      return undefined;
    }
    const frame = decodeFrame(message.data);
    if (settled.has(frame)) {
      this.#finish(at, at + 1);
      return undefined;
    }
    if (this.#isElsewhere(frame, at)) return undefined;
    const name = nameOf(frame);
    let open = this.#open.get(name);
    if (!open) {
      const most = frame.numbers.reduce((most, number) => Math.max(most, number), -1);
      const ids = await names.of(frame.node, frame.dictionary, most + 1);
      open = new OpenFrame(
        frame,
        Uint32Array.from(frame.numbers, (n) => inputs.numberOf(ids[n]!)),
        this.#partial.get(name),
      );
      if (this.#partial.delete(name)) this.#open.set(name, open);
    }
    open.sequence = at;
    if (!open.hasFree) this.#taken.add(at, at + 1);
    this.#decoded.set(at, { frame, open });
    for (const oldest of this.#decoded.keys()) if (this.#decoded.size > decodedFrames) this.#decoded.delete(oldest);
    return { frame, open };
  }

  /** A copy of a frame that is out at another position: it may be taken where that is given back. */
  #isElsewhere(header: FrameHeader, at: number): boolean {
    const sequence = this.#open.get(nameOf(header))?.sequence;
    return sequence !== undefined && sequence !== at;
  }
}

/** The points of frames, in the order of the stream. */
function assemble(taken: readonly ReadFrame[], series: readonly (readonly number[])[], points: number): StreamCut {
  const order = [...taken.keys()].sort((a, b) => taken[a]!.open.sequence! - taken[b]!.open.sequence!);
  const [places, times, values] = [new Uint32Array(points), new Float64Array(points), new Float64Array(points)];
  let at = 0;
  for (const i of order) {
    const { frame, open } = taken[i]!;
    for (const s of series[i]!) {
      const [start, end] = [frame.valueStarts[s]!, frame.valueStarts[s + 1]!];
      const time = frame.timeStarts[s]!;
      places.fill(open.inputs[s]!, at, at + end - start);
      times.set(frame.times.subarray(time, time + end - start), at);
      values.set(frame.values.subarray(start, end), at);
      at += end - start;
    }
  }
  return { frames: taken.map(({ open }) => open), series, places, times, values, points };
}
