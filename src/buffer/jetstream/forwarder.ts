// Publishes the points of the local buffer to the stream of the cluster.
//
//   local buffer ─▶ take live, backlog ─▶ frame ─▶ publish ─▶ PubAck ─▶ kept tail on disk ─▶ settle in the local buffer
//                                                   ▲                        │ lost in the cluster
//                                                   └────────────────────────┘
//
// One message is in flight, and the server stores it only after the last message that the node knows of. So the stream
// has the frames in the order of their numbers, and a lost end is detected before anything is stored behind it.
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { KeyBucket, PointStream } from "../../cluster/jetstream.ts";
import { Block } from "../../core/block.ts";
import type { BufferReader, Loss, PointBuffer } from "../../core/buffer.ts";
import { AgentError, isAgentError, reasonOf } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import { BackOff } from "../../lib/flow/back-off.ts";
import { ForwardLag } from "./forward-lag.ts";
import { type KeptFrame, KeptTail } from "./kept-tail.ts";
import { readSettlement, SettledFrames } from "./settled-frames.ts";
import {
  decodeFrameHeader,
  encodeFrame,
  epochKey,
  type FrameHeader,
  maxFrameBytes,
  maxFramePoints,
  messageIdOf,
} from "./stream-frame.ts";
import { PublishedNames, subjectOf } from "./stream-names.ts";
import { UnkeptFrames } from "./unkept-frames.ts";

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

/** Interval for gathering points: a frame costs the servers about the same whether it holds few or many points. */
const gatherMs = 200;
/** Maximum points of a live block. */
const livePoints = 16_384;
const checkEveryMs = 10_000;
const retry = { minMs: 250, maxMs: 5_000 } as const;

export class Forwarder {
  readonly #options: ForwarderOptions;
  readonly #runtime: Runtime;
  readonly #subject: string;
  readonly #names: PublishedNames;
  /** Unique for this forwarder; a frame is identified by node, epoch and number. */
  readonly #epoch: string;
  #tail: KeptTail | undefined;
  #unkept: UnkeptFrames | undefined;
  /** Sequence of the node's last message, and the creation time of the stream that has it. */
  #last = 0;
  #created = "";
  #number = 0;
  #points = 0;
  #bytes = 0;
  #republished = 0;
  /** Points up to this time are published as late: an earlier start or another node may have published them. */
  #floor = Number.NEGATIVE_INFINITY;
  #latest = Number.NEGATIVE_INFINITY;
  /** Epochs of other processes with the same node name. */
  readonly #others = new Set<string>();
  #hasMoved = false;
  #mustVerify = true;
  #verifiedAt = 0;
  #paused: ForwarderStatus["paused"];
  readonly #lag = new ForwardLag();

  constructor(options: ForwarderOptions, runtime: Runtime) {
    this.#options = options;
    this.#runtime = { ...runtime, log: runtime.log.child({ part: "cluster" }) };
    this.#epoch = `${options.bootEpoch}-${randomBytes(4).toString("hex")}`;
    this.#subject = subjectOf(options.stream, options.node);
    this.#names = new PublishedNames(options.state, options.node, join(options.directory, "names.json"));
  }

  get status(): ForwarderStatus {
    return {
      lagMs: this.#measureLag(),
      paused: this.#paused,
      publishedPoints: this.#points,
      publishedBytes: this.#bytes,
      republished: this.#republished,
      keptBytes: this.#tail?.bytes ?? 0,
      loss: this.#unkept?.loss,
    };
  }

  /**
   * To be called when this node takes a source over from another one, before its first reading is appended. Points up to
   * the latest time published by any node are then late, so that the order in the stream decides which value wins.
   */
  sourceMoved(): void {
    this.#hasMoved = true;
    this.#mustVerify = true;
  }

  /** Publishes until `signal` aborts. Rejects with its reason, or as the local buffer or the disk does. */
  async run(signal: AbortSignal): Promise<never> {
    const { buffer, directory, keepMs = 600_000, keepBytes = 2 ** 30 } = this.#options;
    await using tail = await KeptTail.open({ directory, keepMs, keepBytes }, this.#runtime.clock);
    this.#tail = tail;
    this.#unkept = await UnkeptFrames.open(join(directory, "unkept.json"));
    for (const { header } of tail.frames) this.#floor = Math.max(this.#floor, header.latest);
    await using reader = await buffer.reader();
    await this.#untilDone(signal, () => this.#names.open());
    for (;;) {
      await this.#untilDone(signal, () => this.#verifyIfDue());
      const points = await this.#forwardSome(reader, signal);
      this.#measureLag();
      if (points < livePoints) await this.#runtime.clock.sleep(gatherMs, signal);
    }
  }

  #measureLag(): number {
    return this.#lag.measure(this.#runtime.clock.monotonic(), this.#options.buffer.stats());
  }

