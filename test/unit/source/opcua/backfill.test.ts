// Which values are recognised as missing, whatever is on disk and whatever the server's clock shows.
import { expect, onTestFinished, test } from "vitest";
import { type EpochMicros, epochMicros } from "../../../../src/core/point.ts";
import type { TagId } from "../../../../src/core/source.ts";
import { defaultTimeRule } from "../../../../src/lib/readings/device-time.ts";
import { type Backfill, type BackfillOptions, openBackfill } from "../../../../src/source/opcua/history/backfill.ts";
import { openHistoryMemory } from "../../../../src/source/opcua/history/history-memory.ts";
import type { Item } from "../../../../src/source/opcua/nodes/items.ts";
import { eventually } from "../../../support/eventually.ts";
import { opcuaItem } from "../../../support/opcua-item.ts";
import { ManualClock, testRuntime } from "../../../support/runtime.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

const runtime = testRuntime();
const now = runtime.clock.now();
const seconds = (count: number) => epochMicros(now + count * 1e6);
const item = opcuaItem();

async function backfill(folder: string, more: Partial<BackfillOptions> = {}) {
  const memory = await openHistoryMemory(`${folder}/history.json`);
  onTestFinished(() => memory[Symbol.asyncDispose]());
  const unused = {} as never; // no gap is filled in these tests
  return openBackfill({
    memory,
    runtime: { ...runtime, clock: { ...runtime.clock, now: () => now } },
    namespaces: ["", "urn:line"],
    link: unused,
    services: unused,
    structures: unused,
    source: "line",
    maxGapMs: 1_000,
    time: { ...defaultTimeRule, clock: "source" },
    serverStarted: undefined,
    limit: 0,
    deliver: async () => {},
    ...more,
  });
}
const live = { overflow: false, stream: "live" } as const;

/** Records a value that has arrived and is on disk. */
function recorded(gaps: Backfill, of: Item, time: EpochMicros): void {
  gaps.arrived(of, time, live);
  gaps.stored(of, time);
}

test("values discarded by the queue are missing also when no value of the node is on disk yet", async () => {
  using folder = temporaryFolder();
  const gaps = await backfill(folder.path);
  expect(gaps.arrived(item, seconds(-9), live)).toEqual([]);
  expect(gaps.arrived(item, seconds(-5), { ...live, overflow: true })).toMatchObject([
    {
      from: seconds(-9),
      to: seconds(-5),
      cause: "overflow",
      state: "open",
    },
  ]);
});

test("a lost message is missing also when the server's clock is ahead, up to the server's time", async () => {
  using folder = temporaryFolder();
  const gaps = await backfill(folder.path);
  gaps.arrived(item, seconds(100), live);
  gaps.arrived(item, seconds(120), live);
  gaps.stored(item, seconds(100));
  expect(gaps.missed([item])).toMatchObject([{ from: seconds(100), to: seconds(120), state: "open" }]);
});

test("a lost message is reported also for a node without times, whose lost values cannot be searched for", async () => {
  using folder = temporaryFolder();
  const gaps = await backfill(folder.path);
  gaps.begin([item], "kept");
  const lost = { from: now, to: now, cause: "overflow", state: "lost", reason: "the times are not known" };
  expect(gaps.missed([item])).toMatchObject([lost]);
});

test("values without times after an interruption show that some are missing, and those of a queue that overflowed", async () => {
  using folder = temporaryFolder();
  const gaps = await backfill(folder.path);
  gaps.begin([item], "fresh");
  const lost = { from: now, to: now, state: "lost", reason: "the server gives no times" };
  expect(gaps.untimed(item, now, live)).toMatchObject([{ ...lost, cause: "interruption" }]);
  expect(gaps.untimed(item, now, live)).toEqual([]);
  expect(gaps.untimed(item, now, { ...live, overflow: true })).toMatchObject([{ ...lost, cause: "overflow" }]);
  // The server kept what came meanwhile.
  gaps.begin([item], "kept");
  expect(gaps.untimed(item, now, live)).toEqual([]);
});

test("the gap of items that the server has lost ends with the next value, and only a change is a gap", async () => {
  using folder = temporaryFolder();
  const gaps = await backfill(folder.path);
  const still = { ...item, index: [1] };
  for (const each of [item, still]) {
    gaps.begin([each], "kept");
    recorded(gaps, each, seconds(-90));
  }
  gaps.interrupted([item, still]);
  expect(gaps.arrived(still, seconds(-90), live)).toEqual([]);
  const gap = { from: seconds(-90), to: seconds(20), cause: "interruption", state: "open" };
  expect(gaps.arrived(item, seconds(20), live)).toMatchObject([gap]);
  expect(gaps.arrived(item, seconds(21), live)).toEqual([]);
});

test("a message lost just after a subscription was resumed does not open a gap for the time before", async () => {
  using folder = temporaryFolder();
  const gaps = await backfill(folder.path);
  gaps.stored(item, seconds(-9));
  expect(gaps.begin([item], "kept")).toEqual([]);
  expect(gaps.missed([item])).toMatchObject([{ cause: "overflow" }]);
  expect(gaps.arrived(item, seconds(1), live)).toEqual([]);
});

