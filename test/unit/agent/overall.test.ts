// The headline about an agent: the worst state, and never better than the details.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { overallOf } from "../../../src/agent/status/overall.ts";
import type { BacklogStatus, Status } from "../../../src/agent/status/status.ts";
import { words } from "../../../src/agent/status/words.ts";
import { epochMicros } from "../../../src/core/point.ts";
import { sourceWith, statusWith } from "../../support/status.ts";

const healthy = statusWith();
const overall = (changes: Partial<Status>) => overallOf(statusWith(changes));
const backlogOf = (trend: BacklogStatus["trend"]): Partial<Status> => ({
  buffer: { ...healthy.buffer, oldest: epochMicros(healthy.time - 62e6) },
  upload: { ...healthy.upload, backlog: { trend, text: "" } },
});
const cluster = {
  connected: true,
  hasQuorum: true,
  members: 2,
  agents: [],
  sameName: false,
  forwardLagMs: 0,
};
const silent = { readingsPerSecond: 0 };

test("an agent without trouble says that data arrives and is delivered", () => {
  expect(overall({})).toEqual({
    level: "good",
    text: "Data arrives and is delivered.",
    arriving: { level: "good", text: "data arrives", detail: "1 source online, 133 readings/s" },
    delivering: { level: "good", text: "delivering", detail: "lag 1 s" },
    problems: [],
  });
});

test.each<[string, string, Partial<Status>]>([
  ["bad", "Delivering. Values lost in the last 24 h.", { gaps: { ...healthy.gaps, day: 1, dayLost: 1 } }],
  [
    "bad",
    "Delivering. 6 values lost in the last 24 h.",
    { gaps: { ...healthy.gaps, day: 1, dayLost: 1, dayPoints: 6 } },
  ],
  ["bad", "Delivering. 1 point refused.", { upload: { ...healthy.upload, refusedPoints: 1 } }],
  ["bad", "Delivery held.", { upload: { ...healthy.upload, state: "held" } }],
  ["bad", "Delivering. The disk.", { warnings: [{ level: "error", message: "the disk" }] }],
  ["good", "Data arrives and is delivered.", { warnings: [{ level: "warn", message: "a secret in the file" }] }],
  ["warn", "Delivering. Tags not recorded.", { gaps: { ...healthy.gaps, open: 2 } }],
  [
    "warn",
    "No data arrives. Delivering. 1 source offline.",
    { sources: [sourceWith({ state: "waiting" })], gaps: { ...healthy.gaps, open: 1 } },
  ],
  ["warn", "Delivering. 1 source offline.", { sources: [sourceWith(), sourceWith({ name: "b", state: "waiting" })] }],
  [
    "warn",
    "Delivering. Tags not recorded. 1 source offline.",
    {
      sources: [sourceWith(), sourceWith({ name: "b", state: "waiting" })],
      gaps: { ...healthy.gaps, open: 2, openIn: ["b", "hall"] },
    },
  ],
  [
    "warn",
    "Delivering. 1 source offline.",
    {
      sources: [sourceWith(), sourceWith({ name: "b", state: "waiting" })],
      gaps: { ...healthy.gaps, open: 1, openIn: ["b"] },
    },
  ],
  [
    "good",
    "Data arrives from 1 of 2 sources. Delivering.",
    {
      sources: [
        sourceWith(),
        sourceWith({
          name: "b",
          ...silent,
          since: epochMicros(healthy.time - 400e6),
          lastReading: epochMicros(healthy.time - 360e6),
        }),
      ],
    },
  ],
  ["warn", "Delivering. Backlog does not shrink.", backlogOf("steady")],
  ["warn", "Delivering. Backlog grows.", backlogOf("growing")],
  ["warn", "Delivering a backlog.", backlogOf("shrinking")],
  ["warn", "Delivering a backlog.", backlogOf("unknown")],
  ["warn", "Service unreachable.", { upload: { ...healthy.upload, state: "retrying" } }],
  [
    "warn",
    "Standby. Cluster unreachable.",
    {
      cluster: { ...cluster, connected: false },
      upload: { ...healthy.upload, state: "standby" },
      warnings: [{ level: "warn", title: "cluster unreachable", message: "the cluster cannot be reached" }],
    },
  ],
  ["warn", "No agent of the cluster delivers.", { cluster, upload: { ...healthy.upload, state: "standby" } }],
  [
    "good",
    "North-gw2 delivers for the cluster.",
    { cluster: { ...cluster, delivers: "north-gw2" }, upload: { ...healthy.upload, state: "standby" } },
  ],
  ["good", "No data arrives yet. Delivering.", { sources: [sourceWith({ state: "opening" })] }],
  ["good", "No data has arrived yet. Delivering.", { sources: [sourceWith(silent)] }],
  [
    "good",
    "No data at the moment. Delivering.",
    { sources: [sourceWith({ ...silent, lastReading: epochMicros(healthy.time - 40e6) })] },
  ],
  [
    "good",
    "No data at the moment. Nothing waits to be delivered.",
    {
      sources: [sourceWith({ ...silent, lastReading: epochMicros(healthy.time - 40e6) })],
      buffer: { ...healthy.buffer, unsettledPoints: 0 },
    },
  ],
])("%s: %s", (level, text, changes) => {
  expect(overall(changes)).toMatchObject({ level, text });
});

