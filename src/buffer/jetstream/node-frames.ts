// The frames of one node on the stream: publishes them in order, and publishes those again that the cluster has lost.
//
// The server stores a frame only after the last message that the node knows of. So the stream has the frames in the order
// of their numbers, and a lost end is detected before anything is stored behind it.
import type { KeyBucket, PointStream } from "../../cluster/connection/jetstream.ts";
import { AgentError } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { KeptFrame, KeptTail } from "./kept-tail.ts";
import { readSettlement, SettledFrames, type UnkeptFrames } from "./settled-frames.ts";
import {
  decodeFrame,
  decodeFrameHeader,
  encodeFrame,
  epochKey,
  type FrameHeader,
  messageIdOf,
  type StreamFrame,
} from "./stream-frame.ts";
import { type PublishedNames, subjectOf } from "./stream-names.ts";

export interface NodeFramesParts {
  readonly stream: PointStream;
  /** A bucket whose entries do not expire. */
  readonly state: KeyBucket;
  readonly node: string;
  /** Unique for this forwarder; a frame is identified by node, epoch and number. */
  readonly epoch: string;
  readonly names: PublishedNames;
  readonly tail: KeptTail;
  readonly unkept: UnkeptFrames;
}

/** Interval between checks for frames that the cluster has lost. */
export const checkEveryMs = 10_000;

export type NodeFrames = ReturnType<typeof nodeFrames>;

/** `moved`: as after `sourceMoved`. */
export function nodeFrames(parts: NodeFramesParts, moved: boolean, { clock, log, random }: Runtime) {
  const { stream, state: bucket, node, epoch, names, tail, unkept } = parts;
  const subject = subjectOf(stream, node);
  let latest = Number.NEGATIVE_INFINITY;
  /** Sequence of the node's last message, and the creation time of the stream that has it. */
  let last = 0;
  let created = "";
  let republished = 0;
  let floor = tail.frames.reduce((most, { header }) => Math.max(most, header.latest), Number.NEGATIVE_INFINITY);
  /** Epochs of other processes with the same node name: the sequence at which each was seen, infinite once reported. */
  const others = new Map<string, number>();
  let hasMoved = moved;
  let mustVerify = true;
  let verifiedAt = 0;

  async function stored(frame: Uint8Array, id: string): Promise<number | undefined> {
    const sequence = await stream.publish(subject, frame, id, last);
    if (sequence !== undefined) last = sequence;
    return sequence;
  }

  /** Verifies what the stream has, if a loss is possible or the last check was 10 s ago. Rejects as the stream does. */
  async function verifyIfDue(): Promise<void> {
    if (mustVerify || clock.monotonic() - verifiedAt >= checkEveryMs) await verify();
  }

  /** Detects frames that the cluster has lost and publishes them again. Resolves with the node's last frame. */
  async function verify(): Promise<FrameHeader | undefined> {
    mustVerify = true;
    let state = await stream.state();
    if (!state) await stream.create();
    state ??= await stream.state();
    if (!state) throw new AgentError("CLUSTER_UNREACHABLE", "the stream is being created");
    const { firstSequence } = state;
    await names.restore();
    const message = await stream.last(subject);
    const header = message && readableHeader(message.data);
    const settlement = await readSettlement(bucket);
    const settled = new SettledFrames(settlement?.frames);
    await tail.trim(
      (frame) => settled.has(frame),
      (frames) => unkept.add(frames),
    );
    const lostPoints = await unkept.judge(settled, state.created, firstSequence);
    if (lostPoints > 0) log.error({ points: lostPoints }, "the cluster has dropped points that were not delivered");
    const isOthers = message && header ? isOfOthers(message.sequence, header, state.created) : false;
    last = message?.sequence ?? 0;
    created = state.created;
    if (message && header?.epoch !== epoch) raiseFloorTo(header);
    latest = Math.max(latest, floor);
    if (hasMoved) await raiseFloor();
    // Frames are published in the order of the tail, so all frames up to the node's last one are present.
    const { frames } = tail;
    const isUpTo = (kept: FrameHeader) =>
      header !== undefined && epochKey(kept) === epochKey(header) && kept.number <= header.number;
    const present = frames.findLastIndex((kept) => isUpTo(kept.header));
    const lost = frames.filter(({ sequence, created: of, isSettled }, i) => {
      if (isSettled) return false;
      if (isOthers) return of !== created || sequence < firstSequence;
      return i > present || sequence < firstSequence;
    });
    const again = lost.length > 0 ? await republish(lost, frames) : header;
    mustVerify = false;
    verifiedAt = clock.monotonic();
    return again;
  }

  /**
   * Whether another process publishes as this node: its message follows the node's last one, which no loss can cause.
   * The order of the tail then does not show what was lost, and both would republish their tails in turn. Reports the
   * second message: the first one may be from this agent's former process, if a suspended server has stored it late.
   */
  function isOfOthers(sequence: number, header: FrameHeader, streamCreated: string): boolean {
    const key = epochKey(header);
    if (header.epoch === epoch || tail.frames.some((kept) => epochKey(kept.header) === key)) return false;
    const seen = others.get(key);
    if (seen === undefined) {
      if (streamCreated !== created || sequence <= last) return false;
      others.set(key, sequence);
    } else if (sequence > seen) {
      others.set(key, Number.POSITIVE_INFINITY);
      log.error({ node }, "another process publishes as this agent; give each one its own agent.name");
    }
    return true;
  }

  /** Publishes in order, with new message IDs: the servers may remember the ID of a message that they lost. */
  async function republish(lost: readonly KeptFrame[], all: readonly KeptFrame[]): Promise<FrameHeader | undefined> {
    const isLost = new Set(lost);
    // Those that are not late have no times of earlier frames. Those that are lost too follow in order.
    const late = all.flatMap((kept, at) => (kept.header.late && !isLost.has(kept) ? [{ kept, at }] : []));
    const round = Math.floor(random() * 2 ** 32).toString(36);
    log.warn({ messages: lost.length }, "the cluster has lost messages; publishing them again");
    for (const kept of lost) {
      const at = late.length > 0 ? all.indexOf(kept) : 0;
      const frame = await renewed(
        kept,
        late.flatMap((later) => (later.at > at ? [later.kept] : [])),
      );
      const sequence = await stored(frame, `${messageIdOf(kept.header)}.${round}`);
      if (sequence === undefined) throw new AgentError("CLUSTER_UNREACHABLE", `another process publishes as ${node}`);
      await tail.add(sequence, created, frame);
      republished++;
    }
    return lost.at(-1)?.header;
  }

  /** The frame with the newest values that the node has published for its times. `later`: frames that may have some. */
  async function renewed(kept: KeptFrame, later: readonly KeptFrame[]): Promise<Uint8Array> {
    const bytes = await tail.read(kept);
    if (later.length === 0) return bytes;
    const frame = decodeFrame(bytes);
    let isRenewed = false;
    for (const one of later) isRenewed = renew(frame, decodeFrame(await tail.read(one))) || isRenewed;
    return isRenewed ? encodeFrame(frame, frame, [...frame.numbers.keys()], [...frame.numbers]) : bytes;
  }

  async function raiseFloor(): Promise<void> {
    for (const each of await stream.subjects()) {
      const message = await stream.last(each);
      if (message) raiseFloorTo(readableHeader(message.data));
    }
    hasMoved = false;
  }

  /** Undefined: the header cannot be decoded; its latest time is assumed to be now. */
  function raiseFloorTo(header: FrameHeader | undefined): void {
    floor = Math.max(floor, header?.latest ?? clock.now());
  }

  return {
    /** Latest time of a published point. */
    get latest(): number {
      return latest;
    },
    /** Creation time of the stream that has the node's last message. */
    get created(): string {
      return created;
    },
    /** Points up to this time are published as late: an earlier start or another node may have published them. */
    get floor(): number {
      return floor;
    },
    /** Frames published again after the cluster had lost them. */
    get republished(): number {
      return republished;
    },
    /** See `Forwarder.sourceMoved`. */
    sourceMoved(): void {
      hasMoved = true;
      mustVerify = true;
    },
    /** To be called before values of times that were published may come without being marked as late. */
    coverPublished(): void {
      floor = Math.max(floor, latest);
    },
    /** To be called when a call of the stream has failed: the next one verifies first. */
    mustVerify(): void {
      mustVerify = true;
    },
    verifyIfDue,
    /** `header`: that of `frame`. Rejects as the stream does; the next try then verifies the stream first. */
    async publish(frame: Uint8Array, header: FrameHeader): Promise<number> {
      latest = Math.max(latest, header.latest);
      await verifyIfDue();
      for (;;) {
        const sequence = await stored(frame, messageIdOf(header));
        if (sequence !== undefined) return sequence;
        const found = await verify();
        // The frame was stored, but its acknowledgement was lost longer ago than the servers' duplicate window.
        if (found && epochKey(found) === epochKey(header) && found.number === header.number) return last;
      }
    },
  };
}