test("when the server's clock was set back missed values are reported as lost, and later gaps are noticed", async () => {
  using folder = temporaryFolder();
  const gaps = await backfill(folder.path);
  gaps.stored(item, seconds(0));
  gaps.begin([item], "fresh");
  expect(gaps.arrived(item, seconds(-3_600), live)).toMatchObject([
    {
      state: "lost",
      reason: "the server's clock was set back",
    },
  ]);
  gaps.stored(item, seconds(-3_600));
  expect(gaps.arrived(item, seconds(-3_500), live)).toEqual([]);
  gaps.stored(item, seconds(-3_500));
  expect(gaps.arrived(item, seconds(-3_400), { ...live, overflow: true })).toMatchObject([
    {
      from: seconds(-3_500),
      to: seconds(-3_400),
      state: "open",
    },
  ]);
});

test("the same holds when the server's clock was set back a little, and when a queue overflowed meanwhile", async () => {
  using folder = temporaryFolder();
  const gaps = await backfill(folder.path);
  gaps.stored(item, seconds(0));
  gaps.begin([item], "fresh");
  const lost = { from: seconds(-20), to: seconds(0), state: "lost", reason: "the server's clock was set back" };
  expect(gaps.arrived(item, seconds(-20), live)).toMatchObject([lost]);
  expect(gaps.arrived(item, seconds(-19), live)).toEqual([]);
  expect(gaps.arrived(item, seconds(-18), { ...live, overflow: true })).toMatchObject([
    { ...lost, from: seconds(-18) },
  ]);
  expect(gaps.arrived(item, seconds(-90), { ...live, overflow: true })).toMatchObject([
    { ...lost, from: seconds(-90) },
  ]);
});

test("a node that was not monitored all the time has a gap, whatever its subscription kept", async () => {
  using folder = temporaryFolder();
  const gaps = await backfill(folder.path);
  const other = { ...item, index: [1] };
  for (const each of [item, other]) gaps.stored(each, seconds(-9));
  gaps.begin([item], "kept");
  expect(gaps.arrived(item, seconds(-5), live)).toEqual([]);
  expect(gaps.arrived(other, seconds(-5), live)).toMatchObject([{ from: seconds(-9), to: seconds(-5), state: "open" }]);
});

test("transferred values and slight disorder do not count as a clock that was set back", async () => {
  using folder = temporaryFolder();
  const gaps = await backfill(folder.path);
  gaps.stored(item, seconds(0));
  expect(gaps.arrived(item, seconds(-3_600), { overflow: false, stream: "former" })).toEqual([]);
  expect(gaps.arrived(item, seconds(-1), live)).toEqual([]);
  expect(gaps.missed([item])).toEqual([]);
});

test("a value that reports a gap is settled only when the gap is on disk, also when several are written together", async () => {
  using folder = temporaryFolder();
  const gaps = await backfill(folder.path);
  const onDisk = async () => (await openHistoryMemory(`${folder.path}/history.json`)).gaps;
  gaps.stored(item, seconds(-9));
  const other = { ...item, index: [1] };
  gaps.stored(other, seconds(-9));
  gaps.arrived(item, seconds(-8), { ...live, overflow: true });
  const writing = gaps.save();
  gaps.arrived(other, seconds(-8), { ...live, overflow: true });
  const settled = await new Promise<number>((resolve, reject) => {
    gaps.remembered(() => void onDisk().then(resolve, reject));
  });
  expect(settled).toBe(2);
  expect(await writing).toBe(true);
  let at = "";
  gaps.remembered(() => (at = "once"));
  expect(at).toBe("once");
});

test("a node with a queue of one value may miss values before each one that waited for this connection", async () => {
  using folder = temporaryFolder();
  const gaps = await backfill(folder.path);
  gaps.stored(item, seconds(-9));
  gaps.begin([item], "brief");
  expect(gaps.arrived(item, seconds(-8), live)).toMatchObject([{ from: seconds(-9), to: seconds(-8) }]);
  gaps.stored(item, seconds(-8));
  expect(gaps.arrived(item, seconds(-1), live)).toMatchObject([{ from: seconds(-8), to: seconds(-1) }]);
  gaps.stored(item, seconds(1));
  expect(gaps.arrived(item, seconds(2), live)).toEqual([]);
});

test("an unfilled gap is reported again by a later connection, with all its causes", async () => {
  using folder = temporaryFolder();
  const before = await backfill(folder.path);
  before.stored(item, seconds(-9));
  before.begin([item], "fresh");
  expect(before.arrived(item, seconds(-8), live).map(({ cause }) => cause)).toEqual(["interruption"]);
  expect(before.arrived(item, seconds(-7), { ...live, overflow: true }).map(({ cause }) => cause)).toEqual([
    "overflow",
  ]);
  await before.save();
  const gaps = await backfill(folder.path);
  expect(gaps.begin([item], "kept")).toMatchObject([
    { cause: "interruption", from: seconds(-9), state: "open" },
    { cause: "overflow", from: seconds(-9), state: "open" },
  ]);
});

