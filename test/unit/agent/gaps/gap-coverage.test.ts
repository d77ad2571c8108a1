// Whatever happens to a source and to the agent, the record covers every time without a connection, and stays small.
import fc from "fast-check";
import { expect, test } from "vitest";
import { readGapFolder } from "../../../../src/agent/gaps/gap-file.ts";
import { gapRows } from "../../../../src/agent/gaps/gap-rows.ts";
import { AgentError } from "../../../../src/core/errors.ts";
import { epochMicros } from "../../../../src/core/point.ts";
import { eventually } from "../../../support/eventually.ts";
import { connected, type GapStory, gapStory, polledPlace } from "../../../support/gap-story.ts";
import { runs } from "../../../support/property.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

type Event =
  | { readonly kind: "read" | "lost" | "online" | "polled" | "kept" | "history"; readonly afterMs: number }
  | { readonly kind: "restart"; readonly killed: boolean; readonly afterMs: number }
  | { readonly kind: "suspend"; readonly forMs: number; readonly afterMs: number }
  | { readonly kind: "disk"; readonly forMs: number; readonly afterMs: number };
const retainedBy = "the broker";
/** Connections to a broker or server that keeps the values of a session, and to one that keeps none. */
const connections = {
  keeping: { online: { retainedBy }, kept: { retainedBy, recovery: { how: "kept", by: "it had kept the session" } } },
  other: { online: connected, polled: { polled: [polledPlace] }, history: { recovery: { how: "history" } } },
} as const;
type Connections = Partial<Record<Event["kind"], Parameters<GapStory["source"]["online"]>[0]>>;
const full = new AgentError("BUFFER_UNAVAILABLE", "no space left on the disk");
const afterMs = fc.integer({ min: 1, max: 50_000 });
const event: fc.Arbitrary<Event> = fc.oneof(
  fc.record({ kind: fc.constantFrom("read", "lost", "online", "polled", "kept", "history"), afterMs }),
  fc.record({ kind: fc.constant("restart"), killed: fc.boolean(), afterMs }),
  // A shorter suspension is not told from a busy machine.
  fc.record({ kind: fc.constant("disk"), forMs: fc.integer({ min: 1, max: 100_000 }), afterMs }),
  fc.record({ kind: fc.constant("suspend"), forMs: fc.integer({ min: 6_000, max: 100_000 }), afterMs }),
);

/** The values behind those that the broker kept while the disk was full had not all come. */
const stoppedWhileKeptValuesCome: Event[] = [
  { kind: "disk", forMs: 86_518, afterMs: 1 },
  { kind: "restart", killed: false, afterMs: 1 },
  { kind: "read", afterMs: 23_481 },
  { kind: "restart", killed: false, afterMs: 31_518 },
];

test("every instant without a connection is covered by a row, over outages, stops, kills and suspensions", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(event, { minLength: 1, maxLength: 12 }), fc.boolean(), async (events, keeps) => {
      const possible: Connections = keeps ? connections.keeping : connections.other;
      using folder = temporaryFolder();
      const story = await gapStory(folder.path);
      let away: number | undefined;
      let isPolled = false;
      /** Begin of times whose values the broker kept, and until when they may still be lost with its session. */
      const pending = { suspend: { from: 0, until: 0 }, disk: { from: 0, until: 0 } };
      const times: { readonly from: number; readonly to: number; readonly haveCome: boolean }[] = [];
      /** Values of these times have come, or may come. Those of the others are lost. */
      const back = (haveCome: boolean) => {
        if (away !== undefined) times.push({ from: away, to: story.clock.now(), haveCome });
        away = undefined;
      };
      const leave = (now: number) => {
        const kept = Object.values(pending).filter(({ until }) => now < until);
        away ??= Math.min(now, ...kept.map(({ from }) => from));
        forget();
      };
      const forget = () => Object.values(pending).forEach((each) => (each.until = 0));
      try {
        // Written at least once, so that a start after a kill knows that the source has run.
        await eventually(async () => {
          await story.later(1_000);
          return (await readGapFolder(story.folder)).life?.sources.line !== undefined;
        });
        if (keeps) story.source.online(connections.keeping.online);
        for (const step of events) {
          await story.later(step.afterMs);
          const now = story.clock.now();
          if (step.kind === "suspend" || step.kind === "disk") {
            if (step.kind === "suspend") await story.clock.suspend(step.forMs);
            else if (away === undefined) {
              story.source.bufferFailed(full);
              await story.later(step.forMs);
              story.source.bufferFailed(undefined);
            }
            const to = story.clock.now();
            if (away !== undefined) continue;
            if (!keeps) times.push({ from: now, to, haveCome: isPolled && step.kind === "disk" });
            else {
              const own = pending[step.kind];
              // Nothing comes during a suspension.
              if (step.kind === "suspend" && now < pending.disk.until) pending.disk.until += to - now;
              if (now >= own.until) own.from = now;
              own.until = to + (step.kind === "disk" ? 15e6 : 60e6);
            }
            continue;
          }
          const connection = possible[step.kind];
          if (step.kind === "read") {
            if (away !== undefined && !isPolled) continue;
            story.read();
            back(false);
            continue;
          }
          if (connection && away === undefined) continue;
          isPolled = step.kind === "polled";
          if (step.kind === "restart") {
            leave(now);
            // A change is on disk within a second.
            await story.record.save();
            await story.restart(step);
          } else if (step.kind === "lost") {
            story.source.lost(new AgentError("SOURCE_UNREACHABLE", "gone"));
            leave(now);
          } else if (connection) {
            forget();
            story.source.online(connection);
            // A polled source records nothing before its first value.
            if (!isPolled) back(step.kind !== "online");
          }
        }
        back(true);
        const { gaps } = story.record.list(0, 5_000);
        for (const { from, to, haveCome } of times)
          for (const moment of [from, (from + to) / 2, to])
            expect(
              gaps
                .filter(({ state }) => haveCome || state !== "filled")
                .some((gap) =>
                  (gap.intervals ?? [[gap.from, gap.to ?? Number.POSITIVE_INFINITY]]).some(
                    ([begin, end]) => begin <= moment && end >= moment,
                  ),
                ),
              `${moment} of ${from}-${to}\n${story.rows().join("\n")}`,
            ).toBe(true);
      } finally {
        await story.end();
      }
    }),
    runs(25, { examples: [[stoppedWhileKeptValuesCome, true]] }),
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
