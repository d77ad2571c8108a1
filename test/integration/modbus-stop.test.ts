// Readings that are not on disk yet when the source is stopped.
import { expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { modbusDevice } from "../support/modbus-device.ts";
import { openModbusSource } from "../support/modbus-source.ts";
import { testRuntime } from "../support/runtime.ts";

test("values read while a delivery was stored are delivered when the source stops", async () => {
  await using device = await modbusDevice();
  device.unit(1).set("hr", 0, [7]);
  const timeout = AbortSignal.timeout(20_000);
  await using source = await openModbusSource({ url: device.url }, [{ at: "hr:0" }], testRuntime(), timeout);
  const stop = new AbortController();
  let readings = 0;

  for await (const delivery of source.deliveries(stop.signal)) {
    if (readings === 0) {
      await eventually(() => device.requests.length >= 4);
      stop.abort();
    }
    readings += delivery.readings.length;
  }

  expect(readings).toBeGreaterThanOrEqual(3);
});
