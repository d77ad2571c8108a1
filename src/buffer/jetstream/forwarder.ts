// Publishes the points of the local buffer to the stream of the cluster.
//
//   local buffer ─▶ take live, backlog ─▶ frame ─▶ publish ─▶ PubAck ─▶ kept tail on disk ─▶ settle in the local buffer
//                                                   ▲                        │ lost in the cluster
//                                                   └────────────────────────┘
//
// One message is in flight (`node-frames.ts`).
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { KeyBucket, PointStream } from "../../cluster/connection/jetstream.ts";
import { Block } from "../../core/block.ts";
import type { BufferReader, BufferStats, Loss, PointBuffer } from "../../core/buffer.ts";
import { isAgentError, reasonOf } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import { deadline } from "../../lib/flow/abort.ts";
import { BackOff } from "../../lib/flow/repeat.ts";
import { type KeptTail, openKeptTail } from "./kept-tail.ts";
import { checkEveryMs, type NodeFrames, nodeFrames } from "./node-frames.ts";
import { openUnkeptFrames, type UnkeptFrames } from "./settled-frames.ts";
import { encodeFrame, maxFrameBytes, maxFramePoints } from "./stream-frame.ts";
import { PublishedNames } from "./stream-names.ts";

export interface ForwarderOptions {
  /** The local buffer. The forwarder opens its only reader. */
  readonly buffer: Pick<PointBuffer, "reader" | "stats">;
  readonly stream: PointStream;
  /** A bucket whose entries do not expire. */
  readonly state: KeyBucket;
  readonly node: string;
  /** Unique for each start of the agent. */
  readonly bootEpoch: string;
  readonly directory: string;
  /** Maximum age and size of the kept tail: 10 minutes and 1 GiB by default. */
  readonly keepMs?: number;
  readonly keepBytes?: number;
}

export interface ForwarderStatus {
  /** Milliseconds in which as many points arrived as wait for the stream; 0: none wait. */
  readonly lagMs: number;
  /** `full`: the stream has reached `maxSize`. */
  readonly paused: "full" | "unreachable" | undefined;
  readonly publishedPoints: number;
  readonly publishedBytes: number;
  /** Frames published again after the cluster had lost them. */
  readonly republished: number;
  readonly keptBytes: number;
  /** Points that the cluster has dropped before they were delivered. Undefined: none. */
  readonly loss: Loss | undefined;
}

/**
 * Interval for gathering points. A frame costs the servers about the same whether it holds few or many points, and has
 * about 200 bytes of headers: at 1,000 points/s a point takes 1.3 to 1.7 times as many bytes with 200 ms.
 */
const gatherMs = 500;
/** Maximum points of a live block. */
const livePoints = 16_384;
const retry = { minMs: 250, maxMs: 5_000 } as const;

export class Forwarder {
  readonly #options: ForwarderOptions;
  readonly #runtime: Runtime;
  readonly #names: PublishedNames;
  /** Unique for this forwarder; a frame is identified by node, epoch and number. */
  readonly #epoch: string;
  /** Undefined: `run` was not called yet. */
  #opened: { readonly tail: KeptTail; readonly unkept: UnkeptFrames; readonly frames: NodeFrames } | undefined;
  #number = 0;
  #points = 0;
  #bytes = 0;
  #hasMoved = false;
  /**
   * Points that waited in the local buffer at the start, less those settled since. Once they are settled, it does not know
   * which points replace them. Undefined: none waits any more.
   */
  #fromBefore: number | undefined;
  #paused: ForwarderStatus["paused"];
  readonly #lag = new ForwardLag();

  constructor(options: ForwarderOptions, runtime: Runtime) {
    this.#options = options;
    this.#runtime = { ...runtime, log: runtime.log.child({ part: "cluster" }) };
    this.#epoch = `${options.bootEpoch}-${randomBytes(4).toString("hex")}`;
    this.#names = new PublishedNames(options.state, options.node, join(options.directory, "names.json"));
  }

  get status(): ForwarderStatus {
    return {
      lagMs: this.#measureLag(),
      paused: this.#paused,
      publishedPoints: this.#points,
      publishedBytes: this.#bytes,
      republished: this.#opened?.frames.republished ?? 0,
      keptBytes: this.#opened?.tail.bytes ?? 0,
      loss: this.#opened?.unkept.loss,
    };
  }

  /**
   * To be called when this node takes a source over from another one, before its first reading is appended. Points up to
   * the latest time published by any node are then late, so that the order in the stream decides which value wins.
   */
  sourceMoved(): void {
    this.#hasMoved = true;
    this.#opened?.frames.sourceMoved();
  }

