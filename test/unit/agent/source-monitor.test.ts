// What the log and the status report of a source that connects and disconnects.
import { expect, test } from "vitest";
import { sourceMonitor } from "../../../src/agent/status/source-monitor.ts";
import { AgentError } from "../../../src/core/errors.ts";
import type { Source } from "../../../src/core/source.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";

const silence = new AgentError("SOURCE_UNREACHABLE", "not a byte came back");

test("a device that accepts connections and never answers is logged once in ten minutes, not at every attempt", async () => {
  const { monitor, runtime, clock } = watched();

  for (let i = 0; i < 240; i++) {
    monitor.connecting();
    monitor.online(connection);
    await clock.advance(4_000);
    monitor.lost(silence, 1_000);
    await clock.advance(1_000);
  }

  expect(runtime.lines.map(({ message }) => message)).toEqual([
    "connected",
    "source lost",
    "connected",
    "source lost",
    "connected",
  ]);
  expect(runtime.lines[3]?.fields.repeats).toBe(119);
});

test("the error of a device that accepts connections and never answers stays in the status while it is connected", async () => {
  const { monitor, clock } = watched();
  monitor.online(connection);
  await clock.advance(4_000);
  monitor.lost(silence, 1_000);
  monitor.online(connection);

  expect(monitor.status()).toMatchObject({ state: "online", error: "not a byte came back" });
  monitor.delivered(1, 1);
  expect(monitor.status()).not.toHaveProperty("error");
});

test("setting the clock while a source is online does not turn its minutes into decades", async () => {
  const { monitor, clock } = watched();
  monitor.online(connection);
  await clock.advance(90_000);
  clock.stepWall(56 * 365 * 86_400_000);
  expect(clock.now() - monitor.status().since).toBe(90_000_000);
});

test("a useful connection that is restored leaves no error, and each loss is logged", () => {
  const { monitor, runtime } = watched();
  for (let i = 0; i < 2; i++) {
    monitor.online(connection);
    monitor.delivered(1, 1);
    monitor.lost(silence, 1_000);
  }
  monitor.online(connection);

  expect(monitor.status()).not.toHaveProperty("error");
  expect(runtime.lines.filter(({ message }) => message === "source lost")).toHaveLength(2);
});

test("a session takeover stays the reported error while the connection is up, and is logged once in ten minutes", async () => {
  const { monitor, runtime, clock } = watched();
  const takeover = new AgentError("SOURCE_TAKEN_OVER", "another client took over the session");
  for (let i = 0; i < 8; i++) {
    monitor.online(connection);
    monitor.delivered(1, 1);
    await clock.advance(60_000);
    monitor.lost(takeover, 60_000);
  }
  monitor.online(connection);
  monitor.delivered(1, 1);

  expect(monitor.status()).toMatchObject({ state: "online", error: "another client took over the session" });
  expect(runtime.lines.filter(({ message }) => message === "source lost")).toHaveLength(1);
  await clock.advance(600_000);
  expect(monitor.status()).not.toHaveProperty("error");
});

test("a loss for another reason ends the report of a takeover", () => {
  const { monitor } = watched();
  monitor.online(connection);
  monitor.lost(new AgentError("SOURCE_TAKEN_OVER", "another client took over the session"), 5_000);
  monitor.online(connection);
  monitor.delivered(1, 1);
  monitor.lost(silence, 1_000);
  monitor.online(connection);
  monitor.delivered(1, 1);

  expect(monitor.status()).not.toHaveProperty("error");
});

const connection: Source = { deliveries: async function* () {}, async [Symbol.asyncDispose]() {} };

function watched() {
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  return { monitor: sourceMonitor({ name: "bus", type: "modbus", tags: 1 }, runtime), runtime, clock };
}
