// The gap record: every interval in which tags were not recorded is a row, and one outage is one row.
import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { bufferGaps } from "../../../../src/agent/gaps/buffer-gaps.ts";
import { gapFolder, readGapFolder } from "../../../../src/agent/gaps/gap-file.ts";
import { openGapRecord } from "../../../../src/agent/gaps/gap-record.ts";
import { sourceGaps } from "../../../../src/agent/gaps/source-gaps.ts";
import type { LossInterval } from "../../../../src/core/buffer.ts";
import { AgentError } from "../../../../src/core/errors.ts";
import { type EpochMicros, epochMicros } from "../../../../src/core/point.ts";
import type { TagGap } from "../../../../src/core/source.ts";
import { eventually } from "../../../support/eventually.ts";
import { connected, gapSource, polledPlace, readingAt, tagGap, withStory } from "../../../support/gap-story.ts";
import { expectMode } from "../../../support/platform.ts";
import { ManualClock, testRuntime } from "../../../support/runtime.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

const unreachable = new AgentError("SOURCE_UNREACHABLE", "10.0.0.5:4840 does not answer");
const full = new AgentError("BUFFER_UNAVAILABLE", "no space left on the disk");

test("an outage of ten thousand tags is one row, from the last reading to the next connection", () =>
  withStory(async (story) => {
    await story.later(5_000);
    story.source.lost(unreachable);
    expect(story.rows()).toEqual(["line disconnected 0- all 10000 open"]);
    await story.later(60_000);
    story.source.lost(unreachable);
    story.source.online(connected);
    expect(story.rows()).toEqual(["line disconnected 0-65 all 10000 lost what happened meanwhile is kept nowhere"]);
    expect(story.record.list(0, 9).gaps[0]).toMatchObject({ reason: unreachable.message, missingMs: 65_000 });
    expect(story.runtime.metric("gap_intervals_total", { cause: "disconnected" })).toBe(1);
    expect(story.runtime.metric("gap_lost_seconds_total")).toBe(65);
  }));

test("an outage of a polled source ends with its first value, also if other connections bring none before", () =>
  withStory(async (story) => {
    story.source.lost(unreachable);
    await story.later(10_000);
    story.source.online({ polled: [polledPlace] });
    await story.later(3_000);
    expect(story.rows()).toEqual(["line disconnected 0- all 10000 open"]);
    story.source.lost(unreachable);
    await story.later(2_000);
    story.source.online({ polled: [polledPlace] });
    const read = readingAt(await story.later(4_000));
    await story.later(500);
    story.source.delivered({ readings: [read] });
    expect(story.rows()).toEqual(["line disconnected 0-19 all 10000 lost what happened meanwhile is kept nowhere"]);
  }));

test("a suspension between the first value of a polled source after an outage and its storage is in the row", () =>
  withStory(async (story) => {
    story.source.lost(unreachable);
    await story.later(10_000);
    story.source.online({ polled: [polledPlace] });
    const read = readingAt(await story.later(500));
    await story.clock.suspend(20_000);
    story.source.delivered({ readings: [read] });
    await story.later(2_000);
    expect(story.rows()).toEqual([expect.stringMatching(/^line disconnected 0-30\.\d all 10000 lost/)]);
  }));

test("a polled source that answers with no usable value after an outage has no time without a row", () =>
  withStory(async (story) => {
    story.source.lost(unreachable);
    await story.later(10_000);
    story.source.online({ polled: [polledPlace] });
    const time = await story.later(1_000);
    story.source.failed("tag1", epochMicros(time - 11e6), "bad", "unit 1 did not answer within 1s");
    story.source.delivered({ readings: [{ ...readingAt(time), value: undefined, quality: "bad" }] });
    expect(story.rows()).toEqual([
      "line disconnected 0-11 all 10000 lost what happened meanwhile is kept nowhere",
      "line bad 10- tag1 open",
    ]);
  }));

test("a loss noticed long after the last reading begins a minute before, not with a value of hours ago", () =>
  withStory(async (story) => {
    await story.later(3_600_000);
    story.source.lost(unreachable);
    expect(story.rows()).toEqual(["line disconnected 3540- all 10000 open"]);
  }));

test("a gap whose messages the broker had queued is filled", () =>
  withStory(async (story) => {
    story.source.lost(unreachable);
    await story.later(10_000);
    story.source.online({ recovery: { how: "kept", by: "the broker had kept the session" } });
    expect(story.rows()).toEqual(["line disconnected 0-10 all 10000 filled the broker had kept the session"]);
    expect(story.runtime.metric("gap_lost_seconds_total")).toBe(0);
  }));

