// The agent's own measurements as signals of the service.
import { expect, test } from "vitest";
import { inputsOf, type OwnValues, ownInputRules, ownRules, startOwnSignals } from "../../../src/agent/own-signals.ts";
import type { PointBuffer } from "../../../src/core/buffer.ts";
import { AgentError } from "../../../src/core/errors.ts";
import type { Point } from "../../../src/core/point.ts";
import type { PartialSignalMetadata } from "../../../src/core/signal.ts";
import { InputOwners } from "../../../src/mapping/input-owners.ts";
import { head, load, withPassword } from "../../support/config.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";

const values: OwnValues = {
  sources: [
    { name: "bus1", online: true, readingsPerSecond: 12.5 },
    { name: "line3", online: false, readingsPerSecond: 0 },
  ],
  upload: { state: "retrying", lagMs: 1_234, backlogPoints: 17 },
  buffer: {
    refusedPoints: 2,
    bytes: 4_096,
    losses: [{ reason: "disk full", points: 3, from: undefined, to: undefined, intervals: [] }],
  },
  process: { memoryBytes: 9e7, cpuPercent: 1.26 },
};

function started(now: () => OwnValues, agent = "gw1", isClustered = false) {
  const clock = new ManualClock("2026-03-01T08:00:00.250Z");
  const runtime = testRuntime({ clock });
  const points: Point[] = [];
  const described = new Map<string, PartialSignalMetadata>();
  const world = { full: false, timed: true };
  const buffer: Pick<PointBuffer, "append"> = {
    async append(given) {
      if (world.full) throw new AgentError("BUFFER_UNAVAILABLE", "full");
      points.push(...given);
    },
  };
  const own = startOwnSignals(
    {
      rules: ownRules({ agent: { name: agent, ownSignals: { every: 10_000 } }, cluster: isClustered ? {} : undefined }),
      every: 10_000,
      measure: now,
      timed: () => world.timed,
      buffer: buffer as PointBuffer, // the only part that is used
      catalog: {
        describe: (input: string, signal: PartialSignalMetadata) => void described.set(input, signal),
      },
      owners: new InputOwners(),
    },
    runtime,
  );
  const taken = () => Object.fromEntries(points.splice(0).map(({ input, value }) => [input, value]));
  return { own, clock, runtime, points, taken, described, world };
}

test("sources, delivery, buffer and process are stored under the agent's name, at whole seconds, with their units", async () => {
  const { own, clock, points, taken, described } = started(() => values);
  await clock.advance(10_000);
  expect(new Set(points.map(({ time }) => time))).toEqual(new Set([Date.parse("2026-03-01T08:00:10Z") * 1_000]));
  expect(taken()).toEqual({
    "gw1/tagferry/source/bus1/online": 1,
    "gw1/tagferry/source/line3/online": 0,
    "gw1/tagferry/source/bus1/readings": 12.5,
    "gw1/tagferry/source/line3/readings": 0,
    "gw1/tagferry/delivery/state": 1,
    "gw1/tagferry/delivery/lag": 1.234,
    "gw1/tagferry/delivery/backlog": 17,
    "gw1/tagferry/delivery/refused": 2,
    "gw1/tagferry/buffer/bytes": 4_096,
    "gw1/tagferry/buffer/dropped": 3,
    "gw1/tagferry/process/memory": 9e7,
    "gw1/tagferry/process/cpu": 1.3,
  });
  expect(described.get("gw1/tagferry/source/bus1/online")).toMatchObject({
    name: "bus1 online",
    type: "enum",
    enumValues: { 0: "offline", 1: "online" },
    labels: { agent: ["gw1"] },
  });
  expect(described.get("gw1/tagferry/delivery/lag")).toMatchObject({ engUnit: "s" });
  await own[Symbol.asyncDispose]();
});

