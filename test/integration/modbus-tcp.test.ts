// Modbus TCP from a device over a real socket to the readings.
import { expect, test } from "vitest";
import { isAgentError } from "../../src/core/errors.ts";
import { epochMicros } from "../../src/core/point.ts";
import type { Reading } from "../../src/core/source.ts";
import { systemClock } from "../../src/lib/time/clock.ts";
import { modbusDriver } from "../../src/source/modbus/driver.ts";
import { eventually } from "../support/eventually.ts";
import { modbusDevice } from "../support/modbus-device.ts";
import { allRead, latest, modbusConfig, openModbusSource, readUntil } from "../support/modbus-source.ts";
import { has } from "../support/platform.ts";
import { testRuntime } from "../support/runtime.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const signal = () => AbortSignal.timeout(20_000);

test.runIf(has.immediateLoopback)(
  "values of all four tables arrive decoded, in one request a table, with one time",
  async () => {
    await using device = await modbusDevice();
    device.unit(1).set("hr", 0, [2301, 0, 0, 0, 0x47f1, 0x2065, 0xffff, 0b1000]);
    device.unit(1).set("ir", 10, [0x2065, 0x47f1]);
    device.unit(1).set("co", 5, [1]);
    device.unit(1).set("di", 3, [0, 1]);
    const tags = ["hr:0 u16", "hr:4 f32", "hr:6 i16", "hr:7.3 bit", "ir:10 f32 cdab", "co:5", "di:3", "di:4"];
    const runtime = testRuntime();
    await using source = await openModbusSource(
      { url: device.url },
      tags.map((at) => ({ at })),
      runtime,
      signal(),
    );

    const times = (poll: readonly Reading[]) => new Set(poll.map((reading) => reading.time)).size;
    const polls = (all: readonly Reading[]) =>
      Array.from({ length: all.length / tags.length }, (_, i) => all.slice(i * tags.length, (i + 1) * tags.length));
    // Under load a poll may take longer than 100 ms, and its readings then have several times. Waits for a poll that does
    // not.
    const readings = await readUntil(source, signal(), (all) => polls(all).some((poll) => times(poll) === 1));

    const first = (polls(readings).find((poll) => times(poll) === 1) ?? []).toSorted((a, b) => a.tag - b.tag);
    expect(first.map((reading) => reading.value)).toEqual([2301, 123456.79, -1, true, 123456.79, true, false, true]);
    expect(first.map((reading) => reading.address)).toEqual(tags);
    expect(first[0]).toMatchObject({ clock: "agent", quality: "good", historical: false });
    expect(device.requests.slice(0, 4).map((r) => [r.function, r.start, r.count])).toEqual([
      [3, 0, 8],
      [4, 10, 2],
      [1, 5, 1],
      [2, 3, 2],
    ]);
  },
);

test("the last addresses can be read alone, together with earlier ones, and by several tags", async () => {
  await using device = await modbusDevice();
  device.unit(1).set("hr", 65_532, [1, 2, 3, 4]);
  device.unit(1).set("co", 65_535, [1]);
  const tags = ["hr:65535", "hr:65534 u32", "hr:65532 u64", "hr:65535 i16", "hr:65535", "co:65535"];
  await using source = await openModbusSource(
    { url: device.url },
    tags.map((at) => ({ at })),
    testRuntime(),
    signal(),
  );

  const readings = latest(await readUntil(source, signal(), allRead(tags.length)));

  expect(readings.map(({ value }) => value)).toEqual([4, 0x3_0004, 0x1_0002_0003_0004, 4, 4, true]);
  expect(device.requests.slice(0, 2).map(({ start, count }) => `${start}+${count}`)).toEqual(["65532+4", "65535+1"]);
});

test("with time: reply each reading has the time of its reply", async () => {
  await using device = await modbusDevice();
  device.unit(1);
  device.latencyMs = 20;
  await using source = await openModbusSource(
    { url: device.url, time: "reply" },
    [{ at: "hr:0" }, { at: "ir:0" }],
    testRuntime(),
    signal(),
  );

  const [first, second] = await readUntil(source, signal(), allRead(2));

  expect((second?.time ?? 0) - (first?.time ?? 0)).toBeGreaterThanOrEqual(15_000);
});