test("a tag that was bad during an outage, as the values tell that the broker or server had kept, has a row of that time", () =>
  withStory(async (story) => {
    await story.later(10_000);
    story.read();
    story.source.lost(unreachable);
    const [badFrom, badTo] = [await story.later(5_000), await story.later(20_000)];
    await story.later(5_000);
    story.source.online({ recovery: { how: "kept", by: "the server had kept the subscription" } });
    story.source.failed("tag1", badFrom, "bad", "the server reports BadSensorFailure");
    story.source.recovered("tag1", badTo);
    await story.later(2_000);
    story.source.lost(unreachable);
    await story.later(5_000);
    story.source.online(connected);
    // What was not kept is in the row of the outage.
    story.source.failed("tag2", badFrom, "bad", "the server reports BadNoCommunication");
    await story.later(2_000);
    expect(story.rows().filter((row) => row.startsWith("line bad"))).toEqual([
      "line bad 15-35 tag1 lost",
      "line bad 47- tag2 open",
    ]);
  }));

test("the time between a kill and the next start is a row that begins with the last value on disk at the last heartbeat", () =>
  withStory(async (story) => {
    let last = story.clock.now();
    for (let reads = 0; reads < 20; reads++) {
      last = await story.later(1_000);
      story.read();
    }
    // The device is silent from now on, and the kill comes before the poll that would report it.
    await eventually(async () => {
      await story.later(1_000);
      return ((await readGapFolder(story.folder)).life?.time ?? 0) > last;
    });
    await story.restart({ killed: true, afterMs: 100_000 });
    await story.later(2_000);
    story.source.online(connected);
    const [row] = story.record.list(0, 9).gaps;
    expect(row).toMatchObject({ cause: "agentDown", reason: expect.stringContaining("killed"), from: last });
    expect(row?.to).toBe(story.clock.now());
  }));

test("the time between a stop and the next start is a row with that cause, and continues an open outage", () =>
  withStory(async (story) => {
    await story.restart({ killed: false, afterMs: 10_000 });
    story.source.online(connected);
    story.source.lost(unreachable);
    await story.later(5_000);
    await story.restart({ killed: false, afterMs: 10_000 });
    await story.later(1_000);
    story.source.online(connected);
    expect(story.rows()).toEqual([
      "line agentDown 0-10 all 10000 lost what happened meanwhile is kept nowhere",
      "line disconnected 10-26 all 10000 lost what happened meanwhile is kept nowhere",
    ]);
    expect(story.record.list(0, 9).gaps[1]?.reason).toBe("the agent was stopped");
  }));

test("a reload that restarts a source is a row with that cause", () =>
  withStory(async (story) => {
    await story.later(10_000);
    story.source[Symbol.dispose]();
    await story.later(2_000);
    story.source = sourceGaps(story.record, gapSource, story.runtime);
    story.source.online(connected);
    expect(story.rows()).toEqual(["line stopped 10-12 all 10000 lost what happened meanwhile is kept nowhere"]);
    expect(story.record.summary()).toMatchObject({ day: 1, dayLost: 1, dayReloads: 1 });
    expect(story.record.summary().lastLost).toBeUndefined();
  }));

test("an outage of more than a minute after a reload is no restart, but a loss to look at", () =>
  withStory(async (story) => {
    story.source[Symbol.dispose]();
    await story.later(61_000);
    story.source = sourceGaps(story.record, gapSource, story.runtime);
    story.source.online(connected);
    expect(story.record.summary()).toMatchObject({ dayLost: 1, lastLost: { cause: "stopped" } });
    expect(story.record.summary().dayReloads).toBeUndefined();
  }));

test("when the clock is set only after the start, the row of the time without the agent ends at the real start", () =>
  withStory(async (story) => {
    await story.restart({ killed: false, afterMs: 3_600_000 });
    story.clock.stepWall(-7_200_000);
    await story.later(5_000);
    story.source.online(connected);
    await story.later(60_000);
    story.clock.stepWall(7_200_000);
    await story.later(2_000);
    expect(story.rows()).toEqual(["line agentDown 0-3605 all 10000 lost what happened meanwhile is kept nowhere"]);
  }));

