// The vectors that every implementation has to agree on, from a server that is not ours.
import { expect, test } from "vitest";
import { allRead, latest, openModbusSource, readUntil } from "../support/modbus-source.ts";
import { bitTags, modbusVectors, vectorTables, vectorTags } from "../support/modbus-vectors.ts";
import { pymodbus } from "../support/pymodbus.ts";
import { testRuntime } from "../support/runtime.ts";

const values = [...modbusVectors.map(({ value }) => value), ...bitTags.map(({ value }) => value), 17];
const signal = () => AbortSignal.timeout(30_000);

test.each([["tcp", "tcp", "socket"]] as const)("every vector arrives over %s", async (scheme, transport, framer) => {
  await using server = await pymodbus({ transport, framer, units: { 1: vectorTables, 17: { hr: { 0: [17] } } } });
  await using source = await openModbusSource(
    { url: `${scheme}://127.0.0.1:${server.port}`, maxGap: 0 },
    [...vectorTags, ...bitTags.map(({ at }) => ({ at })), { at: "hr:0", unit: 17 }, { at: "hr:1000", unit: 17 }],
    testRuntime(),
    signal(),
  );

  const readings = latest(await readUntil(source, signal(), allRead(values.length + 1)));

  expect(readings.slice(0, -1).map((reading) => reading.value)).toEqual(values);
  expect(readings.at(-1)?.reason).toContain("exception 2: illegal data address");
});
