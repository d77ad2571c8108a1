// Statements that must never be wrong, whatever the driver reports and when: a gap with a loss is not "filled", no more
// is lost than there was, and no row is "filling" when no search is under way.
import { mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readGapFolder } from "../../../../src/agent/gaps/gap-file.ts";
import { gapRows } from "../../../../src/agent/gaps/gap-rows.ts";
import { AgentError } from "../../../../src/core/errors.ts";
import { type EpochMicros, epochMicros } from "../../../../src/core/point.ts";
import type { TagGap } from "../../../../src/core/source.ts";
import { eventually } from "../../../support/eventually.ts";
import { connected, type GapStory, readingAt, tagGap, withStory } from "../../../support/gap-story.ts";

const unreachable = new AgentError("SOURCE_UNREACHABLE", "gone");
const overflow = (...args: Parameters<typeof tagGap>): TagGap => ({ ...tagGap(...args), cause: "overflow" });
const history = { recovery: { how: "history" } } as const;
const outageOf = async (story: GapStory, ms = 5_000) => {
  const from = story.clock.now();
  story.source.lost(unreachable);
  const to = await story.later(ms);
  story.source.online(history);
  return [from, to] as const;
};
const gaps = (story: GapStory) => story.record.list(0, 5_000).gaps;
const covered = (story: GapStory, from: number, to: number) =>
  gaps(story).some((gap) =>
    (gap.intervals ?? [[gap.from, gap.to ?? Number.POSITIVE_INFINITY]]).some(([b, e]) => b <= from && e >= to),
  );
const many = Array.from({ length: 10_000 }, (_, i) => i);

test("every overflow is covered by a row, also shortly after a previous one", () =>
  withStory(async (story) => {
    const spans: [EpochMicros, EpochMicros][] = [];
    for (let i = 0; i < 6; i++) {
      const from = story.clock.now();
      const to = await story.later(3_000);
      spans.push([from, to]);
      story.source.delivered({ readings: [], gaps: [overflow(7, "lost", from, to, "no history")] });
      await story.later(7_000);
    }
    for (const [from, to] of spans) expect(covered(story, from, to)).toBe(true);
  }));

test("the named tag is the unfilled one", () =>
  withStory(async (story) => {
    const gap = await outageOf(story);
    story.source.delivered({
      readings: [],
      gaps: [tagGap(1, "lost", ...gap, "no history"), tagGap(3, "filled", ...gap)],
    });
    await story.later(20_000);
    story.source.delivered({
      readings: [],
      gaps: [tagGap(1, "filled", ...gap), tagGap(2, "lost", ...gap, "no history")],
    });
    await story.later(20_000);
    expect(gaps(story)[0]?.unfilled).toEqual({ tags: 1, inputs: ["tag2"] });
  }));

test("a tag that is polled for the first time seconds after the connection has its missing values in the row", () =>
  withStory(async (story) => {
    const [from, connectedAt] = await outageOf(story);
    const to = await story.later(7_000);
    // The device's clock is ahead: its time counts up to the arrival of the value.
    story.source.delivered({ readings: [], gaps: [tagGap(1, "open", from, to), tagGap(2, "open", from, to + 30e6)] });
    await story.later(2_000);
    expect(gaps(story)).toMatchObject([{ from, to: connectedAt }]);
    story.source.delivered({
      readings: [],
      gaps: [tagGap(1, "filled", from, to), tagGap(2, "lost", from, to + 30e6, "no history")],
    });
    await story.later(20_000);
    expect(gaps(story)).toMatchObject([{ from, to, state: "partly", unfilled: { inputs: ["tag2"] } }]);
  }));

test("a tag whose values of an earlier outage are lost at last does not lengthen the row of that outage", () =>
  withStory(async (story) => {
    const [from, to] = await outageOf(story);
    story.source.delivered({ readings: [], gaps: [tagGap(1, "open", from, to)] });
    await story.later(600_000);
    story.read();
    await story.restart({ killed: false, afterMs: 5_000 });
    const again = story.clock.now();
    story.source.online(history);
    story.source.delivered({ readings: [], gaps: [tagGap(1, "lost", from, again, "no history")] });
    await story.later(20_000);
    expect(gaps(story)).toMatchObject([{ to: again }, { from, to }]);
  }));

