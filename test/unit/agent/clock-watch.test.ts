// When the agent trusts the gateway's clock, and what it does with readings from before.
import { expect, test } from "vitest";
import { AgentClock } from "../../../src/agent/clock/agent-clock.ts";
import { holdForClock } from "../../../src/agent/clock/clock-hold.ts";
import { type ClockWatchOptions, openClockWatch } from "../../../src/agent/clock/clock-watch.ts";
import { epochMicros } from "../../../src/core/point.ts";
import type { Delivery, Reading, TagId } from "../../../src/core/source.ts";
import { BoundedQueue } from "../../../src/lib/flow/abort.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";

const micros = (text: string) => epochMicros(Date.parse(text) * 1_000);
const silent = { synchronised: async () => "unknown" as const, hasHardwareClock: async () => false };

async function watching(start: string, options: Partial<ClockWatchOptions> = {}) {
  const clock = new ManualClock(start);
  const own = new AgentClock(clock);
  const runtime = testRuntime({ clock: own });
  const parts = {
    policy: "hold",
    evidence: silent,
    lastRan: undefined,
    clock: own,
    file: { async save() {} },
  } as const;
  const watch = await openClockWatch({ ...parts, ...options }, runtime);
  const messages = () => runtime.lines.map(({ message }) => message);
  return { clock, own, runtime, watch, messages };
}

test("1970 is not trusted, however long it lasts, until the clock is set", async () => {
  const { clock, runtime, watch, messages } = await watching("1970-01-01T00:00:30Z");
  expect(watch.problem?.reason).toBe("it says 1970-01-01T00:00:30.000Z, which is impossible");
  await clock.advance(3_600_000);
  expect(watch.trusted).toBe(false);
  expect(runtime.metric("clock_trusted")).toBe(0);
  clock.stepWall(Date.parse("2026-05-01T12:00:00Z"));
  await clock.advance(1_000);
  expect(watch.trusted).toBe(true);
  await watch.released;
  expect(runtime.metric("clock_trusted")).toBe(1);
  expect(messages()).toEqual([
    "the clock is not set: readings that it would stamp wait until it is",
    "the wall clock was set",
    "the clock is set, readings that waited get their right times",
  ]);
  await watch[Symbol.asyncDispose]();
});

test("a clock behind the last run is distrusted for two minutes; a plant without time synchronisation continues after that", async () => {
  const lastRan = micros("2026-05-01T12:00:00Z");
  const { clock, watch, messages } = await watching("2026-05-01T09:00:00Z", { lastRan });
  expect(watch.problem?.reason).toContain("the agent ran until 2026-05-01T12:00:00.000Z");
  await clock.advance(119_000);
  expect(watch.trusted).toBe(false);
  await clock.advance(2_000);
  expect(watch.trusted).toBe(true);
  expect(messages()).toContain("the clock is trusted nevertheless");
  await watch[Symbol.asyncDispose]();
  const corrected = await watching("2026-05-01T11:59:30Z", { lastRan });
  expect(corrected.watch.trusted).toBe(true);
  await corrected.watch[Symbol.asyncDispose]();
});

test.for<["yes" | "notYet" | "unknown", boolean, boolean]>([
  ["notYet", false, false],
  ["notYet", true, true],
  ["yes", false, true],
  ["unknown", false, true],
])("synchronised: %s, hardware clock: %s: believed %s", async ([synchronised, hardware, believed]) => {
  const evidence = { synchronised: async () => synchronised, hasHardwareClock: async () => hardware };
  const { clock, watch } = await watching("2026-05-01T12:00:00Z", { evidence });
  expect(watch.trusted).toBe(believed);
  await clock.advance(61_000);
  expect(watch.trusted).toBe(true);
  await watch[Symbol.asyncDispose]();
});

test("with `write` no reading waits for the clock; the status reports the wrong clock, and each step is logged and counted", async () => {
  const { clock, runtime, watch, messages } = await watching("1970-01-01T01:00:00Z", { policy: "write" });
  expect(watch.holding).toBe(false);
  expect(watch.problem).toEqual({
    reason: "it says 1970-01-01T01:00:00.000Z, which is impossible",
    consequence: "readings are stored with its times all the same",
  });
  clock.stepWall(-5_000);
  await clock.advance(1_000);
  expect(runtime.metric("clock_steps_total")).toBe(1);
  expect(messages()).toContain("the wall clock was set");
  await watch[Symbol.asyncDispose]();
});

/** A source that yields what the test pushes. Its deliveries pass the clock hold of an agent that starts at `start`. */
async function held(start: string) {
  const world = await watching(start);
  const hold = holdForClock("bus1", { watch: world.watch, clock: world.own }, world.runtime);
  const queue = new BoundedQueue<Delivery>(1_000);
  const stop = new AbortController();
  const acknowledged: number[] = [];
  async function* source(): AsyncGenerator<Delivery> {
    try {
      for (;;) yield* await queue.takeAll(1, stop.signal);
    } catch (error) {
      if (!stop.signal.aborted) throw error;
    }
  }
  const read = (value: number, clock: Reading["clock"] = "agent", awaited = false): void => {
    const time = clock === "agent" ? world.clock.now() : micros("2026-04-30T00:00:00Z");
    const reading: Reading = {
      tag: 0 as TagId,
      captures: {},
      address: "hr:0",
      value,
      time,
      clock,
      quality: "good",
      historical: false,
    };
    queue.offer({ readings: [reading], descriptions: [], awaited, ack: () => void acknowledged.push(value) });
  };
  const seen: [unknown, string][] = [];
  const running = () =>
    (async () => {
      for await (const delivery of hold.timed(source(), stop.signal)) {
        for (const { value, time } of delivery.readings) seen.push([value, new Date(time / 1_000).toISOString()]);
        delivery.ack();
      }
    })();
  return { ...world, hold, queue, stop, read, seen, acknowledged, running };
}

