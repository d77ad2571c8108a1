// The usual append and the usual answer to it, in memory that both threads see: what is left of the messages is that they
// come. One append is under way at most; the log thread takes its points out before it answers.
import type { BufferStats, Loss } from "../../../core/buffer.ts";
import { epochMicros } from "../../../core/point.ts";
import type { PointColumns } from "../format/point-columns.ts";
import type { Moment } from "../log/environment.ts";
import type { StoreReply, StoreRequest } from "./protocol.ts";

/** More points than that go in a message of their own. */
const mostPoints = 4_096;

export interface SharedAppend {
  readonly inputs: Uint32Array<SharedArrayBuffer>;
  readonly times: Float64Array<SharedArrayBuffer>;
  readonly values: Float64Array<SharedArrayBuffer>;
  /** The time of the request; then the counts of the answer, which are all that changed. */
  readonly numbers: Float64Array<SharedArrayBuffer>;
}

/** What is sent in place of a request and of its answer. */
export type SharedRequest = { readonly points: number };
export type SharedReply = "counts";

export function sharedAppend(): SharedAppend {
  const doubles = (length: number) => new Float64Array(new SharedArrayBuffer(8 * length));
  return {
    inputs: new Uint32Array(new SharedArrayBuffer(4 * mostPoints)),
    times: doubles(mostPoints),
    values: doubles(mostPoints),
    numbers: doubles(9),
  };
}

/** Undefined: it is none that fits, and goes as it is. */
export function putRequest(shared: SharedAppend, request: StoreRequest): SharedRequest | undefined {
  if (request.kind !== "append" || request.newInputs.length > 0 || request.group.count > mostPoints) return undefined;
  const { group, now } = request;
  shared.inputs.set(group.inputs);
  shared.times.set(group.times);
  shared.values.set(group.values);
  shared.numbers[0] = now.wall;
  shared.numbers[1] = now.monotonic;
  return { points: group.count };
}

export function takeRequest(shared: SharedAppend, { points }: SharedRequest): StoreRequest {
  const { inputs, times, values, numbers } = shared;
  const group: PointColumns = {
    inputs: new Uint32Array(inputs.subarray(0, points)),
    times: new Float64Array(times.subarray(0, points)),
    values: new Float64Array(values.subarray(0, points)),
    count: points,
  };
  const now: Moment = { wall: numbers[0]!, monotonic: numbers[1]! };
  return { kind: "append", newInputs: [], group, now };
}

/** Undefined: there is more to tell than counts. `losses` are those told last. */
export function putReply(shared: SharedAppend, reply: StoreReply, losses: readonly Loss[]): SharedReply | undefined {
  const { error, stats, notes, newInputs } = reply;
  if (error || !stats || notes.length > 0 || newInputs.length > 0 || stats.degraded !== undefined) return undefined;
  if (stats.losses.length !== losses.length || stats.losses.some((loss, i) => loss !== losses[i])) return undefined;
  shared.numbers.set([
    stats.bytes,
    stats.segments,
    stats.appendedPoints,
    stats.settledPoints,
    stats.refusedPoints,
    stats.unsettledPoints,
    stats.oldest ?? Number.NaN,
    stats.duplicatePoints,
    stats.collidedPoints,
  ]);
  return "counts";
}

export function takeReply({ numbers }: SharedAppend, losses: readonly Loss[]): StoreReply {
  const stats: BufferStats = {
    bytes: numbers[0]!,
    segments: numbers[1]!,
    appendedPoints: numbers[2]!,
    settledPoints: numbers[3]!,
    refusedPoints: numbers[4]!,
    unsettledPoints: numbers[5]!,
    oldest: Number.isNaN(numbers[6]) ? undefined : epochMicros(numbers[6]!),
    duplicatePoints: numbers[7]!,
    collidedPoints: numbers[8]!,
    losses,
    degraded: undefined,
  };
  return {
    error: undefined,
    block: undefined,
    resumeAt: undefined,
    newInputs: [],
    stats,
    notes: [],
    more: false,
    unread: false,
  };
}