test("lost seconds of a gap are counted once", () =>
  withStory(async (story) => {
    const first = await outageOf(story);
    story.source.delivered({ readings: [], gaps: [1, 2, 3].map((tag) => tagGap(tag, "lost", ...first, "no")) });
    await story.later(20_000);
    for (let i = 0; i < 3; i++) {
      const next = await outageOf(story, 1_000);
      story.source.delivered({ readings: [], gaps: [1, 2, 3].map((tag) => tagGap(tag, "open", ...next)) });
      await story.later(2_000);
      story.source.delivered({ readings: [], gaps: [1, 2, 3].map((tag) => tagGap(tag, "filled", ...next)) });
      await story.later(2_000);
    }
    await story.later(20_000);
    expect(story.runtime.metric("gap_lost_seconds_total")).toBe(5);
  }));

test("a tag whose search began before a restart and has no result is not filled", () =>
  withStory(async (story) => {
    const gap = await outageOf(story);
    story.source.delivered({ readings: [], gaps: [tagGap(1, "open", ...gap)] });
    await story.later(20_000);
    await story.restart({ killed: false, afterMs: 1_000 });
    story.source.online(history);
    await story.later(60_000);
    expect(story.rows()[0]).not.toContain("filled");
  }));

test("no more tags are counted as lost than exist", () =>
  withStory(async (story) => {
    const gap = await outageOf(story);
    const say = () =>
      story.source.delivered({
        readings: [],
        gaps: many.map((tag) => tagGap(tag, tag === 0 ? "open" : "lost", ...gap, "no")),
      });
    say();
    await story.later(20_000);
    await story.restart({ killed: false, afterMs: 1_000 });
    story.source.online(history);
    say();
    await story.later(20_000);
    for (const { unfilled } of gaps(story)) expect(unfilled?.tags ?? 0).toBeLessThanOrEqual(10_000);
  }));

test("when the first outage is lost and the next is found, the first row is lost", () =>
  withStory(async (story) => {
    const first = await outageOf(story);
    story.source.delivered({ readings: [], gaps: many.map((tag) => tagGap(tag, "lost", ...first, "no")) });
    await story.later(1_000);
    const second = await outageOf(story);
    story.source.delivered({ readings: [], gaps: many.map((tag) => tagGap(tag, "filled", ...second)) });
    await story.later(20_000);
    expect(story.rows()[0]).toContain("lost no");
  }));

for (const aheadS of [-31_536_000, -7_200, -90, -59, -10, 0, 10, 59, 90, 200])
  for (const between of [true, false])
    test(`device ahead by ${aheadS} s, ${between ? "" : "not "}read between: a second outage that is lost is not filled`, () =>
      withStory(async (story) => {
        const d = (time: number) => epochMicros(time + aheadS * 1e6);
        const read = () =>
          story.source.delivered({ readings: [{ ...readingAt(d(story.clock.now())), clock: "device" }] });
        await story.later(100_000);
        read();
        const first = await outageOf(story, 10_000);
        story.source.delivered({ readings: [], gaps: [tagGap(1, "open", d(first[0]), d(first[1]))] });
        await story.later(2_000);
        if (between) {
          story.source.delivered({ readings: [], gaps: [tagGap(1, "filled", d(first[0]), d(first[1]))] });
          read();
        }
        const second = await outageOf(story, 8_000);
        const from = between ? second[0] : first[0];
        story.source.delivered({ readings: [], gaps: [tagGap(1, "lost", d(from), d(second[1]), "no history")] });
        await story.later(20_000);
        const rows = gaps(story).filter(({ cause, to }) => cause === "disconnected" && to === second[1]);
        expect(rows.map(({ state }) => state)).not.toContain("filled");
        expect(story.rows().join()).not.toContain("filling");
      }));

test("the row of the time without the agent ends at the start, whatever the clock does long after", () =>
  withStory(async (story) => {
    await story.restart({ killed: false, afterMs: 10_000 });
    story.source.online(connected);
    story.read();
    await story.later(1_200_000);
    story.clock.stepWall(3_600_000);
    await story.later(2_000);
    expect(story.rows()[0]).toContain("agentDown 0-10 ");
  }));