test("tags that fail and recover together share a row; a tag that recovers sooner has its own", () =>
  withStory(async (story) => {
    const dead = "unit 3 does not answer";
    const failing = await story.later(10_000);
    for (const input of ["a", "b", "c"]) story.source.failed(input, epochMicros(failing - 1e6), "bad", dead);
    story.read();
    expect(story.rows()).toEqual(["line bad 9- a+b+c open"]);
    story.source.recovered("b", await story.later(20_000));
    story.read();
    await story.later(10_000);
    const end = await story.later(0);
    story.source.recovered("a", end);
    story.source.recovered("c", end);
    story.read();
    expect(story.rows()).toEqual(["line bad 9-40 a+c lost", "line bad 9-30 b lost"]);
  }));

test("a row of failing tags never claims the whole source, whenever the agent ends", () =>
  withStory(async (story) => {
    const since = await story.later(10_000);
    story.source.failed("a", since, "bad", "unit 3 does not answer");
    // The points of the delivery are being stored.
    expect(await story.record.save()).toBe(true);
    expect([...(await readGapFolder(story.folder)).gaps.values()]).toEqual([]);
    story.read();
    expect(await story.record.save()).toBe(true);
    expect([...(await readGapFolder(story.folder)).gaps.values()]).toMatchObject([{ inputs: ["a"], state: "open" }]);
  }));

test("a tag that fails repeatedly gets some rows and then one row that counts", () =>
  withStory(async (story) => {
    for (let i = 0; i < 50; i++) {
      story.source.failed("a", await story.later(1_000), "bad", `no answer within ${i} ms`);
      story.read();
      story.source.recovered("a", await story.later(1_000));
      story.read();
    }
    const { gaps } = story.record.list(0, 100);
    expect(gaps.length).toBeLessThan(12);
    expect(gaps.reduce((sum, { times }) => sum + times, 0)).toBe(50);
    expect(gaps.reduce((sum, { intervals = [] }) => sum + Math.max(1, intervals.length), 0)).toBe(50);
    expect(gaps.reduce((sum, { missingMs = 0 }) => sum + missingMs, 0)).toBe(50_000);
  }));

test("a row that counts hundreds of failures names at most 200 times, which cover every one of them", () =>
  withStory(async (story) => {
    const failures: [EpochMicros, EpochMicros][] = [];
    for (let i = 0; i < 300; i++) {
      const from = await story.later(1_000);
      story.source.failed("a", from, "bad", "no answer");
      story.read();
      const to = await story.later(1_000);
      story.source.recovered("a", to);
      story.read();
      failures.push([from, to]);
    }
    const { gaps } = story.record.list(0, 100);
    expect(gaps.reduce((sum, { times }) => sum + times, 0)).toBe(300);
    expect(gaps.reduce((sum, { missingMs = 0 }) => sum + missingMs, 0)).toBe(300_000);
    expect(Math.max(...gaps.map(({ intervals = [] }) => intervals.length))).toBe(200);
    const named = gaps.flatMap(({ intervals, from, to = from }) => intervals ?? [[from, to] as const]);
    const isNamed = ([from, to]: (typeof failures)[number]) => named.some(([a, b]) => a <= from && b >= to);
    expect(failures.filter((each) => !isNamed(each))).toEqual([]);
  }));

test("a gap that the device's history fills for some tags is partly filled and names the others", () =>
  withStory(async (story) => {
    const from = story.clock.now();
    story.source.lost(unreachable);
    const to = await story.later(10_000);
    story.source.online({ recovery: { how: "history" } });
    story.source.delivered({ readings: [], gaps: [1, 2, 3].map((tag) => tagGap(tag, "open", from, to)) });
    expect(story.rows()).toEqual(["line disconnected 0-10 all 10000 filling"]);
    story.source.delivered({
      readings: [],
      gaps: [tagGap(1, "filled", from, to), tagGap(2, "lost", from, to, "no history"), tagGap(3, "filled", from, to)],
    });
    await story.later(20_000);
    expect(story.rows()).toEqual(["line disconnected 0-10 all 10000 partly no history"]);
    expect(story.record.list(0, 9).gaps[0]?.unfilled).toEqual({ tags: 1, inputs: ["tag2"] });
  }));

test("a gap is being filled until all searches end, over connections and restarts", () =>
  withStory(async (story) => {
    const from = story.clock.now();
    story.source.lost(unreachable);
    const to = await story.later(10_000);
    story.source.online({ recovery: { how: "history" } });
    story.source.delivered({ readings: [], gaps: [tagGap(1, "open", from, to)] });
    await story.later(20_000);
    story.source.lost(unreachable);
    await story.restart({ killed: false, afterMs: 1_000 });
    expect(story.rows()[0]).toContain("filling");
    story.source.online({ recovery: { how: "history" } });
    story.source.delivered({ readings: [], gaps: [tagGap(1, "open", from, to)] });
    await story.later(20_000);
    expect(story.rows()[0]).toContain("filling");
    story.source.delivered({ readings: [], gaps: [tagGap(1, "filled", from, to)] });
    await story.later(2_000);
    expect(story.rows()[0]).toBe("line disconnected 0-10 all 10000 filled filled from the device's history");
  }));

