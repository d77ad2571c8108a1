// The test vectors for every implementation, from a third-party server.
import { expect, test } from "vitest";
import { allRead, browseModbusDevice, latest, openModbusSource, readUntil } from "../support/modbus-source.ts";
import { bitTags, modbusVectors, vectorTables, vectorTags } from "../support/modbus-vectors.ts";
import { pymodbus } from "../support/pymodbus.ts";
import { testRuntime } from "../support/runtime.ts";

const values = [...modbusVectors.map(({ value }) => value), ...bitTags.map(({ value }) => value), 17];
const signal = () => AbortSignal.timeout(30_000);

test.each([
  ["tcp", "tcp", "socket"],
  ["udp", "udp", "socket"],
  ["rtu+tcp", "tcp", "rtu"],
  ["ascii+tcp", "tcp", "ascii"],
  ["rtu", "serial", "rtu"],
  ["ascii", "serial", "ascii"],
] as const)("every vector arrives over %s", async (scheme, transport, framer) => {
  await using server = await pymodbus({ transport, framer, units: { 1: vectorTables, 17: { hr: { 0: [17] } } } });
  const place = transport === "serial" ? `${server.path}?baudRate=19200` : `127.0.0.1:${server.port}`;
  await using source = await openModbusSource(
    { url: `${scheme}://${place}`, maxGap: 0 },
    [...vectorTags, ...bitTags.map(({ at }) => ({ at })), { at: "hr:0", unit: 17 }, { at: "hr:1000", unit: 17 }],
    testRuntime(),
    signal(),
  );

  const readings = latest(await readUntil(source, signal(), allRead(values.length + 1)));

  expect(readings.slice(0, -1).map((reading) => reading.value)).toEqual(values);
  expect(readings.at(-1)?.reason).toContain("exception 2: illegal data address");
});

test.each([
  ["tcp", "tcp", "socket"],
  ["rtu+tcp", "tcp", "rtu"],
  ["rtu", "serial", "rtu"],
  ["ascii", "serial", "ascii"],
] as const)("a device says who it is over %s", async (scheme, transport, framer) => {
  const identity = { 0: "Acme", 1: "PM-53", 2: "V2.6", 3: "http://acme.example", 4: "Meter" };
  await using server = await pymodbus({ transport, framer, units: { 1: { hr: { 0: [1] } } }, identity });
  const place = transport === "serial" ? `${server.path}?baudRate=19200&` : `127.0.0.1:${server.port}?`;

  const nodes = await browseModbusDevice(`${scheme}://${place}unit=1&to=1`, signal());

  expect(nodes.filter(({ tag }) => tag["at"] === undefined).map(({ name, value }) => [name, value])).toEqual([
    ["unit 1 answers", undefined],
    ["VendorName", "Acme"],
    ["ProductCode", "PM-53"],
    ["MajorMinorRevision", "V2.6"],
    ["VendorUrl", "http://acme.example"],
    ["ProductName", "Meter"],
    // Its ASCII framer rejects requests as short as the one for function 17.
    ...(framer === "ascii" ? [] : [["server id", "Acme-PM-53-V2.6 FF"]]),
  ]);
});

test("on a line a missing unit costs the others nothing, and late answers are not mixed up", async () => {
  await using server = await pymodbus({
    transport: "serial",
    framer: "rtu",
    units: { 1: vectorTables, 2: vectorTables },
  });
  const tags = [1, 2, 3].flatMap((unit) => vectorTags.map((tag) => ({ ...tag, unit, every: 200 })));
  await using source = await openModbusSource(
    { url: `rtu://${server.path}`, timeout: "100ms" },
    tags,
    testRuntime(),
    signal(),
  );

  const readings = await readUntil(
    source,
    signal(),
    (all) => all.filter((r) => r.quality === "good").length >= 10 * vectorTags.length,
  );

  for (const { tag, value, quality } of readings)
    if (quality === "good") expect(value).toBe(modbusVectors[tag % vectorTags.length]?.value);
  expect(
    new Set(readings.filter((r) => r.quality === "bad").map((r) => Math.floor(r.tag / vectorTags.length))),
  ).toEqual(new Set([2]));
});
