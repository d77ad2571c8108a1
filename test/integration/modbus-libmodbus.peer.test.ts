// The test vectors for every implementation, from a second third-party server, in C.
import { expect, test } from "vitest";
import type { BrowsedNode } from "../../src/core/commissioning.ts";
import { modbusDriver } from "../../src/source/modbus/driver.ts";
import { libmodbus } from "../support/libmodbus.ts";
import { allRead, browseModbusDevice, latest, openModbusSource, readUntil } from "../support/modbus-source.ts";
import { modbusVectors, vectorTags } from "../support/modbus-vectors.ts";
import { testRuntime } from "../support/runtime.ts";

const signal = () => AbortSignal.timeout(30_000);

test.each(["tcp", "rtu"] as const)("every vector arrives over %s", async (transport) => {
  await using server = await libmodbus(
    transport,
    modbusVectors.flatMap((vector) => vector.words),
  );
  const tags = [...vectorTags, { at: "co:1" }, { at: "di:1" }, { at: "hr:250" }];
  await using source = await openModbusSource({ url: server.url }, tags, testRuntime(), signal());

  const readings = latest(await readUntil(source, signal(), allRead(tags.length)));

  expect(readings.map((reading) => reading.value)).toEqual([
    ...modbusVectors.map(({ value }) => value),
    true,
    false,
    undefined,
  ]);
  expect(readings.at(-1)?.reason).toContain("exception 2: illegal data address");
});

test.each(["tcp", "rtu"] as const)(
  "a device that knows function 17 alone says what it is over %s",
  async (transport) => {
    await using server = await libmodbus(transport, [7]);
    const url = `${server.url}${transport === "tcp" ? "?" : "&"}unit=1&to=1`;

    const [answers, identity] = await browseModbusDevice(url, signal());

    expect(answers?.name).toBe("unit 1 answers");
    expect(identity).toMatchObject({
      name: "server id",
      value: expect.stringMatching(/^B4 FF LMB3\.\d/),
      tag: { unit: 1 },
    });
  },
);

test.each(["tcp", "rtu"] as const)(
  "a device that serves one client at a time is searched while it is polled over %s",
  async (transport) => {
    await using server = await libmodbus(transport, [231, 50]);
    const options = { url: server.url, timeout: "10s" };
    await using source = await openModbusSource(options, [{ at: "hr:0" }], testRuntime(), signal());
    const found = Promise.withResolvers<void>();
    let isFound = false;
    void found.promise.then(() => (isFound = true));
    // Polls until the search has ended, and once more.
    const reading = readUntil(source, signal(), (all) => {
      if (all.length === 1) void searched().then(found.resolve, found.reject);
      return isFound;
    });
    const searched = async () => {
      const url = `${server.url}${transport === "tcp" ? "?" : "&"}unit=1&to=10`;
      const target = { url, options: modbusDriver.schema.parse(options), running: () => [source] };
      const search = await modbusDriver.search?.(target, testRuntime(), signal());
      const nodes: BrowsedNode[] = [];
      for await (const node of search?.nodes() ?? []) nodes.push(node);
      const second = nodes.filter(({ address }) => address === "hr:1 u16");
      expect(await search?.values(second)).toEqual([50]);
      await search?.[Symbol.asyncDispose]();
    };
    const readings = await reading;
    await found.promise;
    expect(readings.length).toBeGreaterThan(2);
    expect(new Set(readings.map(({ value, quality }) => `${value} ${quality}`))).toEqual(new Set(["231 good"]));
  },
);

test("unplugging a serial adapter ends the deliveries with SOURCE_UNREACHABLE", async () => {
  const server = await libmodbus("rtu", [7]);
  await using source = await openModbusSource(
    { url: server.url, timeout: "50ms" },
    [{ at: "hr:0" }],
    testRuntime(),
    signal(),
  );
  let pulled: PromiseLike<void> | undefined;

  const reading = readUntil(source, signal(), (all) => {
    if (all.length >= 2) pulled ??= server[Symbol.asyncDispose]();
    return false;
  });

  await expect(reading).rejects.toMatchObject({ code: "SOURCE_UNREACHABLE" });
  await pulled;
});