for (const end of ["filled", "lost"] as const)
  test(`a row does not stay filling where the value of a slow tag made the clock seem behind (${end})`, () =>
    withStory(async (story) => {
      await story.later(100_000);
      story.read();
      const from = story.clock.now();
      story.source.lost(unreachable);
      const changed = await story.later(4_000); // the tag's last change
      await story.later(1_000);
      story.source.online(history);
      await story.later(8_000);
      story.read();
      story.source.lost(unreachable);
      await story.later(2_000);
      story.source.online(history);
      // The first delivery contains only that tag's value, which is 11 s old.
      story.source.delivered({
        readings: [{ ...readingAt(changed), clock: "device" }],
        gaps: [tagGap(1, "open", from, changed)],
      });
      await story.later(1_000);
      story.read();
      story.source.delivered({ readings: [], gaps: [tagGap(1, end, from, changed, "no history")] });
      await story.later(120_000);
      expect(story.rows().join()).not.toContain("filling");
    }));

test("a loss of a device whose clock is behind is not marked filled because another device's clock is right", () =>
  withStory(async (story) => {
    await story.later(100_000);
    story.read();
    const behind = 10e6;
    const device = (time: number) => epochMicros(time - behind);
    const deliver = (gaps: TagGap[]) =>
      story.source.delivered({ readings: [{ ...readingAt(device(story.clock.now())), clock: "device" }], gaps });
    story.source.lost(unreachable);
    await story.later(5_000);
    story.source.online(history);
    await story.later(1_000);
    story.read();
    await story.later(1_000);
    story.read();
    const from = story.clock.now();
    story.source.lost(unreachable);
    const to = await story.later(2_000);
    story.source.online(history);
    await story.later(500);
    deliver([tagGap(1, "open", device(from), device(to))]); // a device whose clock is 10 s behind
    story.read(); // another device, whose clock is right
    story.source.delivered({ readings: [], gaps: [tagGap(1, "lost", device(from), device(to), "no history")] });
    await story.later(60_000);
    story.source.lost(unreachable);
    await story.later(1_000);
    story.source.online({ recovery: { how: "kept", by: "the server had kept the subscription" } });
    expect(story.rows().find((row) => row.includes("-109"))).not.toContain(" filled");
  }));

for (const aheadS of [-31_536_000, -7_200, -90, 200])
  for (const outcome of ["lost", "filled"] as const)
    test(`device ahead by ${aheadS} s: the outage has the missing values, ${outcome}`, () =>
      withStory(async (story) => {
        const d = (time: number) => epochMicros(time + aheadS * 1e6);
        const deliver = (reports: TagGap[] = []) =>
          story.source.delivered({
            readings: [{ ...readingAt(d(story.clock.now())), clock: "device" }],
            gaps: reports,
          });
        deliver();
        const [from, to] = await outageOf(story, 20_000);
        deliver([1, 2].map((tag) => tagGap(tag, "open", d(from), d(to))));
        await story.later(10_000);
        deliver([1, 2].map((tag) => tagGap(tag, outcome, d(from), d(to), "no history")));
        await story.later(20_000);
        const outages = gaps(story).filter(({ inputs }) => inputs.length === 0);
        expect(outages).toMatchObject([
          outcome === "lost"
            ? { from, state: "partly", unfilled: { tags: 2 } }
            : { from, to, state: "filled", outcome: "filled from the device's history" },
        ]);
      }));

for (const isNewRun of [false, true])
  test(`restart: ${isNewRun}: a loss in a gap of a tag from before an outage is none of that outage`, () =>
    withStory(async (story) => {
      const lostAt = [story.clock.now(), await story.later(3_000)] as const;
      story.source.delivered({ readings: [], gaps: [tagGap(1, "open", ...lostAt)] });
      await story.later(300_000);
      story.read();
      if (isNewRun) await story.restart({ killed: false, afterMs: 5_000 });
      else story.source.lost(unreachable);
      await story.later(5_000);
      story.source.online(history);
      story.source.delivered({ readings: [], gaps: [tagGap(1, "lost", ...lostAt, "no history")] });
      await story.later(20_000);
      expect(gaps(story).map(({ inputs, state, outcome }) => [inputs, state, outcome])).toEqual([
        [[], "filled", "no value was missing"],
        [["tag1"], "lost", "no history"],
      ]);
    }));

