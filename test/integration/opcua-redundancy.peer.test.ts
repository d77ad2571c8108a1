// Two servers of one redundant set: the source uses the one with the higher service level.
// A fail-over gap is filled from the history or recorded.
import { expect, test } from "vitest";
import { openAgent } from "../../src/agent/agent.ts";
import { epochMicros, type InputId } from "../../src/core/point.ts";
import { readBack } from "../../src/demo/read-back.ts";
import { load } from "../support/config.ts";
import { eventually } from "../support/eventually.ts";
import { hurriedClock } from "../support/hurried-clock.ts";
import { lineNamespace, type OpcuaServer, opcuaServer } from "../support/opcua-server.ts";
import { testRuntime } from "../support/runtime.ts";
import { integration, password, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** Reads service levels and history after a quarter of the usual delays. */
const hurried = () => testRuntime({ clock: hurriedClock(4) });

test("when the service level falls the other server is used, no value is lost, and the choice does not flap", {
  timeout: 240_000,
}, async () => {
  using folder = temporaryFolder();
  await using service = await testService({ throttle: "off" });
  await using first = await opcuaServer({ folder: folder.file("first") });
  await using second = await opcuaServer({ folder: folder.file("first"), before: ["urn:other"] });
  const from = Date.now() * 1_000;
  const both = [first, second] as const;
  const config = await load(`version: 1
agent: { name: gw1, dataDir: ${folder.file("data")} }
service: { url: ${service.url}, integration: ${integration}, auth: { basic: { password: "${password}" } } }
sources:
  line:
    type: opcua
    url: ${first.url}
    servers: ["${second.url}"]
    security: { mode: none }
    timeout: 30s
    every: 50ms
    subscription: { keepAlive: 120s }
    tags: [{ input: temp, node: "nsu=${lineNamespace};s=Temp" }]
`);
  const runtime = hurried();
  await using agent = await openAgent(config, { version: "0" }, runtime, new AbortController().signal);
  const line = () => agent.status().sources[0];
  const tag = () => agent.status().tags[0];
  const uses = (server: OpcuaServer) =>
    eventually(() => line()?.state === "online" && line()?.details.server === server.url, 60_000);
  let value = 100;
  let last = 0;
  const set = () => {
    value++;
    // Each value has its own time.
    last = Math.max(Date.now(), last + 1);
    const at = new Date(last);
    for (const server of both) server.set("Temp", value, at);
    return { value, at };
  };
  const arrived = () => eventually(() => tag()?.value === value && tag()?.quality === "good", 60_000);

  await uses(first);
  set();
  await arrived();
  first.serviceLevel = 100;
  // Set while no client is connected: both servers get the values, and the first one has them only in its history.
  await eventually(() => line()?.state === "waiting" && [set(), set()], 60_000);
  const missed = value;
  await uses(second);
  set();
  await arrived();
  expect(line()?.details["service levels"]).toBe(`${first.url} 100, ${second.url} 255`);
  expect(runtime.metric("source_opcua_fail_overs_total")).toBe(1);

  // The first server recovers. The source stays with the second one while that serves well.
  first.serviceLevel = 255;
  await eventually(() => String(line()?.details["service levels"]).startsWith(`${first.url} 255`), 60_000);
  set();
  await arrived();
  expect(line()?.details.server).toBe(second.url);

  // The second server stops.
  await second[Symbol.asyncDispose]();
  await uses(first);
  expect(runtime.metric("source_opcua_fail_overs_total")).toBe(2);
  first.set("Temp", ++value);
  await arrived();

  await eventually(() => agent.gaps(1e9, 9).gaps.every(({ state }) => state !== "filling"), 60_000);
  const { gaps } = agent.gaps(1e9, 9);
  expect(gaps.find(({ reason }) => reason.includes("service level"))).toMatchObject({
    cause: "disconnected",
    reason: `${first.url} is at service level 100, ${second.url} at 255: going on there`,
    state: "filled",
  });
  expect(gaps.some(({ reason }) => reason.includes(`${second.url} is lost`))).toBe(true);
  await eventually(() => agent.status().upload.backlogPoints === 0, 60_000);
  const span = { from: epochMicros(from), before: epochMicros(runtime.clock.now() + 60e6) };
  const reader = { url: service.url, integration, password, apiVersion: "1.1beta1", namespace: "platform" } as const;
  const stored = await readBack(reader, span, testRuntime(), new AbortController().signal);
  const values = [...(stored.get("temp" as InputId)?.keys() ?? [])]; // the Input ID in the configuration
  const all = Array.from({ length: value - 100 }, (_, i) => 101 + i);
  expect(all.filter((each) => !values.includes(each))).toEqual([]);
  expect(runtime.metric("source_opcua_backfilled_readings_total")).toBeGreaterThanOrEqual(1);
  expect(missed).toBeGreaterThan(100);
});