test("the history read for one gap does not resolve another one shortly before it", () =>
  withStory(async (story) => {
    const outage = async () => {
      const from = story.clock.now();
      story.source.lost(unreachable);
      const to = await story.later(5_000);
      story.source.online({ recovery: { how: "history" } });
      return [from, to] as const;
    };
    const first = await outage();
    story.source.delivered({ readings: [], gaps: [tagGap(1, "open", ...first)] });
    story.source.delivered({ readings: [], gaps: [tagGap(1, "lost", ...first, "the server restarted")] });
    await story.later(1_000);
    const second = await outage();
    story.source.delivered({ readings: [], gaps: [tagGap(1, "open", ...second)] });
    story.source.delivered({ readings: [], gaps: [tagGap(1, "filled", ...second)] });
    await story.later(20_000);
    expect(story.rows()[0]).toBe("line disconnected 0-5 all 10000 partly the server restarted");
    expect(story.record.list(0, 9).gaps[1]?.unfilled).toEqual({ tags: 1, inputs: ["tag1"] });
  }));

test.each([
  ["before anything is settled, in order", 1, false],
  ["before anything is settled, by a kill", 3_000, true],
  ["while others are looked for", 20_000, false],
])("losses of some tags stay recorded when the source starts again %s", (_, afterMs, killed) =>
  withStory(async (story) => {
    const from = story.clock.now();
    story.source.lost(unreachable);
    const to = await story.later(10_000);
    story.source.online({ recovery: { how: "history" } });
    story.source.delivered({ readings: [], gaps: [tagGap(1, "open", from, to), tagGap(2, "lost", from, to)] });
    await story.later(afterMs);
    if (killed)
      await eventually(async () => {
        await story.later(1_000);
        return [...(await readGapFolder(story.folder)).gaps.values()].some(({ unfilled }) => unfilled);
      });
    await story.restart({ killed, afterMs: 1_000 });
    story.source.online({ recovery: { how: "history" } });
    story.source.delivered({ readings: [], gaps: [tagGap(1, "open", from, to)] });
    story.source.delivered({ readings: [], gaps: [tagGap(1, "filled", from, to)] });
    await story.later(20_000);
    expect(story.rows()[0]).toBe("line disconnected 0-10 all 10000 partly found out earlier");
    expect(story.record.list(0, 9).gaps.at(-1)?.unfilled).toEqual({ tags: 1, inputs: ["tag2"] });
  }),
);

test("a row begins with the last value of any tag and is not longer for tags that rarely change", () =>
  withStory(async (story) => {
    const longAgo = story.clock.now();
    const before = await story.later(600_000);
    story.source.delivered({ readings: [], gaps: [] });
    const last = await story.later(5_000);
    story.source.delivered({ readings: [readingAt(last)] });
    story.source.lost(unreachable);
    const to = await story.later(10_000);
    story.source.online({ recovery: { how: "history" } });
    const tell = (tag: number, from: EpochMicros) =>
      story.source.delivered({ readings: [], gaps: [tagGap(tag, "lost", from, to)] });
    tell(1, longAgo);
    // The driver's times are before all times that the agent has recorded for this tag.
    expect(story.rows()).toEqual(["line disconnected 545-615 all 10000 filling"]);
    tell(2, last);
    expect(story.rows()).toEqual(["line disconnected 605-615 all 10000 filling"]);
    tell(3, before);
    expect(story.rows()).toEqual(["line disconnected 600-615 all 10000 filling"]);
  }));

test("a reported loss is on disk before it is acknowledged: a kill just after that does not turn it into filled", () =>
  withStory(async (story) => {
    await eventually(async () => {
      await story.later(1_000);
      return (await readGapFolder(story.folder)).life?.sources.line !== undefined;
    });
    const from = story.clock.now();
    story.source.lost(unreachable);
    const to = await story.later(10_000);
    story.source.online({ recovery: { how: "history" } });
    await story.record.save();
    story.source.delivered({ readings: [], gaps: [tagGap(1, "open", from, to), tagGap(2, "open", from, to)] });
    story.source.delivered({ readings: [], gaps: [tagGap(1, "filled", from, to), tagGap(2, "lost", from, to)] });
    await story.source.written();
    // In this run the driver does not report the gap again.
    await story.restart({ killed: true, afterMs: 1_000 });
    story.source.online({ recovery: { how: "kept", by: "the server" } });
    expect(story.rows()[0]).toMatch(/disconnected .* partly found out earlier$/);
    expect(story.record.get(1)?.unfilled).toEqual({ tags: 1, inputs: ["tag2"] });
  }));

