// Commissioning aids: browsing, SunSpec and probing, against scripted devices.
import { expect, test } from "vitest";
import { probeModbus } from "../../src/source/modbus/discovery/probe.ts";
import { modbusDriver } from "../../src/source/modbus/driver.ts";
import type { ModbusDevice } from "../support/modbus-device.ts";
import { modbusDevice } from "../support/modbus-device.ts";
import { allRead, browseModbusDevice, latest, openModbusSource, readUntil } from "../support/modbus-source.ts";
import { testRuntime } from "../support/runtime.ts";

const signal = () => AbortSignal.timeout(25_000);

const browse = (url: string) => browseModbusDevice(url, signal());

/** An inverter with a SunSpec map at 40000: the common model, the three-phase inverter and the end marker. */
function sunspecInverter(device: ModbusDevice, unit = 1): void {
  device.unit(unit).set("hr", 40_000, [0x5375, 0x6e53, 1, 66]);
  device.unit(unit).set("hr", 40_070, [103, 50]);
  device.unit(unit).set("hr", 40_072, [312, 104, 104, 104, 0xfffe]);
  device.unit(unit).set("hr", 40_080, [2301, 2298, 2305, 0xffff, 7170, 0]);
  device.unit(unit).set("hr", 40_094, [0x0001, 0x86a0, 1]);
  device.unit(unit).set("hr", 40_097, [0xffff]);
  device.unit(unit).set("hr", 40_122, [0xffff, 0]);
}

test("readable ranges are found with their values, without the holes between them", async () => {
  await using device = await modbusDevice();
  device.unit(1).set("hr", 3, [42]);
  device.unit(1).refuse("hr", 16, 35, 2);
  device.unit(1).refuse("hr", 48, 65_535, 2);
  device.unit(1).refuse("ir", 0, 65_535, 1);
  device.unit(1).refuse("co", 0, 65_535, 2);
  device.unit(1).set("di", 7, [1]);
  device.unit(1).refuse("di", 30, 65_535, 2);

  const nodes = await browse(`${device.url}?unit=1&to=60`);

  const titles = nodes.filter((node) => node.depth === 0).map((node) => node.name);
  expect(titles).toHaveLength(5);
  expect(titles[0]).toBe("unit 1 answers");
  expect(titles[1]).toMatch(/^hr:0 to hr:15, /);
  expect(titles[2]).toMatch(/^hr:36 to hr:47, /);
  expect(titles[3]).toMatch(/^di:0 to di:29, /);
  expect(titles[4]).toMatch(/^left out: \d+ addresses that hold 0; ir from \d+ on, where nothing is answered$/);
  expect(nodes.filter((node) => node.depth === 1)).toEqual([
    { address: "hr:3 u16", name: "hr:3 (40004)", depth: 1, value: 42, signal: {}, tag: { unit: 1, at: "hr:3 u16" } },
    { address: "di:7", name: "di:7 (10008)", depth: 1, value: true, signal: {}, tag: { unit: 1, at: "di:7" } },
  ]);
  expect(new Set(device.requests.map((request) => request.function))).toEqual(new Set([1, 2, 3, 4, 17, 43]));
});

test("the identification of a device is read over several answers, and any bytes become text", async () => {
  await using device = await modbusDevice();
  const unit = device.unit(1);
  unit.identity = { 0: "Acme", 1: "PM-53", 2: "V2.6", 5: "Mètre\u0000\n 3φ", 128: "hall 1", 129: "" };
  unit.objectsAtOnce = 2;
  unit.serverId = Uint8Array.from([0x01, 0xff, ...Buffer.from("PM5340 "), 0x00, 0x41]);

  const nodes = await browse(`${device.url}?unit=1&to=0`);

  expect(nodes).toEqual(
    [
      ["unit 1 answers"],
      ["VendorName", "Acme"],
      ["ProductCode", "PM-53"],
      ["MajorMinorRevision", "V2.6"],
      ["ModelName", "Mètre 3φ"],
      ["object 128", "hall 1"],
      ["server id", "01 FF PM5340 00 41"],
    ].map(([name, value]) => ({
      address: "unit 1",
      name,
      depth: value === undefined ? 0 : 1,
      ...(value === undefined ? {} : { value }),
      signal: {},
      tag: { unit: 1 },
    })),
  );
});