  /** Publishes until `signal` aborts. Rejects with its reason, or as the local buffer or the disk does. */
  async run(signal: AbortSignal): Promise<never> {
    const { buffer, directory, keepMs = 600_000, keepBytes = 2 ** 30 } = this.#options;
    const { clock, log } = this.#runtime;
    const unreadable = (reason: string) =>
      log.error({ reason }, "kept published points cannot be read; if the cluster loses them, they are lost");
    await using tail = await openKeptTail({ directory, keepMs, keepBytes, unreadable }, clock);
    const unkept = await openUnkeptFrames(join(directory, "unkept.json"));
    const { stream, state, node } = this.#options;
    const parts = { stream, state, node, epoch: this.#epoch, names: this.#names, tail, unkept };
    this.#opened = { tail, unkept, frames: nodeFrames(parts, this.#hasMoved, this.#runtime) };
    this.#fromBefore = buffer.stats().unsettledPoints;
    await using reader = await buffer.reader();
    await this.#untilDone(signal, () => this.#names.open());
    for (;;) {
      await this.#untilDone(signal, () => this.#running.frames.verifyIfDue());
      const points = await this.#forwardSome(reader, signal);
      this.#measureLag();
      if (points < livePoints) await clock.sleep(gatherMs, signal);
    }
  }

  #measureLag(): number {
    return this.#lag.measure(this.#runtime.clock.monotonic(), this.#options.buffer.stats());
  }

  get #running() {
    if (!this.#opened) throw new Error("the forwarder does not run");
    return this.#opened;
  }

  /** Publishes new points, then part of the backlog. Waits if there are none. Resolves with the number of points. */
  async #forwardSome(reader: BufferReader, signal: AbortSignal): Promise<number> {
    const live = await reader.take("live", { wait: false, maxPoints: livePoints }, signal);
    if (live) await this.#forward(reader, live, signal);
    const old = await reader.take("backlog", { wait: false, maxPoints: maxFramePoints }, signal);
    if (old) await this.#forward(reader, old, signal);
    else this.#fromBefore = undefined;
    if (live || old) return (live?.points ?? 0) + (old?.points ?? 0);
    // Also wake up when the next check of the stream is due.
    using due = deadline(checkEveryMs, signal, () => new Error("the stream is to be checked"), this.#runtime.clock);
    let block: Block | undefined;
    try {
      block = await reader.take("live", { wait: true, maxPoints: livePoints }, due.signal);
    } catch (error) {
      if (signal.aborted || !due.signal.aborted) throw error;
    }
    if (block) await this.#forward(reader, block, signal);
    return block?.points ?? 0;
  }

  /** Resolves once the points are published, in the kept tail on disk, and settled in the local buffer. */
  async #forward(reader: BufferReader, block: Block, signal: AbortSignal): Promise<void> {
    // A source may have been moved while `take` was waiting.
    await this.#untilDone(signal, () => this.#running.frames.verifyIfDue());
    // As of now, because publishing the first part may raise the floor.
    const { floor } = this.#running.frames;
    const isLate = (at: number) => block.late[at] === 1 || block.times[block.timeStarts[at]!]! <= floor;
    const all = Array.from(block.inputs.keys());
    for (const late of [false, true]) {
      const series = all.filter((at) => isLate(at) === late);
      for (const group of byPoints(block, series)) await this.#publishSeries(block, group, late, signal);
    }
    if (this.#fromBefore !== undefined && (this.#fromBefore -= block.points) <= 0)
      this.#running.frames.coverPublished();
    await reader.settle([{ block: block.id, inputs: block.inputs }]);
  }

  async #publishSeries(block: Block, series: readonly number[], late: boolean, signal: AbortSignal): Promise<void> {
    if (series.length === 0) return;
    const numbers = await this.#untilDone(signal, () => this.#names.numbersOf(series.map((at) => block.inputs[at]!)));
    let points = 0;
    let { latest } = this.#running.frames;
    for (const at of series) {
      const count = block.valueStarts[at + 1]! - block.valueStarts[at]!;
      points += count;
      latest = Math.max(latest, block.times[block.timeStarts[at]! + count - 1]!);
    }
    const { node } = this.#options;
    const { dictionary } = this.#names;
    const header = { node, epoch: this.#epoch, number: this.#number, before: this.#points, dictionary, late, latest };
    const frame = encodeFrame(header, block, series, numbers);
    if (frame.length > maxFrameBytes && (series.length > 1 || points > 1)) {
      if (series.length > 1) {
        const half = series.length >> 1;
        await this.#publishSeries(block, series.slice(0, half), late, signal);
        return await this.#publishSeries(block, series.slice(half), late, signal);
      }
      for (const part of halves(block, series[0]!)) await this.#publishSeries(part, [0], late, signal);
      return;
    }
    // Never reuse the number, even if the publication fails: the frame may be in the stream.
    this.#number++;
    this.#points += points;
    const sequence = await this.#untilDone(signal, () => this.#running.frames.publish(frame, header));
    await this.#keep(sequence, frame, signal);
    this.#bytes += frame.length;
  }