test("a loss is not assigned to the previous, filled row, except when the device clock is ahead", () =>
  withStory(async (story) => {
    for (const state of ["filled", "lost"] as const) {
      const from = story.clock.now();
      story.source.lost(unreachable);
      const to = await story.later(5_000);
      story.source.online({ recovery: { how: "history" } });
      story.source.delivered({ readings: [], gaps: [tagGap(1, "open", from, to)] });
      story.source.delivered({ readings: [], gaps: [tagGap(1, state, from, to)] });
      const [ahead, later] = [epochMicros(from + 20e6), epochMicros(to + 20e6)];
      story.source.delivered({ readings: [], gaps: [tagGap(2, "open", ahead, later)] });
      story.source.delivered({ readings: [], gaps: [tagGap(2, "filled", ahead, later)] });
      await story.later(1_000);
    }
    await story.later(20_000);
    expect(story.rows()).toEqual([
      "line disconnected 0-5 all 10000 filled filled from the device's history",
      "line disconnected 5-11 all 10000 partly ?",
    ]);
  }));

test("repeated queue overflows are rows that cover each time and all tags", () =>
  withStory(async (story) => {
    story.source.online({ recovery: { how: "history" } });
    const start = await story.later(100_000);
    const full = (tag: number, from: number, to: number, state: TagGap["state"]) => ({
      ...tagGap(tag, state, epochMicros(start + from * 1e6), epochMicros(start + to * 1e6)),
      cause: "overflow" as const,
    });
    for (const state of ["open", "lost"] as const)
      story.source.delivered({ readings: [], gaps: [full(1, -50, -48, state), full(2, -49, -45, state)] });
    for (const state of ["open", "filled"] as const)
      story.source.delivered({ readings: [], gaps: [full(1, -20, -18, state)] });
    await story.later(2_000);
    expect(story.rows()).toEqual([
      "line overflow 50-55 tag1+tag2 lost ?",
      "line overflow 80-82 tag1 filled filled from the device's history",
    ]);
  }));

test("a gap that overlaps a combined row gets its own row", () =>
  withStory(async (story) => {
    story.source.online({ recovery: { how: "history" } });
    const start = await story.later(200_000);
    const full = (from: number, to: number) => {
      const gap = tagGap(1, "lost", epochMicros(start + from * 1e6), epochMicros(start + to * 1e6));
      story.source.delivered({ readings: [], gaps: [{ ...gap, cause: "overflow" }] });
    };
    for (let i = 0; i < 14; i++) {
      full(5 * i - 100, 5 * i - 99);
      await story.later(20_000);
    }
    const last = story.record.list(0, 99).gaps.find(({ times }) => times > 1);
    if (!last?.to) throw new TypeError("they are alike, and many");
    full((last.to - start) / 1e6 - 3, (last.to - start) / 1e6 + 7);
    await story.later(20_000);
    const ends = story.record.list(0, 99).gaps.flatMap(({ intervals, from, to = from }) => intervals ?? [[from, to]]);
    expect(ends).toContainEqual([last.to - 3e6, last.to + 7e6]);
  }));

test("of many gaps of many tags the oldest are no longer followed, and none stays in state filling", () =>
  withStory(async (story) => {
    for (let i = 0; i < 12; i++) {
      const from = story.clock.now();
      story.source.lost(unreachable);
      const to = await story.later(70_000);
      story.source.online({ recovery: { how: "history" } });
      const tags = Array.from({ length: 10_000 }, (_, tag) => tag);
      story.source.delivered({ readings: [], gaps: tags.map((tag) => tagGap(tag, "open", from, to)) });
      await story.later(1_000);
    }
    const open = story.rows().filter((row) => row.includes("filling"));
    expect(open).toHaveLength(10);
    expect(story.rows()[0]).toContain("lost too many gaps");
  }));

test("values discarded by the server are a row of the tags concerned", () =>
  withStory(async (story) => {
    const from = story.clock.now();
    const to = await story.later(3_000);
    story.source.delivered({
      readings: [],
      gaps: [{ ...tagGap(7, "lost", from, to, "no history"), cause: "overflow" }],
    });
    await story.later(2_000);
    expect(story.rows()).toEqual(["line overflow 0-3 tag7 lost no history"]);
  }));