test("what a reload of the operator has missed is a note, and no problem", () => {
  const { level, text, problems } = overall({ gaps: { ...healthy.gaps, day: 2, dayLost: 2, dayReloads: 2 } });
  expect([level, text]).toEqual(["good", "Data arrives and is delivered."]);
  expect(problems).toMatchObject([{ level: "note", text: "values missed while a reload restarted sources" }]);
  const lastLost = { from: healthy.time, cause: "overflow", reason: "queue full" } as const;
  const both = overall({ gaps: { ...healthy.gaps, day: 2, dayLost: 2, dayReloads: 1, lastLost } });
  expect(both.problems[0]).toMatchObject({
    level: "bad",
    items: [{ detail: "discarded by the broker or server: queue full" }],
  });
});

test("one point waits, several wait", () => {
  const waiting = (unsettledPoints: number) =>
    overall({
      buffer: { ...healthy.buffer, unsettledPoints },
      upload: { ...healthy.upload, state: "retrying", error: "refused" },
    }).problems[0]?.items[0]?.detail;
  expect([waiting(1), waiting(2)]).toEqual(["refused; 1 point waits on disk", "refused; 2 points wait on disk"]);
});

test("nothing delivered yet is no delivery", () => {
  const { lagMs: _lag, ...upload } = healthy.upload;
  expect(overall({ upload }).text).toBe("Nothing delivered yet.");
});

test("what is lost comes before what is late, and further problems are counted", () => {
  const title = (text: string) => ({ level: "error" as const, title: text, message: text });
  const { text, level, problems } = overall({
    sources: [sourceWith({ state: "waiting", error: "refused", remedy: "check the cable" })],
    gaps: { ...healthy.gaps, dayLost: 1 },
    upload: { ...healthy.upload, state: "retrying", refusedPoints: 3 },
    warnings: [title("the clock is not set")],
  });
  expect(text).toBe(
    "No data arrives. The clock is not set. Values lost in the last 24 h. 3 points refused. Service unreachable. 1 more problem.",
  );
  expect(level).toBe("bad");
  expect(problems.at(-1)).toEqual({
    level: "warn",
    text: "1 source offline",
    items: [{ source: "hall", detail: "refused", remedy: "check the cable" }],
    count: 1,
  });
});

test("each problem with a command has the arguments of one that exists", () => {
  const { problems } = overall({
    gaps: { ...healthy.gaps, dayLost: 1, open: 1 },
    upload: { ...healthy.upload, refusedPoints: 1 },
  });
  expect(problems.flatMap(({ command = [] }) => [command.join(" ")])).toEqual([
    "gaps --since 24h",
    "rejects list",
    "gaps",
  ]);
});

test("the help of metrics has the words of the page for the same states", () => {
  const source = (name: string) =>
    readFileSync(join(import.meta.dirname, `../../../src/agent/status/${name}.ts`), "utf8");
  expect(source("source-monitor")).toContain(`1 while the source is ${words.source.online.word}`);
  expect(source("gauges")).toContain(`1 while the ${words.delivery.retrying.word.replace(" ", " is ")}`);
  expect(source("gauges")).toContain(`1 while delivery is ${words.delivery.held.word}`);
});

test("no script of the page has a list of words of its own", () => {
  const folder = join(import.meta.dirname, "../../../src/web/page");
  const scripts = ["sources", "gaps", "delivery", "tag-table"].map((name) =>
    readFileSync(join(folder, `${name}.js`), "utf8"),
  );
  const all = [words.source.waiting, words.delivery.retrying, words.gapCause.agentDown, words.quality.none];
  for (const { word } of all) for (const script of scripts) expect(script).not.toContain(`"${word}"`);
});