test("a silent unit costs the others only its timeout, and its tags have the reason", async () => {
  await using device = await modbusDevice();
  device.unit(1).set("hr", 0, [7]);
  device.unit(2).silent = true;
  await using source = await openModbusSource(
    { url: device.url, timeout: "400ms" },
    [{ at: "hr:0" }, { at: "hr:0", unit: 2 }],
    testRuntime(),
    signal(),
  );

  const readings = await readUntil(source, signal(), (all) => all.filter((r) => r.value === 7).length >= 20);

  expect(latest(readings)[1]).toMatchObject({
    value: undefined,
    quality: "bad",
    reason: expect.stringMatching(/^unit 2 did not answer within 400ms/),
  });
  // Three timeouts, and one or two probes on a slow machine.
  expect(device.requests.filter((r) => r.unit === 2).length).toBeLessThan(8);
  expect(source.details?.()).toMatchObject({ units: 2, "units down": "2" });
});

test("addresses that the device does not have are found one by one, and the others are read", async () => {
  await using device = await modbusDevice();
  device.unit(1).set("hr", 0, [10, 11, 12, 13, 14, 15]);
  device.unit(1).refuse("hr", 3, 3, 2);
  const runtime = testRuntime();
  const tags = [0, 1, 2, 3, 4, 5].map((address) => ({ at: `hr:${address}` }));
  await using source = await openModbusSource({ url: device.url }, tags, runtime, signal());

  const readings = await readUntil(source, signal(), (all) => all.length >= 12);

  expect(latest(readings).map((reading) => reading.value)).toEqual([10, 11, 12, undefined, 14, 15]);
  expect(latest(readings)[3]?.reason).toBe(
    "exception 2: illegal data address: the device does not have this address (hr:3, 40004)",
  );
  const before = device.requests.length;
  await eventually(() => device.requests.length > before || readings.length > 0);
  expect(runtime.lines.filter((line) => line.message === "address refused")).toHaveLength(1);
});

test("a device that allows fewer registers than the protocol is read in pieces", async () => {
  await using device = await modbusDevice();
  device.unit(1).maxCount = 20;
  const tags = Array.from({ length: 50 }, (_, i) => ({ at: `hr:${i}` }));
  device.unit(1).set(
    "hr",
    0,
    tags.map((_, i) => 100 + i),
  );
  await using source = await openModbusSource({ url: device.url }, tags, testRuntime(), signal());

  const readings = await readUntil(source, signal(), allRead(50));

  expect(latest(readings).map((reading) => reading.value)).toEqual(tags.map((_, i) => 100 + i));
});

test("limits learned of a device persist over a restart, and are tried again after a day", async () => {
  await using device = await modbusDevice();
  using folder = temporaryFolder();
  device.unit(1).set("hr", 0, [10, 11, 12]);
  device.unit(1).refuse("hr", 1, 1, 2);
  const real = systemClock();
  const clock = { ...real };
  const firstRequests = async () => {
    const before = device.requests.length;
    const runtime = testRuntime({ clock });
    await using source = await openModbusSource(
      { url: device.url },
      [{ at: "hr:0" }, { at: "hr:2" }],
      runtime,
      signal(),
      folder.path,
    );
    const readings = latest(await readUntil(source, signal(), allRead(2)));
    expect(readings.map((reading) => reading.value)).toEqual([10, 12]);
    return device.requests.slice(before, before + 3).map(({ start, count }) => `${start}+${count}`);
  };

  expect(await firstRequests()).toEqual(["0+3", "0+1", "2+1"]);
  expect((await firstRequests()).slice(0, 2)).toEqual(["0+1", "2+1"]);
  clock.now = () => epochMicros(real.now() + 25 * 3_600_000_000);
  expect(await firstRequests()).toEqual(["0+3", "0+1", "2+1"]);
});