test("a time in which points cannot be stored is lost, or filled where the broker keeps the values", () =>
  withStory(async (story) => {
    for (const retainedBy of [undefined, "the broker"]) {
      story.source.online({ retainedBy });
      story.source.bufferFailed(full);
      await story.later(5_000);
      story.source.bufferFailed(full);
      story.source.bufferFailed(undefined);
    }
    await story.later(15_000);
    expect(story.rows()).toEqual([
      "line buffer 0-5 all 10000 lost",
      "line buffer 5-10 all 10000 filled the broker kept them",
    ]);
  }));

test("values that the broker kept while points could not be stored are lost with its session", () =>
  withStory(async (story) => {
    story.source.online({ retainedBy: "the broker" });
    story.source.bufferFailed(full);
    await story.later(100_000);
    story.source.bufferFailed(undefined);
    story.read();
    expect(story.rows()).toEqual(["line buffer 0-100 all 10000 filling"]);
    story.source.lost(unreachable);
    await story.later(10_000);
    expect(story.rows()[0]).toBe("line buffer 0-100 all 10000 filling");
    story.source.online(connected);
    expect(story.rows()).toEqual([
      "line buffer 0-100 all 10000 lost what happened meanwhile is kept nowhere",
      "line disconnected 100-110 all 10000 lost what happened meanwhile is kept nowhere",
    ]);
  }));

test("a suspension does not count as time in which values that the broker kept have come", () =>
  withStory(async (story) => {
    story.source.online({ retainedBy: "the broker" });
    story.source.bufferFailed(full);
    await story.later(20_000);
    story.source.bufferFailed(undefined);
    story.read();
    await story.later(8_000);
    await story.clock.suspend(20_000);
    story.source.lost(unreachable);
    await story.later(5_000);
    story.source.online(connected);
    expect(story.rows()[0]).toBe("line buffer 0-20 all 10000 lost what happened meanwhile is kept nowhere");
  }));

test.each([
  ["stops", false],
  ["is killed", true],
])(
  "values that the broker keeps while points cannot be stored are filled if the agent %s, and its session is continued",
  (_, killed) =>
    withStory(async (story) => {
      story.source.online({ retainedBy: "the broker" });
      story.source.bufferFailed(full);
      await story.later(20_000);
      await eventually(async () => {
        await story.later(1_000);
        const { gaps, life } = await readGapFolder(story.folder);
        return gaps.size > 0 && life?.sources.line !== undefined;
      });
      await story.restart({ killed, afterMs: 10_000 });
      expect(story.rows()[0]).toMatch(/^line buffer 0-\d+ all 10000 filling$/);
      await story.later(10_000);
      story.source.online({ recovery: { how: "kept", by: "the broker had kept the session" } });
      expect(story.record.list(0, 9).gaps.map(({ state }) => state)).toEqual(["filled", "filled"]);
    }),
);

test("what a polled source reads while points cannot be stored waits in memory and is no loss, unless the agent ends", () =>
  withStory(async (story) => {
    story.source.online({ polled: [polledPlace] });
    story.read();
    story.source.bufferFailed(full);
    await story.later(5_000);
    story.source.bufferFailed(undefined);
    expect(story.rows()).toEqual(["line buffer 0-5 all 10000 filled the agent kept them in memory"]);
    story.read();
    await story.later(1_000);
    story.source.bufferFailed(full);
    await story.later(5_000);
    await story.restart({ killed: false, afterMs: 1_000 });
    expect(story.rows()[1]).toBe("line buffer 5-11 all 10000 lost");
  }));

test("a disk that neither stores nor fails is a gap as soon as it hangs", () =>
  withStory(async (story) => {
    story.source.storing();
    await story.later(4_000);
    expect(story.rows()).toEqual([]);
    await story.later(3_000);
    expect(story.rows()).toEqual(["line buffer 0- all 10000 open"]);
    story.source.bufferFailed(undefined);
    await story.later(10_000);
    expect(story.rows()).toEqual(["line buffer 0-7 all 10000 lost"]);
  }));

test("a suspended agent is a gap of the sources whose values nothing keeps meanwhile, and no fault of the disk", () =>
  withStory(async (story) => {
    for (const retainedBy of ["the broker", undefined]) {
      story.source.online({ retainedBy });
      story.read();
      await story.later(3_000);
      story.read();
      story.source.storing();
      await story.clock.suspend(10_000);
      story.source.bufferFailed(undefined);
      story.read();
      await story.later(3_000);
    }
    expect(story.rows()).toEqual(["line agentDown 19-29 all 10000 lost"]);
    expect(story.record.list(0, 1).gaps[0]?.reason).toContain("suspended");
  }));