test("a gap being searched is resolved when the next connection delivers the same value", async () => {
  using folder = temporaryFolder();
  const before = await backfill(folder.path);
  recorded(before, item, seconds(-9));
  // A message is lost, and then the connection, before the history is read.
  expect(before.missed([item])).toMatchObject([{ from: seconds(-9), to: now, state: "open" }]);
  await before.save();
  const after = await backfill(folder.path);
  after.begin([item], "fresh");
  // The variable has not changed in the meantime.
  expect(after.arrived(item, seconds(-9), live)).toMatchObject([
    { from: seconds(-9), cause: "overflow", state: "filled" },
    { from: seconds(-9), cause: "interruption", state: "filled" },
  ]);
});

test("a queue overflow of a slow tag is a gap from its own last value, although another tag of the node is ahead", async () => {
  using folder = temporaryFolder();
  const gaps = await backfill(folder.path);
  const slow = { ...item, every: 60_000 };
  for (const each of [item, slow]) recorded(gaps, each, seconds(-90));
  recorded(gaps, item, seconds(-1));
  expect(gaps.arrived(slow, seconds(0), { ...live, overflow: true })).toMatchObject([{ from: seconds(-90) }]);
});

test("values of one node kept by two subscriptions do not count as a clock that was set back", async () => {
  using folder = temporaryFolder();
  const gaps = await backfill(folder.path);
  const slow = { ...item, every: 5_000 };
  for (const each of [item, slow]) recorded(gaps, each, seconds(-600));
  await gaps.save();
  const next = await backfill(folder.path);
  next.begin([item, slow], "kept");
  next.arrived(item, seconds(-10), { ...live, overflow: true }); // the fast tag, whose queue was full
  next.stored(item, seconds(-1));
  expect(next.arrived(slow, seconds(-300), { ...live, overflow: true })).toMatchObject([
    { from: seconds(-600), to: seconds(-300), state: "open" },
  ]);
});

test("of two tags of one node the one with the later first value has its own gap", async () => {
  using folder = temporaryFolder();
  const clock = new ManualClock();
  const now = clock.now();
  const seconds = (count: number) => epochMicros(now + count * 1e6);
  const reported: unknown[] = [];
  const gaps = await backfill(folder.path, {
    runtime: testRuntime({ clock }),
    maxGapMs: undefined, // gaps are only reported, and closed as filled ones are
    deliver: async (_readings, lost, stored) => {
      reported.push(...lost);
      stored();
    },
  });
  const fast = opcuaItem();
  const slow = { ...opcuaItem(), tag: 1 as TagId, every: 60_000 };
  for (const each of [fast, slow]) gaps.stored(each, seconds(-60));
  gaps.begin([fast, slow], "fresh");
  const stop = new AbortController();
  const running = gaps.run(stop.signal).catch(() => {});
  expect(gaps.arrived(fast, seconds(0), live)).toMatchObject([{ tag: 0, from: seconds(-60), state: "open" }]);
  gaps.stored(fast, seconds(0));
  await eventually(async () => {
    await clock.advance(1_000);
    return reported.length > 0;
  });
  gaps.stored(fast, seconds(3));
  // The slow tag is published for the first time, with its current value.
  expect(gaps.arrived(slow, seconds(4), live)).toMatchObject([{ tag: 1, from: seconds(-60), state: "open" }]);
  stop.abort(new Error("over"));
  await running;
});

test("a gap reported as lost is not reported again after a kill: its end is on disk within two seconds", async () => {
  using folder = temporaryFolder();
  const clock = new ManualClock();
  const at = (count: number) => epochMicros(clock.now() + count * 1e6);
  const reported: unknown[] = [];
  const gaps = await backfill(folder.path, {
    runtime: testRuntime({ clock }),
    maxGapMs: undefined, // the history is not read, so the gap is lost
    deliver: async (_readings, lost, stored) => {
      reported.push(...lost);
      stored();
    },
  });
  gaps.stored(item, at(-60));
  gaps.begin([item], "fresh");
  expect(gaps.arrived(item, at(0), live)).toMatchObject([{ state: "open" }]);
  await gaps.save();
  const stop = new AbortController();
  const running = gaps.run(stop.signal).catch(() => {});
  await eventually(async () => {
    await clock.advance(100);
    return reported.length > 0;
  });
  for (let second = 0; second < 2; second++) {
    // The next save and the next retry. While the disk is written, the first one is not awaited yet.
    await eventually(() => clock.sleeping === 2);
    await clock.advance(1_000);
  }
  await eventually(async () => (await openHistoryMemory(`${folder.path}/history.json`)).gaps === 0);
  stop.abort(new Error("over"));
  await running;
});