test("a device silent at large requests gets smaller ones", async () => {
  await using device = await modbusDevice();
  device.unit(1).silentAbove = 10;
  const tags = [...Array(16).keys()].map((i) => ({ at: `hr:${i}` }));
  await using source = await openModbusSource(
    { url: device.url, timeout: "150ms" },
    [...tags, { at: "ir:0" }],
    testRuntime(),
    signal(),
  );

  const readings = await readUntil(
    source,
    signal(),
    (all) => all.filter((r) => r.quality === "good" && r.tag < 16).length >= 16,
  );

  expect(latest(readings).every((reading) => reading.quality === "good")).toBe(true);
});

test("a unit silent at large requests is not treated as dead, and gets smaller ones", async () => {
  await using device = await modbusDevice();
  device.unit(1).silentAbove = 10;
  device.unit(2);
  const tags = [...Array(16).keys()].map((i) => ({ at: `hr:${i}` }));
  const runtime = testRuntime();
  await using source = await openModbusSource(
    { url: device.url, timeout: "150ms" },
    [...tags, { at: "hr:0", unit: 2 }],
    runtime,
    signal(),
  );

  const readings = await readUntil(source, signal(), (all) => all.some((r) => r.tag === 15 && r.quality === "good"));

  expect(latest(readings).every((reading) => reading.quality === "good")).toBe(true);
  expect(runtime.lines.map((line) => line.message)).not.toContain("unit is down");
});

test("disposing the source ends its deliveries, also during a request", async () => {
  await using device = await modbusDevice();
  device.unit(1).silent = true;
  const source = await openModbusSource({ url: device.url }, [{ at: "hr:0" }], testRuntime(), signal());
  const reading = readUntil(source, signal(), () => false);
  await eventually(() => device.requests.length > 0);

  await source[Symbol.asyncDispose]();

  expect(await reading).toEqual([]);
  await eventually(() => device.connections === 0);
});

test("a block without a readable register is not divided, and is read again later", async () => {
  await using device = await modbusDevice();
  device.unit(1).refuse("hr", 0, 9, 2);
  device.unit(1).set("ir", 0, [1]);
  await using source = await openModbusSource(
    { url: device.url },
    [{ at: "hr:0" }, { at: "hr:1" }, { at: "ir:0" }],
    testRuntime(),
    signal(),
  );

  const readings = await readUntil(source, signal(), (all) => all.length >= 12);

  expect(latest(readings).map((reading) => reading.value)).toEqual([undefined, undefined, 1]);
  expect(device.requests.filter((request) => request.function === 3)).toHaveLength(3);
});

test("an exception of the device makes its tags bad for that poll only", async () => {
  await using device = await modbusDevice();
  device.unit(1).set("hr", 0, [5]);
  device.unit(1).exception = 4;
  await using source = await openModbusSource({ url: device.url }, [{ at: "hr:0" }], testRuntime(), signal());

  const readings = await readUntil(source, signal(), (all) => {
    device.unit(1).exception = undefined;
    return all.some((reading) => reading.quality === "good");
  });

  expect(readings[0]).toMatchObject({ value: undefined, quality: "bad", reason: "exception 4: server device failure" });
  expect(readings.at(-1)?.value).toBe(5);
});

test("a busy unit is polled again", async () => {
  await using device = await modbusDevice();
  device.unit(1).set("hr", 0, [5]);
  device.unit(1).exception = 6;
  await using source = await openModbusSource({ url: device.url }, [{ at: "hr:0" }], testRuntime(), signal());
  const reading = readUntil(source, signal(), allRead(1));
  await eventually(() => device.requests.length > 0);
  device.unit(1).exception = undefined;

  expect((await reading)[0]?.value).toBe(5);
});

test("a device that closes an idle connection is reconnected without a gap", async () => {
  await using device = await modbusDevice();
  device.unit(1).set("hr", 0, [1]);
  const runtime = testRuntime();
  await using source = await openModbusSource({ url: device.url }, [{ at: "hr:0" }], runtime, signal());

  const readings = await readUntil(source, signal(), (all) => {
    if (all.length === 3) device.disconnect();
    return all.length >= 6;
  });

  expect(readings.every((reading) => reading.quality === "good")).toBe(true);
  expect(runtime.metric("source_modbus_reconnects_total")).toBe(1);
});