test("a suspension ends when the agent runs again, and a connection lost by it is a gap of its own", () =>
  withStory(async (story) => {
    await story.later(3_000);
    story.read();
    await story.clock.suspend(600_000);
    // The driver's timer runs before the tick of the gap record.
    story.source.lost(unreachable);
    await story.later(2_000);
    story.source.online(connected);
    expect(story.rows()).toEqual([
      "line agentDown 3-603 all 10000 lost",
      "line disconnected 603-605 all 10000 lost what happened meanwhile is kept nowhere",
    ]);
  }));

test("a suspension between two polls begins when the agent last ran, and counts once when the connection is lost later", () =>
  withStory(async (story) => {
    await story.later(50_000);
    await story.clock.suspend(6_000);
    await story.later(2_000);
    story.source.lost(unreachable);
    expect(story.rows()).toEqual(["line agentDown 50-56 all 10000 lost", "line disconnected 56- all 10000 open"]);
  }));

test("a suspension is in the record before a heartbeat states that its time is accounted for", () =>
  withStory(async (story) => {
    await story.later(3_000);
    story.read();
    const suspended = story.clock.now();
    const resumed = story.clock.suspend(600_000);
    // The heartbeat may be due before the source notices the suspension.
    expect(story.source.accountedUpTo).toBe(story.clock.now());
    expect(story.record.list(0, 9).gaps).toMatchObject([
      { cause: "agentDown", from: suspended, to: story.clock.now() },
    ]);
    await resumed;
  }));

test("values that the broker kept during a suspension are in the outage that follows, since its session may be gone", () =>
  withStory(async (story) => {
    story.source.online({ retainedBy: "the broker" });
    story.read();
    await story.clock.suspend(600_000);
    await story.later(2_000);
    expect(story.source.accountedUpTo).toBe(story.clock.now() - 602e6);
    story.source.lost(unreachable);
    await story.later(5_000);
    story.source.online(connected);
    expect(story.rows()).toEqual(["line disconnected 0-607 all 10000 lost what happened meanwhile is kept nowhere"]);
  }));

test("a connection that outlives a suspension by a minute has received what the broker kept", () =>
  withStory(async (story) => {
    story.source.online({ retainedBy: "the broker" });
    await story.clock.suspend(600_000);
    for (let i = 0; i < 61; i++) {
      await story.later(1_000);
      story.read();
    }
    story.source.lost(unreachable);
    expect(story.rows()).toEqual(["line disconnected 661- all 10000 open"]);
  }));

test("a gap that was being filled when the agent ended stays so until the source is connected again", () =>
  withStory(async (story) => {
    story.source.lost(unreachable);
    await story.later(10_000);
    story.source.online({ recovery: { how: "history" } });
    expect(story.rows()).toEqual(["line disconnected 0-10 all 10000 filling"]);
    await story.restart({ killed: false, afterMs: 1_000 });
    await story.later(600_000);
    expect(story.rows()[0]).toContain("line disconnected 0-10 all 10000 filling");
    // The driver remembers nothing.
    story.source.online(connected);
    expect(story.rows()[0]).toBe("line disconnected 0-10 all 10000 lost what happened meanwhile is kept nowhere");
  }));

