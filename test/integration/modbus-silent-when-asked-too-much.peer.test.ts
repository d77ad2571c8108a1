// Devices that do not answer where others answer with an exception. The driver stops sending such requests.
import { expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { modbusDevice } from "../support/modbus-device.ts";
import { keepReading } from "../support/modbus-keep-reading.ts";
import { allRead, latest, openModbusSource, readUntil } from "../support/modbus-source.ts";
import { testRuntime } from "../support/runtime.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const timeout = "150ms";

function isAllGood(tags: number, readings: Parameters<typeof latest>[0]): boolean {
  const newest = latest(readings);
  return newest.length === tags && newest.every((reading) => reading?.quality === "good");
}

test("a device silent at requests for more than 20 registers gives all 60 configured ones, and no other is read", async () => {
  await using device = await modbusDevice();
  device.unit(1).silentAbove = 20;
  const values = [...Array(60).keys()].map((i) => 100 + i);
  device.unit(1).set("hr", 0, values);
  await using kept = keepReading(
    { url: device.url, timeout },
    values.map((_, i) => ({ at: `hr:${i}` })),
  );

  await eventually(() => isAllGood(60, kept.readings));

  expect(latest(kept.readings).map(({ value }) => value)).toEqual(values);
  // The source keeps the connection on which it sent the long requests.
  expect(kept.losses).toEqual([]);
});

test("a device silent at every request across a hole gives the 19 tags on both sides of it", async () => {
  await using device = await modbusDevice();
  device.unit(1).ignore("hr", 9, 9);
  const addresses = [...Array(20).keys()].filter((address) => address !== 9);
  for (const address of addresses) device.unit(1).set("hr", address, [address]);
  await using kept = keepReading(
    { url: device.url, timeout },
    addresses.map((address) => ({ at: `hr:${address}` })),
  );

  await eventually(() => isAllGood(19, kept.readings));

  expect(latest(kept.readings).map(({ value }) => value)).toEqual(addresses);
  expect(kept.losses).toEqual([]);
});

test("a device that closes the connection at requests for more than 20 registers, or across a hole, gives all it has", async () => {
  await using device = await modbusDevice();
  const unit = device.unit(1);
  unit.closesInstead = true;
  unit.silentAbove = 20;
  unit.ignore("hr", 9, 9);
  const addresses = [...Array(60).keys()].filter((address) => address !== 9);
  for (const address of addresses) unit.set("hr", address, [address]);
  await using kept = keepReading(
    { url: device.url, timeout },
    addresses.map((address) => ({ at: `hr:${address}` })),
  );

  await eventually(() => isAllGood(addresses.length, kept.readings));

  expect(latest(kept.readings).map(({ value }) => value)).toEqual(addresses);
  expect(kept.losses).toEqual([]);
});

test("a tag at which the device is silent, even the first, does not affect the others permanently", async () => {
  await using device = await modbusDevice();
  device.unit(1).ignore("hr", 0, 0);
  device.unit(1).set("hr", 1, [1, 2, 3]);
  await using kept = keepReading(
    { url: device.url, timeout },
    [0, 1, 2, 3].map((address) => ({ at: `hr:${address}` })),
  );

  await eventually(() => latest(kept.readings).filter((reading) => reading?.quality === "good").length === 3);

  expect(latest(kept.readings).map((reading) => reading?.value)).toEqual([undefined, 1, 2, 3]);
});

test("limits learned of such a device outlast the connection: on the next one every tag is read in the first cycle", async () => {
  await using device = await modbusDevice();
  using folder = temporaryFolder();
  device.unit(1).silentAbove = 20;
  const tags = [...Array(60).keys()].map((i) => ({ at: `hr:${i}` }));
  const read = async (enough: Parameters<typeof readUntil>[2]) => {
    const signal = AbortSignal.timeout(25_000);
    await using source = await openModbusSource({ url: device.url, timeout }, tags, testRuntime(), signal, folder.path);
    return await readUntil(source, signal, enough);
  };
  await read((all) => isAllGood(60, all));
  const before = device.requests.length;

  const readings = await read(allRead(60));

  expect(readings.slice(0, 60).every(({ quality }) => quality === "good")).toBe(true);
  expect(device.requests.slice(before).every(({ count }) => count <= 20)).toBe(true);
});