test("a device that closes the connection at unsupported requests can still be browsed", async () => {
  await using device = await modbusDevice();
  const unit = device.unit(1);
  unit.set("hr", 3, [42]);
  unit.endsOnUnknown = true;
  const addresses = async () => (await browse(`${device.url}?unit=1&from=0&to=50`)).map(({ address }) => address);

  expect(await addresses()).toEqual(["unit 1", "hr:0", "hr:3 u16", "ir:0", "co:0", "di:0", "unit 1"]);
});

test("units that answer are found, also with an exception only", async () => {
  await using device = await modbusDevice();
  for (const unit of [1, 3]) device.unit(unit).exception = 2;
  const found: string[] = [];
  const stop = new AbortController();
  try {
    for await (const node of modbusDriver.browse?.({ url: `${device.url}?to=10` }, testRuntime(), stop.signal) ?? []) {
      found.push(node.address);
      if (found.length === 2) stop.abort(new Error("enough"));
    }
  } catch (error) {
    expect(error).toBe(stop.signal.reason);
  }
  expect(found).toEqual(["unit 1", "unit 3"]);
});

test.each([
  [4, "hr"],
  [2, "ir"],
] as const)(
  "units behind a gateway that answers exception %i for absent ones are found, whatever they lack",
  async (code, table) => {
    await using device = await modbusDevice();
    for (let unit = 0; unit <= 255; unit++) device.unit(unit).exception = code;
    for (const unit of [1, 3]) {
      device.unit(unit).exception = undefined;
      for (const each of ["hr", "ir", "co"] as const) device.unit(unit).refuse(each, 0, 4, code);
      // At the first address of each table except di, the unit returns the gateway's exception for absent units.
      device.unit(unit).refuse("co", 5, 65_535, 1);
      device.unit(unit).refuse("di", 0, 65_535, 1);
      device.unit(unit).set(table, 7, [42]);
    }
    const found: string[] = [];
    const stop = new AbortController();
    try {
      for await (const node of modbusDriver.browse?.({ url: `${device.url}?to=10` }, testRuntime(), stop.signal) ??
        []) {
        found.push(`${node.name} ${JSON.stringify(node.tag["unit"])}`);
        if (node.name === "unit 3 answers") stop.abort(new Error("enough"));
      }
    } catch (error) {
      expect(error).toBe(stop.signal.reason);
    }

    expect(found.filter((name) => /answers/.test(name))).toEqual(["unit 1 answers 1", "unit 3 answers 3"]);
    expect(found).toContain(`${table}:7 (${table === "hr" ? "4" : "3"}0008) 1`);
  },
);

test("two registers that are probably a float are suggested as one, with their integer values", async () => {
  await using device = await modbusDevice();
  device.unit(1).set("hr", 2, [2301, 0x4365, 0xcf5c]);
  for (const table of ["ir", "co", "di"] as const) device.unit(1).refuse(table, 0, 65_535, 2);

  const nodes = await browse(`${device.url}?unit=1&to=10`);

  expect(nodes.filter(({ depth }) => depth === 1)).toMatchObject([
    { name: "hr:2 (40003)", value: 2301, tag: { unit: 1, at: "hr:2 u16" } },
    {
      name: "hr:3 (40004)",
      value: 229.81,
      type: "f32, as u16: 17253 53084",
      tag: { unit: 1, at: "hr:3 f32" },
    },
  ]);
});

test("a value that changed since it was read off the display is found, at the given address first", async () => {
  await using device = await modbusDevice();
  device.unit(1).set("hr", 0, [2292, 2298]);
  const target = { url: device.url, unit: 1, at: "hr:0", expect: "229.8" };

  const [first, second] = await probeModbus(target, testRuntime(), signal());

  expect(first).toEqual({ at: "hr:0 u16", value: 2292, exponent: -1, matches: false, near: true });
  expect(second).toMatchObject({ at: "hr:0 i16" });
});