test("readings wait and get the times at which they were read; values with device timestamps do not wait", async () => {
  const { clock, read, seen, acknowledged, stop, running, watch } = await held("1970-01-01T00:00:00Z");
  const done = running();
  read(0, "device");
  await clock.advance(10_000);
  expect(seen).toEqual([[0, "2026-04-30T00:00:00.000Z"]]);
  read(1);
  await clock.advance(5_000);
  read(2, "agent", true);
  read(3, "device");
  await clock.advance(5_000);
  expect(acknowledged).toEqual([0]);
  clock.stepWall(Date.parse("2026-05-01T12:00:00Z") - 20_000);
  await clock.advance(1_000);
  expect(seen.slice(1)).toEqual([
    [1, "2026-05-01T11:59:50.000Z"],
    [2, "2026-05-01T11:59:55.000Z"],
    [3, "2026-04-30T00:00:00.000Z"],
  ]);
  expect(acknowledged).toEqual([0, 1, 2, 3]);
  read(4);
  await clock.advance(0);
  expect(seen.at(-1)).toEqual([4, "2026-05-01T12:00:01.000Z"]);
  stop.abort(new Error("over"));
  await done;
  await watch[Symbol.asyncDispose]();
});

test("columns of a trusted clock pass without an object for each reading", async () => {
  const { stop, hold, watch, own } = await held("2026-05-01T12:00:00Z");
  const places = [{ tag: 0 as TagId, captures: {}, address: "hr:0" }];
  const batch = { places, values: Float64Array.of(1), times: own.now(), clock: "agent" as const };
  const columns: Delivery = {
    batches: [batch],
    get readings(): never {
      throw new Error("the readings became objects");
    },
    descriptions: [],
    awaited: false,
    ack() {},
  };
  async function* source() {
    yield columns;
  }
  const passed: Delivery[] = [];
  for await (const delivery of hold.timed(source(), stop.signal)) passed.push(delivery);
  expect(passed.length).toBe(1);
  expect(passed[0]).toBe(columns);
  await watch[Symbol.asyncDispose]();
});

test("a reading taken before the clock is set gets its right time, also if it arrives first of all after that", async () => {
  const { clock, read, seen, stop, running, watch } = await held("1970-01-01T00:00:00Z");
  const done = running();
  await clock.advance(5_000);
  read(0);
  // No part of the agent looks at the clock between the reading and its arrival.
  clock.stepWall(Date.parse("2026-05-01T12:00:00Z") - 5_000);
  await clock.advance(1_000);
  expect(seen).toEqual([[0, "2026-05-01T12:00:00.000Z"]]);
  stop.abort(new Error("over"));
  await done;
  await watch[Symbol.asyncDispose]();
});

test("polled readings keep waiting over a lost connection; values that will be redelivered are not kept", async () => {
  const { clock, read, seen, acknowledged, queue, running, watch, stop } = await held("1970-01-01T00:00:00Z");
  const first = running();
  first.catch(() => {});
  read(1);
  read(2, "agent", true);
  await clock.advance(1_000);
  queue.fail(new Error("lost"));
  await expect(first).rejects.toThrow("lost");
  clock.stepWall(Date.parse("2026-05-01T12:00:00Z"));
  await clock.advance(1_000);
  await expect(running()).rejects.toThrow("lost");
  expect(seen).toEqual([[1, "2026-05-01T12:00:00.000Z"]]);
  expect(acknowledged).toEqual([]);
  stop.abort(new Error("over"));
  await watch[Symbol.asyncDispose]();
});

test("a reading that was delivered when the pipeline ended is neither delivered again nor counted as lost", async () => {
  const { clock, runtime, read, hold, queue, stop, watch } = await held("1970-01-01T00:00:00Z");
  async function* source() {
    yield* await queue.takeAll(2, stop.signal);
    await new Promise(() => {});
  }
  read(1);
  read(2);
  const delivered: unknown[] = [];
  const first = (async () => {
    for await (const { readings } of hold.timed(source(), stop.signal)) {
      delivered.push(...readings.map(({ value }) => value));
      return;
    }
  })();
  await clock.advance(1_000);
  clock.stepWall(Date.parse("2026-05-01T12:00:00Z"));
  await clock.advance(1_000);
  await first;
  hold.close();

  expect(delivered).toEqual([1]);
  expect(runtime.metric("source_untimed_readings_total")).toBe(1);
  await watch[Symbol.asyncDispose]();
});

test("an agent that ends before the clock is set stores nothing under a wrong time and counts the loss", async () => {
  const { clock, runtime, read, seen, hold, stop, running, watch } = await held("1970-01-01T00:00:00Z");
  const done = running();
  read(1);
  read(2);
  await clock.advance(1_000);
  stop.abort(new Error("over"));
  await done;
  hold.close();
  expect(seen).toEqual([]);
  expect(runtime.metric("source_untimed_readings_total", { source: "bus1" })).toBe(2);
  await watch[Symbol.asyncDispose]();
});