/** A source that this agent reads while it holds the lease. No other agent has read it. */
async function sharedSource() {
  const folder = temporaryFolder();
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  const lease = { isHeld: true };
  const shared = { former: undefined, isHeld: () => lease.isHeld };
  const record = await openGapRecord(gapFolder(folder.path), [gapSource.name], runtime);
  return {
    clock,
    lease,
    record,
    read: () => sourceGaps(record, { ...gapSource, shared }, runtime),
    async [Symbol.asyncDispose]() {
      await record[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}

test("an agent that was suspended while another one may read the source records no gap for it", async () => {
  await using site = await sharedSource();
  using source = site.read();
  source.online(connected);
  site.lease.isHeld = false;
  await site.clock.suspend(20_000);
  await site.clock.advance(2_000);
  expect(site.record.list(0, 9).gaps).toEqual([]);
});

test.each([
  { when: "at once", later: 0 },
  { when: "later", later: 2_000 },
])(
  "an agent that was suspended and reads a shared source again records the time in between: $when",
  async ({ later }) => {
    await using site = await sharedSource();
    const { clock, record, lease } = site;
    const before = site.read();
    before.online(connected);
    await clock.advance(2_000);
    const suspended = clock.now();
    lease.isHeld = false;
    await clock.suspend(600_000);
    await clock.advance(later);
    before[Symbol.dispose]();
    lease.isHeld = true;
    using after = site.read();
    after.online(connected);
    expect(record.list(0, 9).gaps).toMatchObject([{ cause: "takeover", from: suspended, to: clock.now() }]);
  },
);

test("points lost from the buffer are rows with their number, also over restarts, and never counted twice", () =>
  withStory(async (story) => {
    const at = (seconds: number) => epochMicros(story.clock.now() + seconds * 1e6);
    const interval = (number: number, points: number, from: number, to: number) => ({
      number,
      points,
      from: at(from),
      to: at(to),
    });
    const first = interval(0, 10, -100, -50);
    const grown = interval(0, 25, -100, -40);
    const second = interval(3, 5, -20, -10);
    const loss = (points: number, ...intervals: LossInterval[]) => ({
      losses: [{ reason: "maxSize", points, from: at(-100), to: intervals.at(-1)?.to, intervals }],
    });
    const rows = () =>
      story.record
        .list(0, 9)
        .gaps.filter(({ cause }) => cause === "buffer")
        .map(({ points, from, to }) => ({ points, from, to }));
    const spanOf = ({ points, from, to }: LossInterval) => ({ points, from, to });
    const before = bufferGaps(story.record, story.clock);
    before.record(loss(10, first));
    before.record(loss(10, first));
    expect(rows()).toEqual([spanOf(first)]);
    await story.restart({ killed: false, afterMs: 1 });
    const after = bufferGaps(story.record, story.clock);
    after.record(loss(10, first));
    after.record(loss(25, grown));
    expect(rows()).toEqual([spanOf(grown)]);
    after.record(loss(30, grown, second));
    // Points that were delivered between two losses are in neither row.
    expect(rows()).toEqual([spanOf(second), spanOf(grown)]);
  }));

test("losses of a buffer that replaced another one are rows as well", () =>
  withStory(async (story) => {
    const at = epochMicros(story.clock.now());
    const loss = (points: number) => ({
      losses: [{ reason: "missing", points, from: at, to: at, intervals: [{ number: 0, points, from: at, to: at }] }],
    });
    const gaps = bufferGaps(story.record, story.clock);
    gaps.record(loss(100));
    gaps.record(loss(7));
    expect(story.record.list(0, 9).gaps.map(({ points }) => points)).toEqual([7, 100]);
  }));

test("a loss whose points are found again is filled, and a later loss is a row of its own", () =>
  withStory(async (story) => {
    const at = epochMicros(story.clock.now());
    const interval = (number: number, points: number) => ({ number, points, from: at, to: at });
    const loss = (points: number, found: number, ...intervals: LossInterval[]) => ({
      losses: [{ reason: "missing", points, found, from: at, to: at, intervals }],
    });
    const gaps = bufferGaps(story.record, story.clock);
    gaps.record(loss(100, 0, interval(0, 100)));
    gaps.record(loss(40, 60, interval(0, 40)));
    const rows = () => story.record.list(0, 9).gaps.map(({ points, state }) => `${points} ${state}`);
    expect(rows()).toEqual(["40 lost"]);
    gaps.record(loss(0, 100, interval(0, 0)));
    expect(rows()).toEqual(["40 filled"]);
    gaps.record(loss(7, 100, interval(0, 0), interval(1, 7)));
    expect(rows()).toEqual(["7 lost", "40 filled"]);
  }));

test("a record torn during a write keeps its other rows, and only its owner can read the file", () =>
  withStory(async (story) => {
    story.source.lost(unreachable);
    await story.later(10_000);
    story.source.online(connected);
    await story.end();
    const file = join(story.folder, "record.ndjson");
    appendFileSync(file, '{"gap":{"id":99,"sou');
    expectMode(file, 0o600);
    await story.restart({ killed: true, afterMs: 1_000 });
    story.source.online(connected);
    await story.end();
    expect(readFileSync(file, "utf8")).not.toContain('"sou\n');
    expect([...(await readGapFolder(story.folder)).gaps.values()].map(({ cause }) => cause)).toEqual([
      "disconnected",
      "agentDown",
    ]);
    await story.restart({ killed: true, afterMs: 1 });
  }));

test("a source removed from the configuration leaves no open row", () =>
  withStory(async (story) => {
    story.source.lost(unreachable);
    await story.later(10_000);
    story.source[Symbol.dispose]();
    story.record.sourceRemoved("line");
    expect(story.rows()[0]).toContain("0-10 all 10000 lost");
  }));
