// Reads frames from the stream and cuts blocks out of them. Frames are identified by node, epoch and number, so that a
// frame published again is taken once.
//
// Memory: a range set of settled positions, the series of leased or partly settled frames, and a few decoded frames.
import type { PointStream, StreamMessage } from "../../cluster/connection/jetstream.ts";
import type { Lane, TakeOptions } from "../../core/buffer.ts";
import { isAgentError } from "../../core/errors.ts";
import type { InputId } from "../../core/point.ts";
import type { InputTable } from "../disk/format/input-table.ts";
import type { PartialFrame, SettledFrames } from "./settled-frames.ts";
import { decodeFrame, type FrameHeader, frameKey, type StreamFrame } from "./stream-frame.ts";
import { OpenFrame, StreamPositions } from "./stream-leases.ts";
import { NamelessFrames, type StreamNames } from "./stream-names.ts";

/** Decoded frames kept in memory, since a take may leave part of a frame. */
const decodedFrames = 8;
/** Maximum partly settled frames stored, 10 bytes each. Settled points of others are delivered again. */
const mostPartial = 20_000;
/** Maximum frames that one take with `inputs` examines, and late frames that one take of the live lane skips. */
const mostLooks = 256;

export interface CutterParts {
  readonly stream: PointStream;
  readonly names: StreamNames;
  readonly inputs: InputTable;
  readonly settled: SettledFrames;
  /** Unsettled messages are missing from the stream or damaged. */
  readonly onLost: (messages: number) => void;
  /** A message cannot be delivered: it stays in the stream, and later messages are read. */
  readonly onPassed: (reason: string) => void;
}

/** `behind`: the replica that answered does not have the message yet. */
type Look = ReadFrame | "nothing" | "behind";

export class StreamCutter {
  readonly #parts: CutterParts;
  readonly positions: StreamPositions;
  readonly #open = new Map<string, OpenFrame>();
  readonly #partial = new Map<string, readonly number[]>();
  readonly #decoded = new Map<number, ReadFrame>();
  readonly #ahead: ReturnType<typeof fetchAhead>;
  /** Free inputs by position, of frames that a take passed over. They are read again only if one is requested. */
  readonly #unwanted = new Map<number, Uint32Array>();
  readonly #nameless = new NamelessFrames();

