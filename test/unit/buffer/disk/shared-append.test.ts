// Appends and their answers in memory that two threads see.
import { expect, test } from "vitest";
import type { StoreReply, StoreRequest } from "../../../../src/buffer/disk/worker/protocol.ts";
import {
  putReply,
  putRequest,
  sharedAppend,
  takeReply,
  takeRequest,
} from "../../../../src/buffer/disk/worker/shared-append.ts";
import type { BufferStats } from "../../../../src/core/buffer.ts";
import { epochMicros, type InputId } from "../../../../src/core/point.ts";

const now = { wall: 1.7e15, monotonic: 12.5 };
const append = (count: number, newInputs: readonly InputId[] = []): StoreRequest & { kind: "append" } => ({
  kind: "append",
  newInputs,
  group: {
    inputs: Uint32Array.from({ length: count }, (_, i) => i * 3),
    times: Float64Array.from({ length: count }, (_, i) => 1.7e15 + i),
    values: Float64Array.from({ length: count }, (_, i) => (i % 5 === 0 ? Number.NaN : -i / 7)),
    count,
  },
  now,
});
const stats: BufferStats = {
  bytes: 1,
  segments: 2,
  appendedPoints: 2 ** 40,
  settledPoints: 4,
  refusedPoints: 5,
  unsettledPoints: 6,
  oldest: epochMicros(1.7e15),
  duplicatePoints: 8,
  collidedPoints: 9,
  losses: [{ reason: "maxAge", points: 7, from: undefined, to: undefined, intervals: [] }],
  degraded: undefined,
};
const reply: StoreReply = {
  error: undefined,
  block: undefined,
  resumeAt: undefined,
  newInputs: [],
  stats,
  notes: [],
  more: false,
  unread: false,
};

test.each([0, 1, 100, 4_096])("an append of %i points is the same on the other side", (count) => {
  const shared = sharedAppend();

  expect(takeRequest(shared, putRequest(shared, append(count))!)).toEqual(append(count));
});

test("what the memory has no place for goes as a message: new names, more points, other requests", () => {
  const shared = sharedAppend();

  for (const request of [append(1, ["a" as InputId]), append(4_097), { kind: "tick", now } as const])
    expect(putRequest(shared, request)).toBeUndefined();
});

test.each([stats, { ...stats, oldest: undefined }])("counts are the same on the other side", (counts) => {
  const shared = sharedAppend();

  expect(putReply(shared, { ...reply, stats: counts }, stats.losses)).toBe("counts");
  expect(takeReply(shared, stats.losses)).toEqual({ ...reply, stats: counts });
});

test.each<[string, Partial<StoreReply>]>([
  ["an error", { error: { code: "BUFFER_UNAVAILABLE", message: "full" } }],
  ["notes", { notes: [{ level: "warn", fields: {}, message: "a write to the buffer failed" }] }],
  ["new names", { newInputs: ["b" as InputId] }],
  ["a buffer that is degraded", { stats: { ...stats, degraded: "full" } }],
  ["more losses", { stats: { ...stats, losses: [...stats.losses, ...stats.losses] } }],
  [
    "a greater loss",
    { stats: { ...stats, losses: [{ reason: "maxAge", points: 8, from: undefined, to: undefined, intervals: [] }] } },
  ],
  ["no counts", { stats: undefined }],
])("%s is told in a message", (_, more) => {
  expect(putReply(sharedAppend(), { ...reply, ...more }, stats.losses)).toBeUndefined();
});
