// The one line about an agent: worst first, and never better than what stands below it.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { overallOf, sourceWords } from "../../../src/agent/status/overall.ts";
import type { BacklogStatus, Status } from "../../../src/agent/status/status.ts";
import { epochMicros } from "../../../src/core/point.ts";
import { sourceWith, statusWith } from "../../support/status.ts";

const healthy = statusWith();
const overall = (changes: Partial<Status>) => overallOf(statusWith(changes));
const backlogOf = (trend: BacklogStatus["trend"]): Partial<Status> => ({
  buffer: { ...healthy.buffer, oldest: epochMicros(healthy.time - 61e6) },
  upload: { ...healthy.upload, backlog: { trend, text: "" } },
});
const cluster = { connected: true, members: 2, sameName: false, forwardLagMs: 0 };
const refused = { source: "hall", input: "a", address: "b/temp", reason: "", remedy: "", readings: 1 };

test("an agent without problems is reported as healthy", () => {
  expect(overall({})).toEqual({ level: "good", text: "all well" });
});

test.each<[string, string, Partial<Status>]>([
  ["bad", "values lost in the last 24 h", { gaps: { ...healthy.gaps, day: 1, dayLost: 1 } }],
  ["bad", "1 point refused", { upload: { ...healthy.upload, refusedPoints: 1 } }],
  ["bad", "readings refused for 1 Input ID", { refusedInputs: [refused, { ...refused, address: "c/temp" }] }],
  ["bad", "delivery held", { upload: { ...healthy.upload, state: "held" } }],
  ["bad", "needs attention", { warnings: [{ level: "error", message: "" }] }],
  ["warn", "tags not recorded", { gaps: { ...healthy.gaps, open: 2 } }],
  ["warn", "1 source offline", { sources: [sourceWith({ state: "waiting" })], gaps: { ...healthy.gaps, open: 1 } }],
  ["warn", "backlog does not shrink", backlogOf("steady")],
  ["warn", "backlog grows", backlogOf("growing")],
  ["warn", "delivering a backlog", backlogOf("shrinking")],
  ["warn", "delivering a backlog", backlogOf("unknown")],
  ["warn", "device clock stands still for 2 Input IDs", { timeFaults: { standing: 2, repeats: 0, first: [] } }],
  ["bad", "agent.name is used twice", { cluster: { ...cluster, sameName: true } }],
  ["warn", "cluster unreachable", { cluster: { ...cluster, connected: false } }],
  ["warn", "stream of the cluster full", { cluster: { ...cluster, forwardPaused: "full" } }],
  ["good", "all well", { cluster, upload: { ...healthy.upload, state: "standby" } }],
  ["warn", "1 source connecting", { sources: [sourceWith({ state: "opening" })] }],
])("%s: %s", (level, text, changes) => {
  expect(overall(changes)).toEqual({ level, text });
});

test("losses are listed before delays", () => {
  const { text, level } = overall({
    sources: [sourceWith({ state: "waiting" })],
    gaps: { ...healthy.gaps, dayLost: 1 },
    upload: { ...healthy.upload, state: "retrying", refusedPoints: 3 },
  });
  expect(text).toBe("values lost in the last 24 h, 3 points refused, 1 source offline, service unreachable");
  expect(level).toBe("bad");
});

test("the page has the same words for the states of a source", () => {
  const script = readFileSync(join(import.meta.dirname, "../../../src/web/page/sources.js"), "utf8");
  for (const [state, word] of Object.entries(sourceWords)) expect(script).toContain(`${state}: ["${word}"`);
});
