// Devices and connections recover by themselves. Meanwhile the other units lose no reading.
import { expect, test } from "vitest";
import type { Clock } from "../../src/core/runtime.ts";
import type { Reading } from "../../src/core/source.ts";
import { systemClock } from "../../src/lib/time/clock.ts";
import { eventually } from "../support/eventually.ts";
import { modbusDevice } from "../support/modbus-device.ts";
import { keepReading } from "../support/modbus-keep-reading.ts";
import { allRead, latest, openModbusSource, readUntil } from "../support/modbus-source.ts";
import { testRuntime } from "../support/runtime.ts";
import { tcpProxy } from "../support/tcp-proxy.ts";

/** Whether every value is the one that its device holds. Each value encodes its unit and address. */
function allRight(readings: readonly Reading[], valueOf: (tag: number) => number): boolean {
  return readings.every(({ tag, quality, value, reason }) =>
    quality === "good" ? value === valueOf(tag) : value === undefined && reason !== undefined,
  );
}

test("a gateway that stops answering is closed, reached again when it answers, and other sources are not affected", async () => {
  await using gateway = await modbusDevice();
  await using neighbour = await modbusDevice();
  await using network = await tcpProxy(gateway.port);
  for (const unit of [1, 2, 3]) gateway.unit(unit).set("hr", 0, [unit]);
  neighbour.unit(1).set("hr", 0, [9]);
  const tags = [1, 2, 3].map((unit) => ({ at: "hr:0", unit }));
  await using kept = keepReading({ url: `tcp://127.0.0.1:${network.port}`, timeout: "100ms" }, tags);
  await using other = keepReading({ url: neighbour.url, timeout: "10s" }, [{ at: "hr:0" }]);
  await eventually(() => kept.count("good") >= 9);

  network.muteDevice();
  await eventually(() => kept.losses.length >= 2);
  const [atMending, besideAtMending] = [kept.count("good"), other.count("good")];
  expect(kept.losses.every((code) => code === "SOURCE_UNREACHABLE")).toBe(true);
  network.restore();
  await eventually(
    () =>
      [0, 1, 2].every((tag) => kept.readings.slice(-30).some((r) => r.tag === tag && r.quality === "good")) &&
      kept.count("good") > atMending + 9,
  );

  expect(allRight(kept.readings, (tag) => tag + 1)).toBe(true);
  expect([other.losses, other.count("bad")]).toEqual([[], 0]);
  expect(besideAtMending).toBeGreaterThan(3);
});

test("a gateway with repeatedly cut connections never gives a wrong value, and is read again afterwards", async () => {
  await using gateway = await modbusDevice();
  await using network = await tcpProxy(gateway.port);
  gateway.latencyMs = 3;
  for (const unit of [1, 2]) gateway.unit(unit).set("hr", 0, [unit]);
  await using kept = keepReading(
    { url: `tcp://127.0.0.1:${network.port}`, timeout: "100ms" },
    [1, 2].map((unit) => ({ at: "hr:0", unit })),
  );
  for (let cuts = 0; cuts < 5; cuts++) {
    const before = kept.readings.length;
    await eventually(() => kept.readings.length > before + 2);
    network.cut();
    const lost = kept.losses.length;
    await eventually(() => kept.losses.length > lost);
    network.restore();
  }
  const before = kept.count("good");
  await eventually(() => kept.count("good") > before + 4);

  expect(allRight(kept.readings, (tag) => tag + 1)).toBe(true);
});

test.each([1, 2, 4, 6, 11])(
  "a unit that answers exception %i to everything costs the others no reading, and few requests",
  async (code) => {
    await using gateway = await modbusDevice();
    gateway.unit(1).set("hr", 0, [1]);
    gateway.unit(2).exception = code;
    // Eight blocks of two registers each, so that each can be split.
    const real = systemClock();
    let waits = 0;
    const sleep: Clock["sleep"] = (ms, signal) => {
      if (ms === 200) waits++;
      return real.sleep(ms, signal);
    };
    const stormy = [...Array(16).keys()].map((i) => ({ at: `hr:${(i >> 1) * 100 + (i & 1)}`, unit: 2, every: 50 }));
    await using source = await openModbusSource(
      { url: gateway.url, timeout: "10s" },
      [{ at: "hr:0" }, ...stormy],
      testRuntime({ clock: { ...real, sleep } }),
      AbortSignal.timeout(20_000),
    );

    const readings = await readUntil(
      source,
      AbortSignal.timeout(20_000),
      (all) => allRead(17)(all) && all.filter((r) => r.tag === 0).length >= 8,
    );

    const calm = readings.filter((reading) => reading.tag === 0);
    expect(calm.every((reading) => reading.value === 1)).toBe(true);
    expect(
      latest(readings)
        .slice(1)
        .every(({ reason }) => reason?.includes(`exception ${code}`)),
    ).toBe(true);
    // At first each block and its halves; then no block, or each block once a cycle. One cycle may be under way.
    const asked = gateway.requests.filter((request) => request.unit === 2).length;
    expect(asked).toBeLessThanOrEqual((calm.length + 1) * 8 + 24);
    // The eight blocks of a busy unit share its waits: there are as many as for one block.
    const cycles = readings.filter((reading) => reading.tag === 1).length;
    expect(waits).toBeLessThanOrEqual(3 * (cycles + 1));
    if (code === 6) expect(waits).toBeGreaterThan(0);
  },
);

test("after a storm of exceptions a unit is read again as before", async () => {
  await using gateway = await modbusDevice();
  gateway.unit(1).set("hr", 0, [1, 2]);
  await using kept = keepReading({ url: gateway.url, timeout: "10s" }, [{ at: "hr:0" }, { at: "hr:1" }]);
  await eventually(() => kept.count("good") >= 4);
  for (const code of [4, 7, 0x41, 6, 8, 5]) {
    gateway.unit(1).exception = code;
    const bad = kept.count("bad");
    await eventually(() => kept.count("bad") > bad);
  }
  gateway.unit(1).exception = undefined;
  const good = kept.count("good");

  await eventually(() => kept.count("good") >= good + 4);

  expect(kept.losses).toEqual([]);
  expect(allRight(kept.readings, (tag) => tag + 1)).toBe(true);
});