test("wrong arguments and a silent unit are reported", async () => {
  await using device = await modbusDevice();
  device.unit(9).silent = true;
  device.unit(10).exception = 11;
  const refused = (query: string) => browse(`${device.url}?${query}`);
  await expect(refused("unit=300")).rejects.toMatchObject({ code: "CONFIG_INVALID", message: /from 0 to 255/ });
  await expect(refused("unit=1&from=9&to=5")).rejects.toMatchObject({ message: /to in .* from 9 to 65536/ });
  await expect(refused("unit=")).rejects.toMatchObject({ code: "CONFIG_INVALID" });
  await expect(refused("unit=9")).rejects.toMatchObject({
    code: "SOURCE_UNREACHABLE",
    message: "unit 9 did not answer within 1000 ms",
  });
  await expect(refused("unit=10")).rejects.toMatchObject({ message: /exception 11/ });
});

test("a SunSpec map becomes tags, and those tags read the right values", async () => {
  await using device = await modbusDevice();
  sunspecInverter(device);

  const nodes = await browse(`${device.url}?unit=1&to=0`);
  const titles = nodes.filter((node) => node.name.startsWith("SunSpec")).map((node) => node.name);
  expect(titles).toEqual(["SunSpec 1, 66 registers", "SunSpec 103: three-phase inverter, 50 registers"]);
  const points = nodes.filter((node) => node.depth === 1);
  const wanted = ["A", "PhVphA", "W", "WH", "DCA"];
  const tags = wanted.map((name) => ({
    at: "",
    ...points.find((node) => node.name === name)?.tag,
  }));
  expect(tags[1]).toEqual({ unit: 1, at: "hr:40080 u16", scaleFactor: "hr:40083", nullValues: "sunspec" });
  expect(points.find((node) => node.name === "W")?.signal).toEqual({ name: "W", engUnit: "W" });

  await using source = await openModbusSource({ url: device.url }, tags, testRuntime(), signal());
  const readings = latest(await readUntil(source, signal(), allRead(tags.length)));

  expect(readings.map((reading) => reading.value)).toEqual([3.12, 230.1, 7170, 1_000_000, undefined]);
  expect(readings[4]?.reason).toContain("the device has no value");
});

test("a value read off the display is found with type, word order, neighbour and scale", async () => {
  await using device = await modbusDevice();
  device.unit(5).set("hr", 99, [2314, 0x2065, 0x47f1]);
  device.unit(5).refuse("hr", 103, 65_535, 2);
  device.unit(5).refuse("ir", 0, 100, 2);
  device.unit(5).set("ir", 101, [777]);
  const probe = (expected?: string) =>
    probeModbus(
      { url: device.url, unit: 5, at: "hr:100", ...(expected === undefined ? {} : { expect: expected }) },
      testRuntime(),
      signal(),
    );

  expect((await probe("231.4"))[0]).toMatchObject({ at: "hr:99 u16", value: 2314, exponent: -1, matches: true });
  expect((await probe("123456.8"))[0]).toMatchObject({ at: "hr:100 f32 cdab", value: 123456.79, matches: true });
  expect((await probe("77.7"))[0]).toMatchObject({ at: "ir:101 u16", value: 777, exponent: -1, matches: true });
  const all = await probe();
  expect(all[0]).toEqual({ at: "hr:100 u16", value: 0x2065, exponent: 0, matches: false, near: false });
  expect(all.length).toBeGreaterThan(40);
});

test("probing an address that the device does not have is reported", async () => {
  await using device = await modbusDevice();
  device.unit(1).refuse("hr", 0, 65_535, 2);
  await expect(probeModbus({ url: device.url, unit: 1, at: "hr:7" }, testRuntime(), signal())).rejects.toMatchObject({
    message: expect.stringMatching("exception 2"),
    hint: "tagferry browse shows which addresses answer",
  });
  await expect(probeModbus({ url: device.url, unit: 1, at: "7" }, testRuntime(), signal())).rejects.toMatchObject({
    code: "CONFIG_INVALID",
  });
});
