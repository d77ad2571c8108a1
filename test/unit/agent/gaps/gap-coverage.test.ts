// Whatever happens to a source and to the agent, the record covers every time without a connection, and stays small.
import fc from "fast-check";
import { expect, test } from "vitest";
import { readGapFolder } from "../../../../src/agent/gaps/gap-file.ts";
import { gapRows } from "../../../../src/agent/gaps/gap-rows.ts";
import { AgentError } from "../../../../src/core/errors.ts";
import { epochMicros } from "../../../../src/core/point.ts";
import { eventually } from "../../../support/eventually.ts";
import { connected, gapStory } from "../../../support/gap-story.ts";
import { runs } from "../../../support/property.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

type Event =
  | { readonly kind: "read" | "lost" | "online" | "polled" | "kept" | "history"; readonly afterMs: number }
  | { readonly kind: "restart"; readonly killed: boolean; readonly afterMs: number };
const afterMs = fc.integer({ min: 1, max: 50_000 });
const event: fc.Arbitrary<Event> = fc.oneof(
  fc.record({ kind: fc.constantFrom("read", "lost", "online", "polled", "kept", "history"), afterMs }),
  fc.record({ kind: fc.constant("restart"), killed: fc.boolean(), afterMs }),
);

test("every instant without a connection is covered by a row, over outages, stops and kills", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(event, { minLength: 1, maxLength: 12 }), async (events) => {
      using folder = temporaryFolder();
      const story = await gapStory(folder.path);
      let away: number | undefined;
      let isPolled = false;
      const times: [number, number][] = [];
      const back = () => {
        if (away !== undefined) times.push([away, story.clock.now()]);
        away = undefined;
      };
      try {
        // Written at least once, so that a start after a kill knows that the source has run.
        await eventually(async () => {
          await story.later(1_000);
          return (await readGapFolder(story.folder)).life?.sources.line !== undefined;
        });
        for (const step of events) {
          await story.later(step.afterMs);
          const now = story.clock.now();
          if (step.kind !== "read") isPolled = false;
          if (step.kind === "restart") {
            away ??= now;
            await story.restart(step);
          } else if (step.kind === "lost") {
            story.source.lost(new AgentError("SOURCE_UNREACHABLE", "gone"));
            away ??= now;
          } else if (step.kind === "read") {
            if (away !== undefined && !isPolled) continue;
            story.read();
            back();
          } else if (step.kind === "polled") {
            // Nothing is recorded before the first value.
            isPolled = true;
            story.source.online({ polled: true });
          } else {
            back();
            story.source.online(
              step.kind === "online"
                ? connected
                : { recovery: step.kind === "kept" ? { how: "kept", by: "it" } : { how: "history" } },
            );
          }
        }
        if (!isPolled) back();
        else if (away !== undefined) times.push([away, story.clock.now()]);
        const { gaps } = story.record.list(0, 5_000);
        for (const [from, to] of times)
          for (const moment of [from, (from + to) / 2, to])
            expect(
              gaps.some((gap) =>
                (gap.intervals ?? [[gap.from, gap.to ?? Number.POSITIVE_INFINITY]]).some(
                  ([begin, end]) => begin <= moment && end >= moment,
                ),
              ),
            ).toBe(true);
      } finally {
        await story.end();
      }
    }),
    runs(25),
  );
});

test("the record never exceeds its limits of rows and names, and the newest rows stay", () => {
  const rows = gapRows(new Map());
  const inputs = Array.from({ length: 1_000 }, (_, i) => `input${i}`);
  for (let i = 0; i < 6_000; i++) {
    const at = epochMicros(i * 1e6);
    rows.add("ends", { source: "s", cause: "bad", reason: "x", from: at, to: at, tags: 1_000, inputs }, at);
  }
  const all = rows.all();
  expect(all.length).toBeLessThanOrEqual(5_001);
  expect(all.reduce((sum, row) => sum + row.inputs.length, 0)).toBeLessThanOrEqual(102_000);
  expect(all.at(-1)?.from).toBe(5_999e6);
  expect(all[0]?.tags).toBe(1_000);
});
