import fc from "fast-check";
import { expect, test } from "vitest";
import { SequenceTracker } from "../../../../src/source/opcua/sequence.ts";

const data = (sequenceNumber: number, available: number[] = []) => ({ sequenceNumber, keepAlive: false, available });
const keepAlive = (sequenceNumber: number, available: number[] = []) => ({
  sequenceNumber,
  keepAlive: true,
  available,
});

test("messages in order leave nothing missing", () => {
  const tracker = new SequenceTracker(1);
  for (const number of [1, 2, 3]) expect(tracker.arrived(data(number))).toEqual({ missing: [], known: false });
});

test("a gap names every missing message in order", () => {
  const tracker = new SequenceTracker(1);
  tracker.arrived(data(1));
  expect(tracker.arrived(data(5))).toEqual({ missing: [2, 3, 4], known: false });
  expect(tracker.arrived(data(6))).toEqual({ missing: [], known: false });
});

test("a keep-alive announces the next message: after it the first notification of an outage is missed", () => {
  const tracker = new SequenceTracker(1);
  tracker.arrived(data(1));
  expect(tracker.arrived(keepAlive(2)).missing).toEqual([]);
  expect(tracker.arrived(data(3)).missing).toEqual([2]);
});

test("a keep-alive after a lost message tells of it", () => {
  const tracker = new SequenceTracker(1);
  tracker.arrived(data(1));
  expect(tracker.arrived(keepAlive(3)).missing).toEqual([2]);
});

test("a keep-alive that repeats the last number instead of announcing the next changes nothing", () => {
  const tracker = new SequenceTracker(1);
  tracker.arrived(data(1));
  tracker.arrived(data(2));
  expect(tracker.arrived(keepAlive(2))).toEqual({ missing: [], known: false });
  expect(tracker.arrived(data(3))).toEqual({ missing: [], known: false });
});

test("after 4294967295 comes 1", () => {
  const tracker = new SequenceTracker(4_294_967_294);
  expect(tracker.arrived(data(4_294_967_294)).missing).toEqual([]);
  expect(tracker.arrived(data(2)).missing).toEqual([4_294_967_295, 1]);
});

test("a message that was had before is known", () => {
  const tracker = new SequenceTracker(1);
  for (const number of [1, 2, 3]) tracker.arrived(data(number));
  expect(tracker.arrived(data(2))).toEqual({ missing: [], known: true });
  expect(tracker.arrived(data(4))).toEqual({ missing: [], known: false });
});

test("a subscription taken up again asks for everything the server has kept, around the wrap too", () => {
  expect(new SequenceTracker(undefined).arrived(data(9, [7, 8, 9])).missing).toEqual([7, 8]);
  expect(new SequenceTracker(undefined).arrived(keepAlive(9, [8, 7])).missing).toEqual([7, 8]);
  expect(new SequenceTracker(undefined).arrived(data(2, [4_294_967_295, 1, 2])).missing).toEqual([4_294_967_295, 1]);
});

test("whatever is dropped on the way, every message is had once and in order", () => {
  const delivered = fc.array(fc.constantFrom("arrives", "lost", "keep-alive"), { maxLength: 60 });
  const start = fc.constantFrom(1, 77, 4_294_967_280);
  fc.assert(
    fc.property(delivered, start, (fates, first) => {
      const tracker = new SequenceTracker(first);
      const had: number[] = [];
      const sent: number[] = [];
      let next: number = first;
      for (const fate of [...fates, "arrives"]) {
        const keep = fate === "keep-alive";
        if (fate !== "lost")
          had.push(...tracker.arrived({ sequenceNumber: next, keepAlive: keep, available: [] }).missing);
        if (keep) continue;
        sent.push(next);
        if (fate === "arrives") had.push(next);
        next = next === 4_294_967_295 ? 1 : next + 1;
      }
      expect(had).toEqual(sent);
    }),
    { seed: 1, numRuns: 200 },
  );
});