test("deliveries end with SOURCE_UNREACHABLE when the device disappears, also during a request", async () => {
  const device = await modbusDevice();
  device.unit(1);
  await using source = await openModbusSource({ url: device.url }, [{ at: "hr:0" }], testRuntime(), signal());

  const reading = readUntil(source, signal(), (all) => {
    if (all.length === 2) device.unit(1).silent = true;
    return false;
  });
  const asked = () => device.requests.length;
  const before = asked();
  await eventually(() => asked() > before + 2);
  device.disconnect(true);

  await expect(reading).rejects.toMatchObject({ code: "SOURCE_UNREACHABLE" });
  await device[Symbol.asyncDispose]();
});

test("a connection without a single byte of answer counts as lost after three requests", async () => {
  await using device = await modbusDevice();
  device.unit(1).silent = true;
  await using source = await openModbusSource(
    { url: device.url, timeout: "20ms" },
    [{ at: "hr:0" }, { at: "ir:0" }, { at: "co:0" }],
    testRuntime(),
    signal(),
  );

  await expect(readUntil(source, signal(), () => false)).rejects.toMatchObject({ code: "SOURCE_UNREACHABLE" });
  expect(device.requests).toHaveLength(3);
});

test("a closed port is SOURCE_UNREACHABLE, with the address in the message", async () => {
  const device = await modbusDevice();
  const { url } = device;
  await device[Symbol.asyncDispose]();

  const opening = openModbusSource({ url }, [{ at: "hr:0" }], testRuntime(), signal());

  await expect(opening).rejects.toSatisfy((error) => isAgentError(error, "SOURCE_UNREACHABLE"));
  await expect(opening).rejects.toThrow(url.slice("tcp://".length));
});

test("aborting ends deliveries without an error, also during a request", async () => {
  await using device = await modbusDevice();
  device.unit(1).silent = true;
  const stop = new AbortController();
  await using source = await openModbusSource({ url: device.url }, [{ at: "hr:0" }], testRuntime(), signal());
  const reading = readUntil(source, stop.signal, () => false);
  await eventually(() => device.requests.length > 0);

  stop.abort();

  expect(await reading).toEqual([]);
});

test("one request is in flight at a time, whatever else is due", async () => {
  await using device = await modbusDevice();
  device.latencyMs = 5;
  const units = [1, 2, 3, 4, 5];
  for (const unit of units) device.unit(unit);
  await using source = await openModbusSource(
    { url: device.url, interRequestDelay: "5ms" },
    units.map((unit) => ({ at: "hr:0", unit })),
    testRuntime(),
    signal(),
  );
  const start = performance.now();

  await readUntil(source, signal(), allRead(5));

  expect(device.mostInFlight).toBe(1);
  expect(performance.now() - start).toBeGreaterThanOrEqual(5 * 5 + 4 * 5);
});

test("the forecast counts readings and requests a second", () => {
  const config = modbusConfig({ url: "tcp://127.0.0.1" }, [
    { at: "hr:0", every: 1_000 },
    { at: "hr:1", every: 1_000 },
    { at: "hr:500", every: 1_000 },
    { at: "hr:0", every: 100, unit: 2 },
  ]);

  expect(modbusDriver.forecast?.(config)).toEqual({ readingsPerSecond: 13, requestsPerSecond: 12 });
});

test("the forecast of a serial line has its load", () => {
  const tags = [{ at: "hr:0", every: 100 }];
  const load = (url: string) => modbusDriver.forecast?.(modbusConfig({ url }, tags)).busLoad;

  // 15 characters of 11 bits at 9600 Bd take 17 ms, the pause between frames 4 ms and the unit 10 ms, of a cycle of 100
  // ms.
  expect(load("rtu:///dev/ttyUSB0")).toBeCloseTo(0.31, 2);
  expect(load("rtu:///dev/ttyUSB0?baudRate=115200")).toBeCloseTo(0.13, 2);
});
