// The window's memory is reused, and released after a burst.
import { expect, test } from "vitest";
import { PointArena } from "../../../src/upload/series/point-memory.ts";

function fill(arena: PointArena, segments: number): number[] {
  return Array.from({ length: segments }, () => arena.allocate());
}

test("memory used by a burst is released at once when it is empty, and the capacity is unchanged", () => {
  const arena = new PointArena(1_000_000);
  const { times } = arena;
  const room = arena.freeSegments;
  const segments = fill(arena, 20_000);
  for (const segment of segments.slice(1)) arena.free(segment);
  expect(times.buffer.detached).toBe(false);
  arena.free(segments[0]!);
  expect(times.buffer.detached).toBe(true);
  expect(arena.freeSegments).toBe(room);
  expect(new Set(fill(arena, room)).size).toBe(room);
});

test("a small working set is kept", () => {
  const arena = new PointArena(1_000_000);
  const { times } = arena;
  for (let round = 0; round < 100; round++) for (const segment of fill(arena, 1_000)) arena.free(segment);
  expect(arena.times).toBe(times);
});