test("a search begun by an earlier run and answered late still fills the row", () =>
  withStory(async (story) => {
    await story.later(100_000);
    story.read();
    const a = story.clock.now();
    story.source.lost(unreachable);
    const b = await story.later(10_000);
    story.source.online(history);
    // the last value of tag 1 is two seconds newer than that of tag 2
    story.source.delivered({ readings: [], gaps: [tagGap(1, "open", a - 1e6, b), tagGap(2, "open", a - 3e6, b)] });
    await story.later(2_000);
    story.source.delivered({ readings: [], gaps: [tagGap(2, "filled", a - 3e6, b)] });
    await story.later(2_000);
    await story.restart({ killed: false, afterMs: 1_000 });
    story.source.online(history);
    await story.later(30_000); // a slow server
    const c = story.clock.now();
    story.source.delivered({ readings: [], gaps: [tagGap(1, "open", a - 1e6, c)] });
    await story.later(2_000);
    story.source.delivered({ readings: [], gaps: [tagGap(1, "filled", a - 1e6, c)] });
    await story.later(2_000);
    expect(story.rows()[0]).toContain("filled");
  }));

test("while the record cannot be written no heartbeat states that everything is accounted for", () =>
  withStory(async (story) => {
    await eventually(async () => {
      await story.later(1_000);
      return (await readGapFolder(story.folder)).life?.sources.line !== undefined;
    });
    await story.later(20_000);
    story.read();
    const file = join(story.folder, "record.ndjson");
    renameSync(file, `${file}.away`);
    mkdirSync(file); // appends fail, but the heartbeat file is still written
    const from = story.clock.now();
    story.source.lost(unreachable);
    for (let i = 0; i < 30; i++) {
      await story.later(1_000);
      // Both loops of the record sleep until the next second, so their writes are done.
      await eventually(() => story.clock.sleeping >= 2);
    }
    rmSync(file, { recursive: true });
    renameSync(`${file}.away`, file);
    await story.restart({ killed: true, afterMs: 1_000 });
    story.source.online(connected);
    expect(gaps(story).some((row) => row.from <= from)).toBe(true);
  }));

test("a loss is not acknowledged while the gap record cannot be written", () =>
  withStory(async (story) => {
    const from = story.clock.now();
    story.source.lost(unreachable);
    const to = await story.later(10_000);
    story.source.online(history);
    await story.record.save();
    const file = join(story.folder, "record.ndjson");
    renameSync(file, `${file}.away`);
    mkdirSync(file); // fails with EISDIR, as a full disk does with ENOSPC
    story.source.delivered({ readings: [], gaps: [tagGap(1, "lost", from, to, "no history")] });
    const refused = await story.source.written();
    rmSync(file, { recursive: true });
    renameSync(`${file}.away`, file);
    expect(refused).toBe(false);
    expect(await story.source.written()).toBe(true);
  }));

test("a gap record whose disk hangs delays no caller for more than 5 s and is reported", () =>
  withStory(async (story) => {
    const answer = Promise.withResolvers<boolean>();
    story.record.save = () => answer.promise;
    const written = story.source.written();
    await story.later(5_000);
    expect(await written).toBe(false);
    expect(await story.source.written()).toBe(false);
    expect(story.runtime.lines.map(({ message }) => message)).toContain("the disk of the gap record does not answer");
    answer.resolve(true);
    await answer.promise;
    await Promise.resolve();
    expect(await story.source.written()).toBe(true);
  }));

test("the names of searched and lost tags are bounded as well", () => {
  const rows = gapRows(new Map());
  const t = (s: number) => epochMicros(1.7e15 + s * 1e6);
  for (let i = 0; i < 500; i++) {
    const { id } = rows.add(
      "reported",
      {
        source: "a",
        cause: "disconnected",
        reason: "x",
        from: t(i * 1000),
        to: t(i * 1000 + 5),
        tags: 10_000,
        inputs: [],
      },
      t(i * 1000 + 5),
    );
    const inputs = Array.from({ length: 1000 }, (_, k) => `tag${k}`);
    rows.change(id, { unfilled: { tags: 9_000, inputs }, asked: { tags: 9_000, inputs } }, "partlyFound");
  }
  const names = rows
    .all()
    .reduce((n, g) => n + g.inputs.length + (g.unfilled?.inputs.length ?? 0) + (g.asked?.inputs.length ?? 0), 0);
  expect(names).toBeLessThanOrEqual(110_000);
});

test("an abandoned source opens no more rows", () =>
  withStory(async (story) => {
    story.source[Symbol.dispose]();
    story.source.bufferFailed(new AgentError("BUFFER_UNAVAILABLE", "no space left on the disk"));
    expect(story.record.summary().open).toBe(0);
  }));
