// The gateway's clock disagrees with the devices' clocks. The judge is the service: which times it stores.
import fc from "fast-check";
import { expect, test } from "vitest";
import { AgentClock } from "../../../src/agent/clock/agent-clock.ts";
import { holdForClock } from "../../../src/agent/clock/clock-hold.ts";
import { clockVoteResult, deviceClocks } from "../../../src/agent/clock/clock-vote.ts";
import { type ClockWatchOptions, openClockWatch } from "../../../src/agent/clock/clock-watch.ts";
import type { Delivery, Reading, TagId } from "../../../src/core/source.ts";
import { BoundedQueue } from "../../../src/lib/flow/abort.ts";
import { defaultTimeRule, type TimeRule } from "../../../src/lib/readings/device-time.ts";
import { mqttDriver } from "../../../src/source/mqtt/driver.ts";
import { MessageCounts, UnknownTopics } from "../../../src/source/mqtt/reading/message-counts.ts";
import { NameTables } from "../../../src/source/mqtt/reading/name-tables.ts";
import { TopicRouter, waysOf } from "../../../src/source/mqtt/reading/topic-router.ts";
import { messageReader } from "../../../src/source/mqtt/receiver/message-reader.ts";
import { RebirthRequests } from "../../../src/source/mqtt/sparkplug/edge-node.ts";
import { SparkplugHost } from "../../../src/source/mqtt/sparkplug/host.ts";
import { ClockCheck, toReading } from "../../../src/source/opcua/types/reading.ts";
import { runs } from "../../support/property.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const trueStart = Date.parse("2026-05-01T12:00:00Z");

interface Setting {
  /** How far the gateway's clock is ahead of the true time at the start, in milliseconds. */
  readonly gateway: number;
  readonly policy?: "hold" | "write";
  readonly synchronised?: "yes" | "unknown";
  readonly rule?: Partial<TimeRule>;
}

/** A gateway with a broker, a bus and OPC UA servers. A value is the true time of its reading, in seconds. */
async function plant({ gateway, policy = "hold", synchronised = "unknown", rule = {} }: Setting) {
  const wall = new ManualClock(new Date(trueStart + gateway).toISOString());
  const clock = new AgentClock(wall);
  const runtime = testRuntime({ clock });
  const options: ClockWatchOptions = {
    policy,
    evidence: { synchronised: async () => synchronised, hasHardwareClock: async () => true },
    lastRan: undefined,
    clock,
    file: { async save() {} },
  };
  const watch = await openClockWatch(options, runtime);
  const stop = new AbortController();
  /** For each stored value, the difference between its time and the true time in seconds. */
  const stored: { readonly source: string; readonly off: number }[] = [];
  const queues = new Map<string, BoundedQueue<Delivery>>();
  const running: Promise<void>[] = [];
  const trueNow = () => trueStart + wall.monotonic();

  function source(name: string): BoundedQueue<Delivery> {
    const known = queues.get(name);
    if (known) return known;
    const queue = new BoundedQueue<Delivery>(10_000);
    queues.set(name, queue);
    async function* deliveries() {
      try {
        for (;;) yield* await queue.takeAll(1, stop.signal);
      } catch (error) {
        if (!stop.signal.aborted) throw error;
      }
    }
    const hold = holdForClock(name, { watch, clock }, runtime);
    running.push(
      (async () => {
        for await (const { readings } of hold.timed(deliveries(), stop.signal))
          for (const { time, value } of readings)
            stored.push({ source: name, off: Math.round((time / 1e3 - Number(value) * 1e3) / 1e3) });
      })(),
    );
    return queue;
  }
  const give = (name: string, readings: readonly Reading[]) =>
    source(name).offer({ readings, descriptions: [], awaited: false, ack() {} });

  const time = { at: "$.ts", ...rule, ...(rule.maxAhead !== undefined && { maxAhead: `${rule.maxAhead}ms` }) };
  const tags = [mqttDriver.tag.parse({ topic: "plant/{path...}", value: "$.v", time })];
  const counts = new MessageCounts();
  const maxPayload = 1_000;
  const read = messageReader({
    router: new TopicRouter(tags, waysOf(maxPayload), 100),
    maxPayload,
    sparkplug: new SparkplugHost({ maxPayload, rebirths: new RebirthRequests(undefined), counts, monotonic: () => 0 }),
    names: new NameTables(tags),
    copies: { isFor: () => true },
    counts,
    unknown: new UnknownTopics(),
    onDefect: () => {},
  });
  return {
    wall,
    watch,
    runtime,
    stored,
    /** Publishes a message of a device whose clock is `ahead` milliseconds ahead of the true time. */
    publish(topic: string, { ahead = 0, retained = false } = {}) {
      const payload = Buffer.from(JSON.stringify({ v: trueNow() / second, ts: trueNow() + ahead }));
      const readings: Reading[] = [];
      read({ topic, payload, retained, held: undefined }, clock.now(), { readings, descriptions: [] });
      give("broker", readings);
    },
    notify(name: string) {
      const date = new Date(trueNow());
      const data = {
        value: { dataType: 11, arrayType: 0, value: trueNow() / second },
        statusCode: { value: 0, name: "Good" },
        sourceTimestamp: date,
        sourcePicoseconds: 0,
        serverTimestamp: date,
        serverPicoseconds: 0,
      };
      const of = { tag: 0 as TagId, captures: {}, address: "ns=2;s=T", clockCheck: new ClockCheck() };
      const reading = toReading(data, of, clock.now(), { ...defaultTimeRule, ...rule, clock: "source" });
      if (typeof reading === "object") give(name, [reading]);
    },
    poll() {
      const value = trueNow() / second;
      const place = { tag: 0 as TagId, captures: {}, address: "hr:0" };
      give("bus", [{ ...place, value, time: clock.now(), clock: "agent", quality: "good", historical: false }]);
    },
    offsets: (name: string) => [...new Set(stored.filter((each) => each.source === name).map(({ off }) => off))],
    async [Symbol.asyncDispose]() {
      stop.abort(new Error("over"));
      await Promise.all([...running, watch[Symbol.asyncDispose]()]);
    },
  };
}

