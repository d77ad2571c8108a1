// The address of a source that the status shows.
import { expect, test } from "vitest";
import { sourceAddress } from "../../../src/config/format/config.ts";
import { head, load, withPassword } from "../../support/config.ts";

test("the address of a source is shown as configured, whatever its driver makes of it", async () => {
  const { sources } = await load(
    `${head}sources:
  bus: { type: modbus, url: "tcp://10.0.0.5:502", tags: [{ input: a, at: "hr:0", unit: 1 }] }
  line: { type: modbus, url: "rtu:///dev/ttyUSB0?baudRate=19200", tags: [{ input: b, at: "hr:0", unit: 1 }] }
  hall: { type: mqtt, url: "mqtt://10.0.0.6:1883", tags: [{ input: c, topic: c }] }
  plc: { type: opcua, url: "opc.tcp://10.0.0.7:4840", tags: [{ input: d, node: "ns=1;s=d" }] }
  demo: { type: simulator, tags: [{ input: e }] }
`,
    withPassword,
  );

  expect(sources.map(({ options }) => sourceAddress(options))).toEqual([
    "tcp://10.0.0.5:502",
    "rtu:///dev/ttyUSB0?baudRate=19200",
    "mqtt://10.0.0.6:1883",
    "opc.tcp://10.0.0.7:4840",
    undefined,
  ]);
});