function readableHeader(frame: Uint8Array): FrameHeader | undefined {
  try {
    return decodeFrameHeader(frame);
  } catch {
    return undefined;
  }
}

// Renews a frame before it is published again behind later ones, which may have been delivered already.
//
//   frame 1   a@10 = 1      removed from the stream, not known as settled: published again with a@10 = 2
//   frame 2   a@10 = 2      delivered

/** Gives `frame` the values that `later` has for its times. False: it has none. */
export function renew(frame: StreamFrame, later: StreamFrame): boolean {
  if (frame.node !== later.node || frame.dictionary !== later.dictionary) return false;
  const seriesOf = new Map(Array.from(later.numbers, (number, series) => [number, series] as const));
  let isRenewed = false;
  for (const [series, number] of frame.numbers.entries()) {
    const newest = seriesOf.get(number);
    if (newest === undefined) continue;
    // Of equal times, the last one counts.
    const newer = new Map(Array.from(pointsOf(later, newest), ([time, at]) => [time, later.values[at]!] as const));
    for (const [time, at] of pointsOf(frame, series)) {
      const value = newer.get(time);
      if (value === undefined) continue;
      frame.values[at] = value;
      isRenewed = true;
    }
  }
  return isRenewed;
}

/** The time of each point of a series, and where its value is. */
function* pointsOf({ times, timeStarts, valueStarts }: StreamFrame, series: number): Generator<[number, number]> {
  const start = valueStarts[series]!;
  for (let at = start; at < valueStarts[series + 1]!; at++) yield [times[timeStarts[series]! + at - start]!, at];
}
