import fc from "fast-check";
import { expect, test } from "vitest";
import { encodeWords, Meter, meter, wordCount } from "../../../src/demo/modbus-device.ts";
import { runs } from "../../support/property.ts";

test("numbers are big-endian within words, and the word order is the requested one", () => {
  expect(encodeWords("u16", "abcd", 0x1234)).toEqual([0x1234]);
  expect(encodeWords("i16", "abcd", -2)).toEqual([0xfffe]);
  expect(encodeWords("u32", "abcd", 0x12345678)).toEqual([0x1234, 0x5678]);
  expect(encodeWords("u32", "cdab", 0x12345678)).toEqual([0x5678, 0x1234]);
  expect(encodeWords("i32", "cdab", -2)).toEqual([0xfffe, 0xffff]);
  expect(encodeWords("f32", "abcd", 1.5)).toEqual([0x3fc0, 0]);
  expect(encodeWords("u64", "abcd", 5e9)).toEqual([0, 1, 0x2a05, 0xf200]);
  expect(encodeWords("f64", "cdab", 1)).toEqual([0, 0, 0, 0x3ff0]);
});

test("registers of a meter are adjacent and do not overlap", () => {
  for (const table of ["hr", "ir"] as const) {
    const taken = meter
      .filter((register) => register.table === table)
      .flatMap(({ address, type }) => Array.from({ length: wordCount(type) }, (_, i) => address + i));
    expect(taken).toEqual([...taken.keys()]);
  }
});

test("each reply has the next value of every tag wholly within it, and the current words of the others", () => {
  const device = new Meter();
  const values = (address: number, count: number) =>
    device.read("hr", address, count)?.values.map(({ register, value }) => `${register.name} ${value}`);
  expect(values(0, 1)).toEqual(["voltage 200"]);
  expect(values(0, 2)).toEqual(["voltage 200.5", "temperature -20"]);
  // Half of the energy counter, which is not a value.
  expect(values(1, 2)).toEqual(["temperature -19.5"]);
  expect(device.read("hr", 3, 1)?.words).toEqual([70_000 & 0xffff]);
  expect(values(2, 2)).toEqual(["energy 70000"]);
});

test("a register that the meter does not have is refused", () => {
  const device = new Meter();
  expect(device.read("hr", 0, 8)).toBeDefined();
  expect(device.read("hr", 0, 9)).toBeUndefined();
  expect(device.read("hr", 0, 0)).toBeUndefined();
  expect(device.read("ir", 8, 1)).toBeUndefined();
});

test("whatever blocks are read, no value of a tag is served twice", () => {
  const block = fc.record({ address: fc.nat(7), count: fc.integer({ min: 1, max: 8 }) });
  fc.assert(
    fc.property(fc.array(block, { maxLength: 40 }), (blocks) => {
      const device = new Meter();
      const seen = new Set<string>();
      for (const { address, count } of blocks)
        for (const { register, value } of device.read("hr", address, count)?.values ?? []) {
          expect(seen.has(`${register.name} ${value}`)).toBe(false);
          seen.add(`${register.name} ${value}`);
        }
    }),
    runs(100),
  );
});
