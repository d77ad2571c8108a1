import { expect, test } from "vitest";
import { configFaults } from "../../../../src/source/modbus/config/tag-reads.ts";
import { modbusDriver } from "../../../../src/source/modbus/driver.ts";
import { type ModbusTagText, modbusConfig } from "../../../support/modbus-source.ts";

function faults(options: Record<string, unknown>, ...tags: readonly ModbusTagText[]): readonly string[] {
  return configFaults(modbusConfig({ url: "tcp://127.0.0.1", ...options }, tags)).map(
    ({ tag, field, message }) => `${tag} ${field} ${message}`,
  );
}

test("linked tags that fit one request are valid, up to its last register", () => {
  expect(faults({}, { at: "hr:0", atomic: "a" }, { at: "hr:124", atomic: "a" })).toEqual([]);
  expect(faults({}, { at: "hr:0", atomic: "a" }, { at: "hr:200", atomic: "b" })).toEqual([]);
  expect(faults({}, { at: "hr:0", atomic: "a" }, { at: "hr:200", atomic: "a", unit: 2 })).toEqual([]);
  expect(
    faults({}, { at: "hr:0", scaleFactor: "hr:124" }, { at: "co:0", atomic: "c" }, { at: "co:1999", atomic: "c" }),
  ).toEqual([]);
});

test("linked tags that do not fit one request are errors, each with its reason", () => {
  expect(faults({}, { at: "hr:0", atomic: "a" }, { at: "hr:125", atomic: "a" })).toEqual([
    "1 atomic a reaches over 126, a request reads 125 at most",
  ]);
  expect(faults({ maxRegisters: 10 }, { at: "hr:0", atomic: "a" }, { at: "hr:9 f32", atomic: "a" })).toEqual([
    "1 atomic a reaches over 11, a request reads 10 at most",
  ]);
  expect(faults({}, { at: "hr:0", atomic: "a" }, { at: "hr:1", atomic: "a", every: 100 })).toEqual([
    "1 atomic a has tags with another every, which one request cannot read",
  ]);
  expect(faults({}, { at: "hr:5", scaleFactor: "ir:6" })).toEqual([
    "0 scaleFactor must lie in hr: as the value does, since one request reads both",
  ]);
  expect(faults({ maxRegisters: 1 }, { at: "hr:5 f32" })).toEqual([
    "0 at hr:5 f32 takes more than the 1 registers of a request",
  ]);
});

test("a bus has units 1 to 247, a connection of Modbus TCP 0 to 255", () => {
  const units = [0, 1, 247, 248].map((unit) => ({ at: "hr:0", unit }));
  expect(faults({}, ...units)).toEqual([]);
  for (const url of ["rtu:///dev/ttyUSB0", "rtu+tcp://127.0.0.1:4001", "ascii+tcp://127.0.0.1:4001"])
    expect(faults({ url }, ...units)).toEqual([
      "0 unit must be from 1 to 247 on a bus, is 0",
      "3 unit must be from 1 to 247 on a bus, is 248",
    ]);
});

test("the same connection has one name, however its address is written", () => {
  const name = (url: string) => modbusDriver.connection?.(modbusConfig({ url }, []).options);
  expect(name("modbus://PLC.local")).toBe(name("tcp://plc.local:502"));
  expect(name("tcp://plc.local:503")).not.toBe(name("tcp://plc.local:502"));
  expect(name("rtu:///dev/ttyS1?baudRate=19200")).toBe(name("ascii:///dev/ttyS1"));
});
