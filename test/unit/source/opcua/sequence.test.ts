import fc from "fast-check";
import { expect, test } from "vitest";
import { SequenceTracker } from "../../../../src/source/opcua/publishing/missing-messages.ts";
import { runs } from "../../../support/property.ts";

const data = (sequenceNumber: number, available: number[] = []) => ({ sequenceNumber, keepAlive: false, available });
const keepAlive = (sequenceNumber: number, available: number[] = []) => ({
  sequenceNumber,
  keepAlive: true,
  available,
});

const none = { missing: [], known: false, beyond: false, lags: false };

test("messages in order leave no gap", () => {
  const tracker = new SequenceTracker(1);
  for (const number of [1, 2, 3]) expect(tracker.arrived(data(number))).toEqual(none);
});

test("a gap names every missing message in order", () => {
  const tracker = new SequenceTracker(1);
  tracker.arrived(data(1));
  expect(tracker.arrived(data(5))).toEqual({ ...none, missing: [2, 3, 4] });
  expect(tracker.arrived(data(6))).toEqual(none);
});

test("after a takeover, only messages before the first one that the server has may be on another agent's disk", () => {
  const silent = new SequenceTracker(3, true);
  expect(silent.arrived(keepAlive(6))).toEqual({ ...none, missing: [3, 4, 5], lags: true });
  expect(silent.arrived(data(8))).toEqual({ ...none, missing: [6, 7] });

  const fetching = new SequenceTracker(3, true);
  fetching.fetched();
  expect(fetching.arrived(data(6))).toEqual({ ...none, missing: [4, 5] });
});

test("a keep-alive announces the next message, so a lost first notification is noticed", () => {
  const tracker = new SequenceTracker(1);
  tracker.arrived(data(1));
  expect(tracker.arrived(keepAlive(2)).missing).toEqual([]);
  expect(tracker.arrived(data(3)).missing).toEqual([2]);
});

test("a keep-alive after a lost message reveals the loss", () => {
  const tracker = new SequenceTracker(1);
  tracker.arrived(data(1));
  expect(tracker.arrived(keepAlive(3)).missing).toEqual([2]);
});

test("a keep-alive that repeats the last number instead of announcing the next changes nothing", () => {
  const tracker = new SequenceTracker(1);
  tracker.arrived(data(1));
  tracker.arrived(data(2));
  expect(tracker.arrived(keepAlive(2))).toEqual(none);
  expect(tracker.arrived(data(3))).toEqual(none);
});

test("after 4294967295 comes 1", () => {
  const tracker = new SequenceTracker(4_294_967_294);
  expect(tracker.arrived(data(4_294_967_294)).missing).toEqual([]);
  expect(tracker.arrived(data(2)).missing).toEqual([4_294_967_295, 1]);
});

test("a message received before is recognised", () => {
  const tracker = new SequenceTracker(1);
  for (const number of [1, 2, 3]) tracker.arrived(data(number));
  expect(tracker.arrived(data(2))).toEqual({ ...none, known: true });
  expect(tracker.arrived(data(4))).toEqual(none);
});

test("a message that was given up and arrives late is not one received before", () => {
  const tracker = new SequenceTracker(1);
  expect(tracker.arrived(data(3)).missing).toEqual([1, 2]);
  tracker.lost(2);
  expect(tracker.arrived(data(2))).toEqual(none);
  expect(tracker.arrived(data(2))).toEqual({ ...none, known: true });
  expect(tracker.arrived(data(1))).toEqual({ ...none, known: true });
});

test("a resumed subscription requests every message kept by the server, also across the wrap-around", () => {
  expect(new SequenceTracker(undefined).arrived(data(9, [7, 8, 9])).missing).toEqual([7, 8]);
  expect(new SequenceTracker(undefined).arrived(keepAlive(9, [8, 7])).missing).toEqual([7, 8]);
  expect(new SequenceTracker(undefined).arrived(data(2, [4_294_967_295, 1, 2])).missing).toEqual([4_294_967_295, 1]);
});

test("a subscription resumed at a known message also reports messages that the server did not keep", () => {
  const tracker = new SequenceTracker(5);
  expect(tracker.arrived(data(9, [7, 8, 9]))).toEqual({ ...none, missing: [5, 6, 7, 8] });
  expect(tracker.arrived(data(10, [7, 8, 9, 10]))).toEqual(none);
  expect(new SequenceTracker(5).arrived(keepAlive(7))).toEqual({ ...none, missing: [5, 6] });
});

test("messages on disk without an acknowledgement are requested, so that the server can drop them", () => {
  const tracker = new SequenceTracker(5);
  expect(tracker.arrived(data(6, [2, 3, 6]))).toEqual({ ...none, missing: [2, 3, 5] });
  expect([2, 3, 5, 6].map((number) => tracker.isOld(number))).toEqual([true, true, false, false]);
});

test("messages fetched without an announcement are not requested again", () => {
  const tracker = new SequenceTracker(5);
  expect(tracker.next).toBe(5);
  tracker.fetched();
  tracker.fetched();
  expect(tracker.next).toBe(7);
  expect(tracker.arrived(data(6, [5, 6]))).toEqual({ ...none, known: true });
  expect(tracker.arrived(data(8, [5, 6, 7, 8]))).toEqual({ ...none, missing: [7] });
});

test("a server that restarts its numbering is accepted, and unrequestable messages are reported as lost", () => {
  const tracker = new SequenceTracker(500);
  expect(tracker.arrived(data(3, [1, 2, 3]))).toEqual({ ...none, missing: [1, 2], beyond: true });
  expect(tracker.arrived(data(4))).toEqual(none);
});

test("of too many missing messages the ones that the server has are requested", () => {
  const tracker = new SequenceTracker(1);
  tracker.arrived(data(1));
  expect(tracker.arrived(data(20_000, [19_998, 19_999, 20_000]))).toEqual({
    ...none,
    missing: [19_998, 19_999],
    beyond: true,
  });
  expect(tracker.arrived(data(20_001))).toEqual(none);
});

test("whatever is dropped, every message is delivered once and in order", () => {
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
    runs(200),
  );
});