/** Runs for this many seconds and calls `each` once a second. */
async function forSeconds(count: number, wall: ManualClock, each: () => void): Promise<void> {
  for (let i = 0; i < count; i++) {
    each();
    await wall.advance(second);
  }
}

test("a gateway an hour behind stores the times of two devices, reports it, and holds polled values until its clock is set", async () => {
  await using at = await plant({ gateway: -hour });
  await forSeconds(30, at.wall, () => {
    at.publish("plant/oven/t");
    at.publish("plant/press/t");
    at.poll();
  });
  expect(at.stored).toHaveLength(60);
  expect(at.offsets("broker")).toEqual([0]);
  expect(at.watch.problem?.reason).toBe("2 of 2 devices that give times say that it is 1h behind");
  expect(at.runtime.metric("clock_trusted")).toBe(0);
  expect(at.runtime.metric("source_ahead_readings_total", { source: "broker", stored: "device" })).toBe(60);
  at.wall.stepWall(hour);
  await at.wall.advance(2 * second);
  expect(at.watch.trusted).toBe(true);
  expect(at.stored).toHaveLength(90);
  expect(at.offsets("bus")).toEqual([0]);
});

test.each(["hold", "write"] as const)(
  "in 1972, with %s, OPC UA servers and devices of a broker keep their times",
  async (policy) => {
    await using at = await plant({ gateway: Date.parse("1972-01-01T00:00:00Z") - trueStart, policy });
    await forSeconds(5, at.wall, () => {
      at.notify("line1");
      at.publish("plant/oven/t");
      at.publish("plant/oven/p", { retained: true });
    });
    expect(at.stored).toHaveLength(15);
    expect([at.offsets("line1"), at.offsets("broker")]).toEqual([[0], [0]]);
  },
);

test("with `write` polled values are stored under the times of a clock that devices disagree with", async () => {
  await using at = await plant({ gateway: -hour, policy: "write" });
  await forSeconds(15, at.wall, () => {
    at.notify("line1");
    at.notify("line2");
    at.poll();
  });
  expect([at.offsets("line1"), at.offsets("line2"), at.offsets("bus")]).toEqual([[0], [0], [-3600]]);
  expect(at.watch.problem?.consequence).toBe("readings are stored with its times all the same");
});

test("polled values wait ten minutes at most; device times are still kept after that", async () => {
  await using at = await plant({ gateway: -hour });
  const each = () => {
    at.notify("line1");
    at.notify("line2");
    at.poll();
  };
  await forSeconds(300, at.wall, each);
  expect(at.offsets("bus").filter((off) => off !== -3600)).toEqual([]);
  const before = at.stored.filter(({ source }) => source === "bus").length;
  expect(before).toBeLessThanOrEqual(2);
  await forSeconds(320, at.wall, each);
  expect(at.stored.filter(({ source }) => source === "bus").length).toBeGreaterThan(610);
  expect([at.offsets("line1"), at.offsets("line2")]).toEqual([[0], [0]]);
  expect(at.watch.problem?.consequence).toBe("readings are stored with its times all the same");
});

test("values of a single device that is ahead get the time of arrival, after ten seconds at first, however many topics it has", async () => {
  await using at = await plant({ gateway: 0 });
  await forSeconds(9, at.wall, () => {
    at.publish("plant/oven/t", { ahead: hour });
    at.publish("plant/oven/p", { ahead: hour });
  });
  expect(at.stored).toEqual([]);
  await forSeconds(11, at.wall, () => at.publish("plant/oven/t", { ahead: hour }));
  expect(at.stored).toHaveLength(29);
  expect(at.offsets("broker")).toEqual([0]);
  expect(at.watch.trusted).toBe(true);
});

test("values of two devices that are ahead get the time of arrival when a third device and the gateway clock agree", async () => {
  await using at = await plant({ gateway: 0 });
  await forSeconds(15, at.wall, () => {
    at.publish("plant/oven/t", { ahead: hour });
    at.publish("plant/press/t", { ahead: hour });
    at.notify("line1");
  });
  expect(at.offsets("broker")).toEqual([0]);
  expect(at.watch.trusted).toBe(true);
});

