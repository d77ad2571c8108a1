// What must never be said of a gap, whatever is told of it and when: filled where something is lost, more lost than there is,
// looked for although nobody does.
import { expect, test } from "vitest";
import { AgentError } from "../../../../src/core/errors.ts";
import type { TagGap } from "../../../../src/core/gap.ts";
import { type EpochMicros, epochMicros } from "../../../../src/core/point.ts";
import type { TagId } from "../../../../src/core/source.ts";
import { connected, type GapStory, gapStory, readingAt } from "../../../support/gap-story.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

async function told(act: (story: GapStory) => Promise<void>): Promise<void> {
  using folder = temporaryFolder();
  const story = await gapStory(folder.path);
  try {
    await act(story);
  } finally {
    await story.end();
  }
}
const unreachable = new AgentError("SOURCE_UNREACHABLE", "gone");
const tagGap = (tag: number, state: TagGap["state"], from: number, to: number, reason = "?"): TagGap => ({
  tag: tag as TagId,
  captures: {},
  from: epochMicros(from),
  to: epochMicros(to),
  cause: "interruption",
  state,
  reason,
});
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

test("every overflow is covered by a row, also shortly after another one", () =>
  told(async (story) => {
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

test("the tag named is the one that is unfilled", () =>
  told(async (story) => {
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

test("lost seconds of a gap are counted once", () =>
  told(async (story) => {
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

test("a tag that was looked for before a restart and never heard of again is not filled", () =>
  told(async (story) => {
    const gap = await outageOf(story);
    story.source.delivered({ readings: [], gaps: [tagGap(1, "open", ...gap)] });
    await story.later(20_000);
    await story.restart({ killed: false, afterMs: 1_000 });
    story.source.online(history);
    await story.later(60_000);
    expect(story.rows()[0]).not.toContain("filled");
  }));

test("never more tags are lost than there are", () =>
  told(async (story) => {
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

test("all is lost of the first outage, all is found of the next: the first one is lost", () =>
  told(async (story) => {
    const first = await outageOf(story);
    story.source.delivered({ readings: [], gaps: many.map((tag) => tagGap(tag, "lost", ...first, "no")) });
    await story.later(1_000);
    const second = await outageOf(story);
    story.source.delivered({ readings: [], gaps: many.map((tag) => tagGap(tag, "filled", ...second)) });
    await story.later(20_000);
    expect(story.rows()[0]).toContain("lost no");
  }));

for (const aheadS of [-59, -10, 0, 10, 59])
  for (const between of [true, false])
    test(`device ahead by ${aheadS} s, ${between ? "" : "not "}read between: a second outage that is lost is not filled`, () =>
      told(async (story) => {
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

test("the time without the agent ends when it did, whatever the clock does long after", () =>
  told(async (story) => {
    await story.restart({ killed: false, afterMs: 10_000 });
    story.source.online(connected);
    story.read();
    await story.later(1_200_000);
    story.clock.stepWall(3_600_000);
    await story.later(2_000);
    expect(story.rows()[0]).toContain("agentDown 0-10 ");
  }));