  constructor(parts: CutterParts, partial: readonly PartialFrame[]) {
    this.#parts = parts;
    this.#ahead = fetchAhead(parts.stream);
    this.positions = new StreamPositions({
      onLost: parts.onLost,
      onForgotten: () => {
        for (const frame of this.#open.values()) frame.sequence = undefined;
        for (const known of [this.#decoded, this.#unwanted, this.#nameless, this.#ahead]) known.clear();
      },
      onRemoved: (first) => {
        for (const at of this.#unwanted.keys()) if (at < first) this.#unwanted.delete(at);
      },
    });
    for (const { epoch, number, open } of partial) this.#partial.set(`${epoch}\n${number}`, open);
  }

  get partial(): PartialFrame[] {
    const leased = Array.from(this.#open, ([name, { open }]) => [name, open] as const);
    return [...this.#partial, ...leased].slice(-mostPartial).map(([name, open]) => {
      const at = name.lastIndexOf("\n");
      return { epoch: name.slice(0, at), number: Number(name.slice(at + 1)), open };
    });
  }

  /** Resolves undefined if nothing is free. Rejects as the stream does. */
  async cut(
    lane: Lane,
    { maxPoints, enough = maxPoints, inputs, except }: TakeOptions,
  ): Promise<StreamCut | undefined> {
    const numbersOf = (ids: readonly InputId[] | undefined) =>
      ids && new Set(ids.map((id) => this.#parts.inputs.find(id)));
    for (const positions of await this.#nameless.found(this.#parts.names)) this.positions.freeAll(positions);
    const taken: ReadFrame[] = [];
    const series: number[][] = [];
    let [only, without] = [numbersOf(inputs), numbersOf(except)];
    let points = 0;
    let looks = 0;
    let isFull = false;
    for (let at = this.positions.next(lane); at !== undefined && !isFull; at = this.positions.next(lane, at)) {
      const isWanted = (input: number) => only?.has(input) !== false && without?.has(input) !== true;
      if (this.#unwanted.get(at)?.some(isWanted) === false) continue;
      const read = await this.#read(at, lane);
      // Later frames may be late and must not overtake this one. The next request may reach another replica.
      if (read === "behind" && lane === "backlog") break;
      if (read === "behind" || read === "nothing") continue;
      const { frame, open } = read;
      // Reading the frame may have added its inputs to the table.
      [only, without] = [numbersOf(inputs), numbersOf(except)];
      const isSkipped = lane === "live" && frame.late;
      if ((inputs || isSkipped) && looks++ === mostLooks) break;
      if (isSkipped) {
        this.positions.markLate(at);
        continue;
      }
      const found: number[] = [];
      for (let s = 0; s < open.inputs.length && !isFull; s++) {
        const input = open.inputs[s]!;
        if (!open.isFree(s) || !isWanted(input)) continue;
        const count = frame.valueStarts[s + 1]! - frame.valueStarts[s]!;
        isFull = points > 0 && points + count > maxPoints;
        if (isFull) break;
        found.push(s);
        points += count;
      }
      if (found.length > 0) {
        taken.push(read);
        series.push(found);
      } else if (!isFull && !inputs) this.#unwanted.set(at, open.freeInputs);
      isFull ||= points >= Math.min(maxPoints, enough);
    }
    return points === 0 ? undefined : cutOf(taken, series, points);
  }

  /** To be called after series of these frames were leased, released or settled. */
  update(frames: readonly OpenFrame[]): void {
    for (const frame of frames) {
      const { sequence, header } = frame;
      if (frame.isSettled) {
        this.#parts.settled.add(header);
        if (sequence !== undefined) this.positions.finish(sequence);
      } else if (sequence !== undefined) this.positions[frame.hasFree ? "free" : "take"](sequence);
      const name = frameKey(header);
      // A frame without leases keeps only its unsettled series; its message is read again.
      this.#open.delete(name);
      this.#partial.delete(name);
      if (frame.isLeased) this.#open.set(name, frame);
      else if (!frame.isSettled && !frame.isUntouched) this.#partial.set(name, frame.open);
      if (sequence !== undefined) this.#unwanted.delete(sequence);
      // Drop decoded copies of the frame at other positions.
      for (const [at, { open }] of this.#decoded)
        if (open !== frame && frameKey(open.header) === name) this.#decoded.delete(at);
    }
  }

  async #read(at: number, lane: Lane): Promise<Look> {
    const known = this.#decoded.get(at);
    if (known) {
      // The frame was decoded earlier and may have been settled since.
      known.open.sequence = at;
      return this.#isElsewhere(known.open.header, at)
        ? "nothing"
        : { ...known, open: this.#open.get(frameKey(known.frame)) ?? known.open };
    }
    const { names, inputs, settled, stream } = this.#parts;
    const isKnown = (position: number) => this.#decoded.has(position) || this.#unwanted.has(position);
    const message = await (lane === "live"
      ? stream.next(at)
      : this.#ahead.fetch(at, (after) => this.positions.next(lane, after), isKnown));
    if (!message) return "behind";
    if (message.sequence !== at) {
      this.positions.pass(at, message.sequence, await stream.state());
      return "nothing";
    }
    const frame = this.#decode(message);
    if (!frame) return "nothing";
    if (settled.has(frame)) {
      this.positions.finish(at);
      return "nothing";
    }
    if (this.#isElsewhere(frame, at)) return "nothing";
    const name = frameKey(frame);
    let open = this.#open.get(name);
    if (!open) {
      const most = frame.numbers.reduce((most, number) => Math.max(most, number), -1);
      const ids = await names.of(frame, most + 1);
      if (!ids) {
        this.#nameless.add(frame, at, most);
        this.positions.take(at);
        this.#parts.onPassed(`the cluster has lost the names of the inputs of ${frame.node}`);
        return "nothing";
      }
      const numbers = Uint32Array.from(frame.numbers, (n) => inputs.numberOf(ids[n]!));
      open = new OpenFrame(frame, numbers, this.#partial.get(name));
    }
    open.sequence = at;
    if (!open.hasFree) this.positions.take(at);
    this.#decoded.set(at, { frame, open });
    for (const oldest of this.#decoded.keys()) if (this.#decoded.size > decodedFrames) this.#decoded.delete(oldest);
    return { frame, open };
  }

  /** Undefined: the message is damaged and counts as lost, or it is from a later version, which may deliver it. */
  #decode({ sequence, data }: StreamMessage): StreamFrame | undefined {
    try {
      return decodeFrame(data);
    } catch (error) {
      if (isAgentError(error, "BUFFER_NEWER")) {
        this.positions.take(sequence);
        this.#parts.onPassed(error.message);
      } else {
        this.positions.finish(sequence);
        this.#parts.onLost(1);
      }
      return undefined;
    }
  }

  /** Whether the frame is leased at another position. This copy may be taken if that lease is released. */
  #isElsewhere(header: FrameHeader, at: number): boolean {
    const sequence = this.#open.get(frameKey(header))?.sequence;
    return sequence !== undefined && sequence !== at;
  }
}

interface StreamCut {
  readonly frames: readonly OpenFrame[];
  /** Series taken from each frame. */
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

/** `series`: the chosen ones of each frame. The result is in the order of the stream. */
function cutOf(taken: readonly ReadFrame[], series: readonly (readonly number[])[], points: number): StreamCut {
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

/** Messages requested at once: one by one, a backlog would drain at the round trips to the servers. 8 MiB at most. */
const fetchedAhead = 16;

function fetchAhead(stream: Pick<PointStream, "next">) {
  const messages = new Map<number, Promise<StreamMessage | undefined>>();
  return {
    /**
     * Resolves with the message at `at`, and requests those that are read next. `next`: the position after another one;
     * `isKnown`: it need not be read. Rejects as the stream does.
     */
    async fetch(
      at: number,
      next: (after: number) => number | undefined,
      isKnown: (position: number) => boolean,
    ): Promise<StreamMessage | undefined> {
      for (const position of messages.keys()) if (position < at) messages.delete(position);
      let position: number | undefined = at;
      for (let i = 0; i < fetchedAhead && position !== undefined; i++) {
        if ((position === at || !isKnown(position)) && !messages.has(position)) {
          const message = stream.next(position);
          message.catch(() => {}); // it is awaited when its position is read, or not at all
          messages.set(position, message);
        }
        position = next(position);
      }
      const message = messages.get(at);
      messages.delete(at);
      return await message;
    },
    clear: () => messages.clear(),
  };
}
