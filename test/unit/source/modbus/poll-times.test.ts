// The times of polled values. The device is the judge: each register holds the device's own clock when it was read.
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Reading } from "../../../../src/core/source.ts";
import { pollTargets } from "../../../../src/source/modbus/config/tag-reads.ts";
import { openModbusConnection } from "../../../../src/source/modbus/connection/modbus-connection.ts";
import type { Exchange, Result } from "../../../../src/source/modbus/connection/result.ts";
import { loadDeviceQuirks } from "../../../../src/source/modbus/polling/device-quirks.ts";
import { modbusSource } from "../../../../src/source/modbus/polling/source.ts";
import { type ModbusTagText, modbusConfig } from "../../../support/modbus-source.ts";
import { runs } from "../../../support/property.ts";
import { ManualClock, type TestRuntime, testRuntime } from "../../../support/runtime.ts";

const start = Date.parse("2026-01-01T00:00:00Z");
/** The driver's promise: at most 100 ms after the slot, rounded up to the grid of 100 ms. */
const allowedMs = 200;

interface Bus {
  readonly tags: readonly ModbusTagText[];
  readonly timeoutMs?: number;
  /**
   * Milliseconds from a request to the reading of the registers, and from there to the answer. Undefined: no answer.
   */
  readonly takes: (unit: number, request: number) => readonly [before: number, after: number] | undefined;
}

/** Each pair of registers holds the milliseconds from `start` to its reading by the device. */
async function openSource({ tags, timeoutMs = 1_000, takes }: Bus, runtime: TestRuntime) {
  const { clock } = runtime;
  const config = modbusConfig({ url: "tcp://127.0.0.1", timeout: `${timeoutMs}ms` }, tags);
  let requests = 0;
  const exchange: Exchange = {
    resync: () => undefined,
    lost: undefined,
    stale: false,
    discarded: 0,
    receivedAt: Number.NEGATIVE_INFINITY,
    async run(request, waitMs, signal): Promise<Result> {
      const { unit } = request;
      const count = "count" in request ? request.count : 0;
      const times = takes(unit, requests++);
      if (!times) {
        await clock.sleep(waitMs, signal);
        return { kind: "silence", mismatch: undefined, received: true };
      }
      const [before, after] = times;
      if (before > 0) await clock.sleep(before, signal);
      const bytes = Buffer.alloc(count * 2);
      for (let i = 0; i + 1 < count; i += 2) bytes.writeUInt32BE(clock.now() / 1_000 - start, i * 2);
      if (after > 0) await clock.sleep(after, signal);
      return { kind: "data", bytes, at: clock.now(), tookMs: before + after };
    },
    async [Symbol.asyncDispose]() {},
  };
  const options = {
    name: "bus",
    units: new Set([1]),
    delayMs: 0,
    pauseAfterConnectMs: 0,
    connect: async () => exchange,
  };
  const link = await openModbusConnection(options, runtime, new AbortController().signal);
  const quirks = await loadDeviceQuirks(join(import.meta.filename, "nowhere"), runtime);
  return modbusSource(config, pollTargets(config), link, quirks, runtime);
}

/** Polls for `forMs`. */
async function polled(bus: Bus, forMs: number) {
  const clock = new ManualClock();
  const stop = new AbortController();
  await using source = await openSource(bus, testRuntime({ clock }));
  const readings: Reading[] = [];
  const pulling = (async () => {
    for await (const delivery of source.deliveries(stop.signal)) readings.push(...delivery.readings);
  })();
  await clock.advance(forMs);
  stop.abort();
  await pulling;
  const good = readings.filter(({ quality }) => quality === "good");
  return good.map(({ tag, time, value }) => ({ tag, time: time / 1_000 - start, device: Number(value) }));
}

type Polled = Awaited<ReturnType<typeof polled>>;
const worst = (values: Polled) => Math.max(...values.map(({ time, device }) => Math.abs(time - device)));

test("after a dead unit each value has the time at which it was read, not that of its slot", async () => {
  const values = await polled(
    {
      tags: [1, 2, 3].map((unit) => ({ at: "hr:0 u32", unit, every: 5_000 })),
      timeoutMs: 5_000,
      takes: (unit) => (unit === 1 ? undefined : [20, 20]),
    },
    60_000,
  );
  expect(values.length).toBeGreaterThan(10);
  expect(worst(values)).toBeLessThanOrEqual(allowedMs);
});

test("on a slow bus the blocks of a cycle have the times at which they were read", async () => {
  const values = await polled(
    {
      tags: Array.from({ length: 12 }, (_, i) => ({ at: `hr:${i * 100} u32`, every: 2_000 })),
      takes: (_, request) => [75 + (request % 5) * 10, 75 - (request % 3) * 10],
    },
    20_000,
  );
  expect(values.length).toBeGreaterThan(50);
  expect(worst(values)).toBeLessThanOrEqual(allowedMs);
  expect(values.every(({ time }) => time % 100 === 0)).toBe(true);
});

test("a cycle that is read within 100 ms keeps one time, that of its slot", async () => {
  const values = await polled(
    {
      tags: Array.from({ length: 4 }, (_, i) => ({ at: `hr:${i * 100} u32`, every: 250 })),
      takes: () => [12, 12],
    },
    2_000,
  );
  expect(values.length).toBeGreaterThan(20);
  expect(values.every(({ time }) => time % 250 === 0)).toBe(true);
});

test("times of a value only increase, and are right within half a round trip, whatever the bus does", async () => {
  const takes = fc.option(fc.tuple(fc.integer({ max: 400, min: 0 }), fc.integer({ max: 400, min: 0 })), { freq: 8 });
  const tag = fc.record({
    at: fc.nat({ max: 4 }).map((i) => `hr:${i * 100} u32`),
    unit: fc.integer({ min: 1, max: 3 }),
    every: fc.constantFrom(50, 70, 130, 250, 1_000, 2_500),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(tag, { minLength: 1, maxLength: 8, selector: ({ at, unit }) => `${unit} ${at}` }),
      fc.array(takes, { minLength: 1, maxLength: 20 }),
      async (tags, all) => {
        const values = await polled({ tags, takes: (_, n) => all[n % all.length] ?? undefined }, 8_000);
        const roundTrip = Math.max(0, ...all.map((each) => (each ? each[0] + each[1] : 0)));
        expect(worst(values)).toBeLessThanOrEqual(100 + roundTrip / 2);
        for (const ofTag of Map.groupBy(values, (value) => value.tag).values())
          for (const [i, { time }] of ofTag.entries()) expect(time).toBeGreaterThan(ofTag[i - 1]?.time ?? -1e9);
      },
    ),
    runs(15),
  );
});

test("readings that the buffer does not take are logged every 10 s, each of them once", async () => {
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  const tags = Array.from({ length: 60 }, (_, i) => ({ at: `hr:${i * 2} u32`, every: 50 }));
  await using source = await openSource({ tags, takes: () => [1, 1] }, runtime);
  const stop = new AbortController();
  const deliveries = source.deliveries(stop.signal);
  const first = deliveries.next();
  await clock.advance(50_000);
  await first;

  const lines = runtime.lines.filter(({ message }) => message.startsWith("readings dropped"));
  expect(lines.length).toBeGreaterThan(3);
  const logged = lines.reduce((sum, { fields }) => sum + Number(fields["readings"]), 0);
  const dropped = runtime.metric("source_modbus_dropped_readings_total");
  const in10s = (tags.length * 10_000) / 50;
  expect(logged).toBeLessThanOrEqual(dropped);
  expect(logged).toBeGreaterThan(dropped - in10s);
  stop.abort();
  await deliveries.return(undefined);
});