  get #kept(): KeptTail {
    if (!this.#tail) throw new Error("the forwarder does not run");
    return this.#tail;
  }

  /** Publishes new points, then part of the backlog. Waits if there are none. Resolves with the number of points. */
  async #forwardSome(reader: BufferReader, signal: AbortSignal): Promise<number> {
    const { clock } = this.#runtime;
    const live = await reader.take("live", { wait: false, maxPoints: livePoints }, signal);
    if (live) await this.#forward(reader, live, signal);
    const old = await reader.take("backlog", { wait: false, maxPoints: maxFramePoints }, signal);
    if (old) await this.#forward(reader, old, signal);
    if (live || old) return (live?.points ?? 0) + (old?.points ?? 0);
    // Also wake up when the next check of the stream is due.
    const due = new AbortController();
    const any = AbortSignal.any([signal, due.signal]);
    const timer = clock.sleep(checkEveryMs, any).then(
      () => due.abort(),
      () => {},
    );
    try {
      const block = await reader.take("live", { wait: true, maxPoints: livePoints }, any);
      if (block) await this.#forward(reader, block, signal);
      return block?.points ?? 0;
    } catch (error) {
      if (signal.aborted || !due.signal.aborted) throw error;
      return 0;
    } finally {
      due.abort();
      await timer;
    }
  }

  /** Resolves once the points are published, in the kept tail on disk, and settled in the local buffer. */
  async #forward(reader: BufferReader, block: Block, signal: AbortSignal): Promise<void> {
    // A source may have been moved while `take` was waiting.
    await this.#untilDone(signal, () => this.#verifyIfDue());
    // As of now, because publishing the first part may raise the floor.
    const floor = this.#floor;
    const isLate = (at: number) => block.late[at] === 1 || block.times[block.timeStarts[at]!]! <= floor;
    const all = Array.from(block.inputs.keys());
    for (const late of [false, true]) {
      const series = all.filter((at) => isLate(at) === late);
      for (const group of byPoints(block, series)) await this.#publishSeries(block, group, late, signal);
    }
    await reader.settle([{ block: block.id, inputs: block.inputs }]);
  }

  async #publishSeries(block: Block, series: readonly number[], late: boolean, signal: AbortSignal): Promise<void> {
    if (series.length === 0) return;
    const numbers = await this.#untilDone(signal, () => this.#names.numbersOf(series.map((at) => block.inputs[at]!)));
    let points = 0;
    let latest = this.#latest;
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
    this.#latest = latest;
    const sequence = await this.#untilDone(signal, () => this.#publish(frame, messageIdOf(header), header));
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
        return await this.#kept.add(sequence, this.#created, frame);
      } catch (error) {
        const reason = reasonOf(error);
        if (tries === 1)
          log.error({ reason }, "published points cannot be kept on the local disk; publishing is paused");
        await clock.sleep(backOff.next(), signal);
      }
    }
  }

  /** Rejects as the stream does; the next try then verifies the stream first. */
  async #publish(frame: Uint8Array, id: string, header: FrameHeader): Promise<number> {
    await this.#verifyIfDue();
    for (;;) {
      const sequence = await this.#stored(frame, id);
      if (sequence !== undefined) return sequence;
      const last = await this.#verify();
      // The frame was stored, but its acknowledgement was lost longer ago than the servers' duplicate window.
      if (last && epochKey(last) === epochKey(header) && last.number === header.number) return this.#last;
    }
  }

  async #stored(frame: Uint8Array, id: string): Promise<number | undefined> {
    const sequence = await this.#options.stream.publish(this.#subject, frame, id, this.#last);
    if (sequence !== undefined) this.#last = sequence;
    return sequence;
  }

  async #verifyIfDue(): Promise<void> {
    if (this.#mustVerify || this.#runtime.clock.monotonic() - this.#verifiedAt >= checkEveryMs) await this.#verify();
  }

  /** Detects frames that the cluster has lost and publishes them again. Resolves with the node's last frame. */
  async #verify(): Promise<FrameHeader | undefined> {
    this.#mustVerify = true;
    const { stream, state: bucket } = this.#options;
    let state = await stream.state();
    if (!state) await stream.create();
    state ??= await stream.state();
    if (!state) throw new AgentError("CLUSTER_UNREACHABLE", "the stream is being created");
    const { created, firstSequence } = state;
    await this.#names.restore();
    const last = await stream.last(this.#subject);
    const header = last && readableHeader(last.data);
    const settlement = await readSettlement(bucket);
    const settled = new SettledFrames(settlement?.frames);
    await this.#kept.trim(
      (frame) => settled.has(frame),
      async (frames) => this.#unkept?.add(frames),
    );
    const lostPoints = (await this.#unkept?.judge(settled, created, firstSequence)) ?? 0;
    if (lostPoints > 0)
      this.#runtime.log.error({ points: lostPoints }, "the cluster has dropped points that were not delivered");
    const isOthers = last !== undefined && header !== undefined && this.#isOthers(last.sequence, header, created);
    this.#last = last?.sequence ?? 0;
    this.#created = created;
    if (last && header?.epoch !== this.#epoch) this.#raiseFloorTo(header);
    this.#latest = Math.max(this.#latest, this.#floor);
    if (this.#hasMoved) await this.#raiseFloor();
    // Frames are published in the order of the tail, so all frames up to the node's last one are present.
    const frames = this.#kept.frames;
    const isUpTo = (kept: FrameHeader) =>
      header !== undefined && epochKey(kept) === epochKey(header) && kept.number <= header.number;
    const present = frames.findLastIndex((kept) => isUpTo(kept.header));
    const lost = frames.filter(({ sequence, created: stream }, i) => {
      if (isOthers) return stream !== created || sequence < firstSequence;
      return i > present || sequence < firstSequence;
    });
    const again = lost.length > 0 ? await this.#republish(lost) : header;
    this.#mustVerify = false;
    this.#verifiedAt = this.#runtime.clock.monotonic();
    return again;
  }

  /**
   * Whether another process publishes as this node: its message follows the node's last one, which no loss can cause.
   * The order of the tail then does not show what was lost, and both would republish their tails in turn.
   */
  #isOthers(sequence: number, header: FrameHeader, created: string): boolean {
    const key = epochKey(header);
    const isKnown = header.epoch === this.#epoch || this.#kept.frames.some((kept) => epochKey(kept.header) === key);
    if (isKnown || this.#others.has(key)) return !isKnown;
    if (created !== this.#created || sequence <= this.#last) return false;
    this.#others.add(key);
    const { node } = this.#options;
    this.#runtime.log.error({ node }, "another process publishes as this agent; give each one its own agent.name");
    return true;
  }

  /** Publishes in order, with new message IDs: the servers may remember the ID of a message that they lost. */
  async #republish(lost: readonly KeptFrame[]): Promise<FrameHeader | undefined> {
    const { log, random } = this.#runtime;
    const round = Math.floor(random() * 2 ** 32).toString(36);
    log.warn({ messages: lost.length }, "the cluster has lost messages; publishing them again");
    for (const kept of lost) {
      const frame = await this.#kept.read(kept);
      const sequence = await this.#stored(frame, `${messageIdOf(kept.header)}.${round}`);
      if (sequence === undefined)
        throw new AgentError("CLUSTER_UNREACHABLE", `another process publishes as ${this.#options.node}`);
      await this.#kept.add(sequence, this.#created, frame);
      this.#republished++;
    }
    return lost.at(-1)?.header;
  }

  async #raiseFloor(): Promise<void> {
    const { stream } = this.#options;
    for (const subject of await stream.subjects()) {
      const last = await stream.last(subject);
      if (last) this.#raiseFloorTo(readableHeader(last.data));
    }
    this.#hasMoved = false;
  }

  /** Undefined: the header cannot be decoded; its latest time is assumed to be now. */
  #raiseFloorTo(header: FrameHeader | undefined): void {
    this.#floor = Math.max(this.#floor, header?.latest ?? this.#runtime.clock.now());
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
        this.#mustVerify ||= paused === "unreachable";
        await clock.sleep(backOff.next(), signal);
      }
    }
  }
}

function readableHeader(frame: Uint8Array): FrameHeader | undefined {
  try {
    return decodeFrameHeader(frame);
  } catch {
    return undefined;
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