test("a synchronised clock takes precedence over devices that send local time", async () => {
  await using at = await plant({ gateway: 0, synchronised: "yes" });
  await forSeconds(15, at.wall, () => {
    at.publish("plant/oven/t", { ahead: hour });
    at.publish("plant/press/t", { ahead: hour });
  });
  expect(at.offsets("broker")).toEqual([0]);
  expect(at.watch.problem).toBeUndefined();
});

test.each<[Partial<TimeRule>, boolean, number[]]>([
  [{ unusable: "keep" }, false, [3600]],
  [{ maxAhead: 2 * hour }, false, [3600]],
  [{ unusable: "drop" }, false, []],
  [{}, true, []],
])(
  "of a device that is an hour ahead, with %o, retained %s, the service has values that are %o s off",
  async (rule, retained, off) => {
    await using at = await plant({ gateway: 0, rule });
    await forSeconds(15, at.wall, () => at.publish("plant/oven/t", { ahead: hour, retained }));
    expect(at.offsets("broker")).toEqual(off);
  },
);

test("values that wait for the comparison of clocks are stored when the agent stops", async () => {
  const at = await plant({ gateway: 0 });
  at.publish("plant/oven/t", { ahead: hour });
  await at.wall.advance(second);
  expect(at.stored).toEqual([]);
  await at[Symbol.asyncDispose]();
  expect(at.offsets("broker")).toEqual([0]);
});

test("a gateway set an hour ahead is distrusted after some minutes; old values of the broker alone prove nothing", async () => {
  await using at = await plant({ gateway: hour });
  const old = { ahead: -4 * hour };
  await forSeconds(2, at.wall, () => {
    at.publish("plant/a/t", { ...old, retained: true });
    at.publish("plant/b/t", { ...old, retained: true });
  });
  await at.wall.advance(10 * minute);
  expect(at.watch.trusted).toBe(true);
  await forSeconds(460, at.wall, () => {
    at.notify("line1");
    at.notify("line2");
  });
  expect(at.watch.problem?.reason).toBe("2 of 2 devices that give times say that it is 1h ahead");
});

const minuteUs = 60e6;

test("one device against one, one device alone, and devices that disagree with each other prove nothing", () => {
  const off = fc.integer({ min: 2, max: 1e6 }).map((minutes) => minutes * minuteUs);
  const near = fc.integer({ min: -minuteUs, max: minuteUs });
  fc.assert(
    fc.property(off, fc.array(near, { maxLength: 5 }), (wrong, agreeing) => {
      expect(clockVoteResult([wrong, ...agreeing]).kind).not.toBe("wrong");
      expect(clockVoteResult([wrong, wrong + 2 * minuteUs]).kind).not.toBe("wrong");
      const spread = agreeing.map((_, i) => wrong + (i + 1) * 2 * minuteUs);
      expect(clockVoteResult(spread).kind).not.toBe("wrong");
    }),
    runs(200),
  );
});

test("the clock is wrong if and only if a majority of counted devices is off in the same direction", () => {
  const offset = fc.oneof(
    fc.integer({ min: -3 * minuteUs, max: 3 * minuteUs }),
    fc.constantFrom(0, 60 * minuteUs, 60.5 * minuteUs, -60 * minuteUs),
  );
  fc.assert(
    fc.property(fc.array(offset, { maxLength: 9 }), (offsets) => {
      const off = offsets.filter((each) => Math.abs(each) > minuteUs);
      // Each wrong offset starts a group of the offsets that are up to a minute further ahead.
      const largest = Math.max(0, ...off.map((low) => off.filter((x) => x >= low && x - low <= minuteUs).length));
      const agreeing = offsets.length - off.length;
      const wrong = largest >= 2 && largest > offsets.length / 2 && largest > agreeing + 1;
      expect(clockVoteResult(offsets).kind === "wrong").toBe(wrong);
      expect(clockVoteResult(offsets.toReversed()).kind === "wrong").toBe(wrong);
      const mirrored = clockVoteResult(offsets.map((each) => -each));
      expect(mirrored.kind === "wrong").toBe(wrong);
    }),
    runs(300),
  );
});

test("a step of the gateway clock moves all offsets; a device silent for minutes has no vote", () => {
  const clocks = deviceClocks();
  for (const device of ["a", "b"]) {
    clocks.note("s", device, 60 * minuteUs);
    clocks.note("s", device, 10);
  }
  expect(clocks.verdict(0)).toMatchObject({ kind: "wrong", byUs: 60 * minuteUs, devices: 2, of: 2 });
  clocks.stepped(60 * minuteUs);
  expect(clocks.verdict(1)).toEqual({ kind: "right" });
  clocks.stepped(-60 * minuteUs);
  expect(clocks.verdict(299_000).kind).toBe("wrong");
  expect(clocks.verdict(301_000)).toEqual({ kind: "unknown" });
});