  /** Retries until the frame is on disk: another forwarder would publish its points again under another number. */
  async #keep(sequence: number, frame: Uint8Array, signal: AbortSignal): Promise<void> {
    const { clock, log, random } = this.#runtime;
    const backOff = new BackOff({ ...retry, random });
    for (let tries = 1; ; tries++) {
      signal.throwIfAborted();
      try {
        return await this.#running.tail.add(sequence, this.#running.frames.created, frame);
      } catch (error) {
        const reason = reasonOf(error);
        if (tries === 1)
          log.error({ reason }, "published points cannot be kept on the local disk; publishing is paused");
        await clock.sleep(backOff.next(), signal);
      }
    }
  }

  /** Retries until `call` succeeds. Meanwhile the points wait in the local buffer within its limits. */
  async #untilDone<T>(signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    const { clock, log, random } = this.#runtime;
    const backOff = new BackOff({ ...retry, random });
    for (;;) {
      signal.throwIfAborted();
      try {
        const result = await call();
        if (this.#paused) log.info({}, "publishing to the cluster goes on");
        this.#paused = undefined;
        return result;
      } catch (error) {
        if (!isAgentError(error) || !error.code.startsWith("CLUSTER_")) throw error;
        const paused = error.code === "CLUSTER_FULL" ? "full" : "unreachable";
        if (this.#paused !== paused) log.warn({ reason: reasonOf(error) }, "publishing to the cluster is paused");
        this.#paused = paused;
        if (paused === "unreachable") this.#opened?.frames.mustVerify();
        await clock.sleep(backOff.next(), signal);
      }
    }
  }
}

/** Groups of at most `maxFramePoints`, unless a single series has more. */
function* byPoints({ valueStarts }: Block, series: readonly number[]): Generator<readonly number[]> {
  let group: number[] = [];
  let points = 0;
  for (const at of series) {
    const count = valueStarts[at + 1]! - valueStarts[at]!;
    if (group.length > 0 && points + count > maxFramePoints) {
      yield group;
      [group, points] = [[], 0];
    }
    group.push(at);
    points += count;
  }
  yield group;
}

function halves(block: Block, at: number): Block[] {
  const { input, times, values } = block.series[at]!;
  const middle = times.length >> 1;
  const part = (from: number, to: number) => [
    { input, times: times.subarray(from, to), values: values.subarray(from, to) },
  ];
  return [Block.of(block.id, part(0, middle)), Block.of(block.id, part(middle, times.length))];
}

// How far forwarding is behind the local buffer, from the numbers of points. Points always arrive, so the buffer need
// never be empty: what counts is when as many points had arrived as have left it.
//
//   appended   100 at 0 s ─── 200 at 1 s ─── 300 at 2 s (now)
//   left       150                            the points that wait are the last 150: they arrived after 0 s

type Waiting = Pick<BufferStats, "appendedPoints" | "unsettledPoints">;

/** Minimum interval between two marks, and their maximum number: a longer lag is measured more coarsely. */
const markEveryMs = 100;
const mostMarks = 1_000;

export class ForwardLag {
  #marks: { readonly time: number; readonly appended: number }[] = [];

  /** Milliseconds at the monotonic time `now`; 0: no points wait. To be called regularly while points arrive. */
  measure(now: number, { appendedPoints, unsettledPoints }: Waiting): number {
    if (now - (this.#marks.at(-1)?.time ?? Number.NEGATIVE_INFINITY) >= markEveryMs)
      this.#marks.push({ time: now, appended: appendedPoints });
    const left = appendedPoints - unsettledPoints;
    const behind = this.#marks.findIndex(({ appended }) => appended > left);
    this.#marks.splice(0, behind < 0 ? this.#marks.length - 1 : behind);
    if (this.#marks.length > mostMarks) this.#marks = this.#marks.filter((_, i) => i % 2 === 0);
    return behind < 0 ? 0 : now - this.#marks[0]!.time;
  }
}