test("an agent of a cluster stores the state of the cluster too, as far as it is known", async () => {
  const cluster = { connected: true, hasQuorum: true, members: 3, agents: [], sameName: false, forwardLagMs: 250 };
  const stream = { messages: 4, bytes: 70_000, maxBytes: 2 ** 30, oldestMs: 900, replicas: 3, replicasInPlace: 2 };
  let now: OwnValues = { ...values, cluster: { ...cluster, stream } };
  const { own, clock, taken, described } = started(() => now, "gw1", true);
  await clock.advance(10_000);
  expect(taken()).toMatchObject({
    "gw1/tagferry/cluster/state": 2,
    "gw1/tagferry/cluster/members": 3,
    "gw1/tagferry/cluster/lag": 0.25,
    "gw1/tagferry/cluster/stream": 70_000,
    "gw1/tagferry/cluster/replicas": 2,
  });
  expect(described.get("gw1/tagferry/cluster/state")).toMatchObject({
    enumValues: { 0: "unreachable", 2: "connected" },
  });
  now = { ...values, cluster: { ...cluster, connected: false, hasQuorum: false, forwardLagMs: 9_000 } };
  await clock.advance(10_000);
  expect(taken()).toEqual({ "gw1/tagferry/cluster/state": 0, "gw1/tagferry/cluster/lag": 9 });
  await own[Symbol.asyncDispose]();
});

test.each([true, false])("the Input IDs of own signals include those of a cluster: %s", async (isClustered) => {
  const cluster = isClustered ? "cluster: { servers: [nats://a] }\n" : "";
  const source = "{ type: simulator, tags: [{ input: x, wave: sine }] }";
  const config = await load(`${head}agent: { name: gw1 }\n${cluster}sources: { s: ${source} }\n`, withPassword);
  const { fixed } = inputsOf(config);
  const ofCluster = [...fixed.keys()].filter((input) => input.startsWith("gw1/tagferry/cluster/"));
  expect(ofCluster.length > 0).toBe(isClustered);
  expect(ownInputRules(config).some(({ input }) => input === "gw1/tagferry/cluster/state")).toBe(isClustered);
});

test("a changed value is stored at the next interval, an unchanged one every five minutes", async () => {
  let now = values;
  const { own, clock, taken } = started(() => now);
  await clock.advance(10_000);
  taken();
  now = {
    ...values,
    sources: [{ name: "line3", online: true, readingsPerSecond: 0 }],
    upload: { state: "retrying", backlogPoints: 17 },
  };
  await clock.advance(10_000);
  expect(taken()).toEqual({ "gw1/tagferry/source/line3/online": 1 });
  await clock.advance(280_000);
  taken();
  await clock.advance(20_000);
  expect(Object.keys(taken())).toContain("gw1/tagferry/buffer/bytes");
  await own[Symbol.asyncDispose]();
});

test("a full disk or an unset clock loses only these values", async () => {
  const { own, clock, runtime, taken, world } = started(() => ({
    ...values,
    upload: { ...values.upload, backlogPoints: clock.monotonic() },
  }));
  world.full = true;
  await clock.advance(20_000);
  world.full = false;
  world.timed = false;
  await clock.advance(10_000);
  expect(taken()).toEqual({});
  world.timed = true;
  await clock.advance(10_000);
  expect(taken()).toHaveProperty("gw1/tagferry/delivery/backlog");
  expect(runtime.lines.filter(({ level }) => level === "error")).toEqual([]);
  await own[Symbol.asyncDispose]();
});

test("names of maximum length still give valid Input IDs", async () => {
  const long = "n".repeat(64);
  const source = { name: long, online: true, readingsPerSecond: 1 };
  const { own, clock, taken } = started(() => ({ ...values, sources: [source] }), long);
  await clock.advance(10_000);
  const inputs = Object.keys(taken());
  expect(inputs.filter((input) => input.endsWith("/online"))).toHaveLength(1);
  expect(inputs.every((input) => input.length <= 128)).toBe(true);
  await own[Symbol.asyncDispose]();
});

test("an idle agent stores no own signals, although its memory and lag vary", async () => {
  let turn = 0;
  const { own, clock, points } = started(() => {
    const wobble = Math.sin(turn++);
    return {
      ...values,
      lagMs: 1_300 + 400 * wobble,
      memoryBytes: 9e7 + 1.5e6 * wobble,
      cpuPercent: 0.3 + 0.3 * wobble,
      bufferBytes: 4_096 + turn * 100,
    };
  });
  await clock.advance(10_000);
  expect(points.splice(0)).toHaveLength(12);
  await clock.advance(240_000);
  expect(points).toEqual([]);
  await own[Symbol.asyncDispose]();
});
