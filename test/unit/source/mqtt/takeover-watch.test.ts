// Which disconnections are takeovers when the broker gives no reason.
import { expect, test } from "vitest";
import { AgentError } from "../../../../src/core/errors.ts";
import { TakeoverWatch } from "../../../../src/source/mqtt/connection/failure.ts";
import { seed } from "../../../support/property.ts";
import { seeded } from "../../../support/runtime.ts";

const closed = new AgentError("SOURCE_UNREACHABLE", "closed");
const attempt = { url: "mqtt://b", username: undefined, clientId: "north-hall", protocolVersion: 4 } as const;
const lost = (watch: TakeoverWatch, how: { silent?: boolean; lastedMs?: number } = {}) => {
  const { silent = true, lastedMs = 1_000 } = how;
  return watch.lost(closed, attempt, { lastedMs, silent }).code;
};

test("the fifth connection in a row that a broker accepts and closes is a takeover, and each one after it", () => {
  const watch = new TakeoverWatch();
  const codes = Array.from({ length: 6 }, () => lost(watch));
  expect(codes.indexOf("SOURCE_TAKEN_OVER")).toBe(4);
  // From then on both clients wait longer before they reconnect.
  expect([lost(watch, { lastedMs: 72_000 }), lost(watch, { lastedMs: 119_000 })]).toEqual([
    "SOURCE_TAKEN_OVER",
    "SOURCE_TAKEN_OVER",
  ]);
});

test("a proxy that cuts every 60 s after a suspected takeover is not a takeover", () => {
  const watch = new TakeoverWatch();
  for (let i = 0; i < 5; i++) lost(watch);
  const codes = [60_004, 60_150, 59_990, 60_010, 60_000, 60_020, 60_030].map((lastedMs) => lost(watch, { lastedMs }));
  expect(codes.slice(4)).toEqual(["SOURCE_UNREACHABLE", "SOURCE_UNREACHABLE", "SOURCE_UNREACHABLE"]);
});

test("two agents that wait in turn stay a takeover, however long it goes on", () => {
  const watch = new TakeoverWatch();
  const random = seeded(seed);
  for (let i = 0; i < 5; i++) lost(watch);
  let missed = 0;
  for (let i = 0; i < 500; i++) {
    if (lost(watch, { lastedMs: 60_000 + 12_000 * random() }) === "SOURCE_TAKEN_OVER") continue;
    // By chance the pauses were alike, so this was not detected. The client then reconnects at once, and the takeovers
    // resume.
    missed++;
    for (let k = 0; k < 5; k++) lost(watch);
  }
  expect(missed).toBeLessThan(10);
});

test.each<[string, (watch: TakeoverWatch) => void]>([
  ["a broker that restarts is away in between", (watch) => watch.openFailed([])],
  ["the connection lasted", (watch) => lost(watch, { lastedMs: 30_000 })],
  ["the network broke it", (watch) => lost(watch, { silent: false })],
])("no takeover: %s", (_, interrupt) => {
  const watch = new TakeoverWatch();
  for (let i = 0; i < 10; i++) {
    for (let k = 0; k < 4; k++) expect(lost(watch)).toBe("SOURCE_UNREACHABLE");
    interrupt(watch);
  }
});
