import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { scaled } from "../../../../src/lib/values/decimal-text.ts";
import {
  decodeBit,
  decodeRegisters,
  type Order,
  orders,
  type RegisterFormat,
  registersOf,
  type ValueType,
} from "../../../../src/source/modbus/config/registers.ts";
import { runs } from "../../../support/property.ts";

const bytesOf = (text: string) => Uint8Array.from(Buffer.from(text.replaceAll(" ", ""), "hex"));
const decode = (text: string, type: ValueType, extra: Partial<RegisterFormat> = {}) => {
  const decoded = decodeRegisters(bytesOf(text), 0, { type, order: "abcd", ...extra });
  return decoded.ok ? decoded.value : decoded.reason;
};

/** The bytes that a device of this word order sends where an `abcd` device sends `bytes`. */
function inOrder(bytes: Uint8Array, order: Order): Uint8Array {
  const words = Array.from({ length: bytes.length / 2 }, (_, i) => [...bytes.subarray(i * 2, i * 2 + 2)]);
  const swapped = order === "badc" || order === "dcba" ? words.map((word) => word.toReversed()) : words;
  return Uint8Array.from((order === "cdab" || order === "dcba" ? swapped.toReversed() : swapped).flat());
}

describe("the common vectors of all implementations are decoded", () => {
  test.each([
    ["47 F1 20 65", "f32", "abcd", 123456.79],
    ["20 65 47 F1", "f32", "cdab", 123456.79],
    ["F1 47 65 20", "f32", "badc", 123456.79],
    ["65 20 F1 47", "f32", "dcba", 123456.79],
    ["F8 A4 32 EB", "i32", "abcd", -123456789],
    ["32 EB F8 A4", "i32", "cdab", -123456789],
    ["A4 F8 EB 32", "i32", "badc", -123456789],
    ["EB 32 A4 F8", "i32", "dcba", -123456789],
    ["EE DD EF 0B 82 16 7E EB", "i64", "abcd", -1234567890123456789n],
    ["7E EB 82 16 EF 0B EE DD", "i64", "cdab", -1234567890123456789n],
    ["EB 7E 16 82 0B EF DD EE", "i64", "dcba", -1234567890123456789n],
    ["C0 71 12 66 66 66 66 66", "f64", "abcd", -273.15],
    ["66 66 66 66 12 66 C0 71", "f64", "cdab", -273.15],
    ["4D 60", "f16", "abcd", 21.5],
    ["60 4D", "f16", "dcba", 21.5],
    ["12 34", "u16", "abcd", 0x1234],
    ["34 12", "u16", "badc", 0x1234],
    ["12 34", "u16", "cdab", 0x1234],
  ] as const)("%s as %s %s is %s", (bytes, type, order, value) => {
    expect(decode(bytes, type, { order })).toBe(value);
  });
});

test.each([
  ["80 01", "u8", 1],
  ["80 01", "u8h", 128],
  ["01 80", "i8", -128],
  ["FF 01", "i8h", -1],
  ["FF FF", "u16", 65535],
  ["FF FF", "i16", -1],
  ["00 FF FF FF", "u24", 16777215],
  ["00 FF FF FF", "i24", -1],
  ["FF FF FF FF", "u32", 4294967295],
  ["FF FF FF FF FF FF", "u48", 281474976710655],
  ["FF FF FF FF FF FF", "i48", -1],
  ["00 00 00 00 00 00 00 05", "u64", 5],
  ["00 20 00 00 00 00 00 00", "u64", 9007199254740992n],
  ["00 1F FF FF FF FF FF FF", "u64", 9007199254740991],
  ["12 34", "bcd16", 1234],
  ["12 34 56 78", "bcd32", 12345678],
  ["99 99 99 99 99 99 99 99", "bcd64", 9999999999999999n],
  ["80 05", "sm16", -5],
  ["80 00", "sm16", 0],
  ["80 00 00 07", "sm32", -7],
  ["11 D7 00 7B 00 00", "m10k3", 1234567],
  ["11 D7 00 7B 00 00 00 00", "m10k4", 1234567],
  ["FF FF FF FF", "m10k2", -10001],
  ["80 00 00 00", "f32", 0],
] as const)("%s as %s is %s", (bytes, type, value) => {
  expect(decode(bytes, type)).toBe(value);
});

test("registers without a valid value of the type are reported", () => {
  expect(decode("1A 34", "bcd16")).toBe("the registers hold no bcd16: 0x1A34");
  expect(decode("27 10 00 00", "m10k2")).toBe("the registers hold no m10k2: 0x27100000");
  expect(decode("7F C0 00 00", "f32")).toBe("the device gave NaN");
  expect(decode("FF 80 00 00", "f32")).toBe("the device gave -Infinity");
});

test("null values match the raw register and the decoded value, and no other", () => {
  const none = "the device has no value: it gave 0x8000";
  expect(decode("80 00", "i16", { nullValues: [0x8000] })).toBe(none);
  expect(decode("80 00", "i16", { nullValues: [-32768] })).toBe(none);
  expect(decode("80 01", "i16", { nullValues: [0x8000] })).toBe(-32767);
  expect(decode("C6 1C 3C 00", "f32", { nullValues: [-9999] })).toContain("no value");
  expect(decode("FF FF FF FF FF FF FF FF", "u64", { nullValues: [2 ** 64] })).toContain("no value");
  expect(decode("FF FF FF FF FF FF FF 00", "i64", { nullValues: [2 ** 64] })).toBe(-256);
});

test("the SunSpec preset has the not-implemented value of each type", () => {
  const sunspec = { nullValues: "sunspec" } as const;
  for (const [bytes, type] of [
    ["80 00", "i16"],
    ["FF FF", "u16"],
    ["80 00 00 00", "i32"],
    ["FF FF FF FF", "u32"],
    ["80 00 00 00 00 00 00 00", "i64"],
    ["FF FF FF FF FF FF FF FF", "u64"],
  ] as const)
    expect(decode(bytes, type, sunspec)).toContain("no value");
  expect(decode("FF FF", "i16", sunspec)).toBe(-1);
  expect(decode("80 00", "u16", sunspec)).toBe(32768);
});

test("any number is decoded from its registers in every order, at every position", () => {
  const encodings: readonly [ValueType, fc.Arbitrary<number | bigint>, (view: DataView, value: never) => void][] = [
    ["u16", fc.integer({ min: 0, max: 0xff_ff }), (view, value) => view.setUint16(0, value)],
    ["i16", fc.integer({ min: -0x80_00, max: 0x7f_ff }), (view, value) => view.setInt16(0, value)],
    ["u32", fc.integer({ min: 0, max: 0xff_ff_ff_ff }), (view, value) => view.setUint32(0, value)],
    ["i32", fc.integer(), (view, value) => view.setInt32(0, value)],
    ["u64", fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (view, value) => view.setBigUint64(0, value)],
    ["i64", fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (view, value) => view.setBigInt64(0, value)],
    ["f64", fc.double({ noNaN: true, noDefaultInfinity: true }), (view, value) => view.setFloat64(0, value)],
  ];
  for (const [type, values, write] of encodings) {
    fc.assert(
      fc.property(values, fc.constantFrom(...orders), fc.nat(3), (value, order, index) => {
        const view = new DataView(new ArrayBuffer(registersOf[type] * 2));
        write(view, value as never);
        const bytes = Uint8Array.from([...Array(index * 2).fill(0xaa), ...inOrder(new Uint8Array(view.buffer), order)]);
        const decoded = decodeRegisters(bytes, index, { type, order });
        expect(decoded.ok && decoded.value).toEqual(
          typeof value === "bigint" && value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER
            ? Number(value)
            : value === 0
              ? 0
              : value,
        );
      }),
      runs(300),
    );
  }
});

test("no bytes make decoding throw, and every result is finite", () => {
  const types = Object.keys(registersOf) as ValueType[];
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 8, maxLength: 8 }),
      fc.constantFrom(...types),
      fc.constantFrom(...orders),
      fc.constantFrom(undefined, "sunspec" as const, [0, 0x80_00]),
      (bytes, type, order, nullValues) => {
        const decoded = decodeRegisters(bytes, 0, {
          type,
          order,
          bit: 3,
          toBit: 40,
          ...(nullValues ? { nullValues } : {}),
        });
        if (decoded.ok) expect(typeof decoded.value === "number" ? Number.isFinite(decoded.value) : true).toBe(true);
        else expect(decoded.reason).not.toBe("");
      },
    ),
    runs(3_000),
  );
});

test("each bit of a register is found, also with swapped bytes", () => {
  for (let bit = 0; bit < 16; bit++) {
    const word = (1 << bit).toString(16).padStart(4, "0");
    expect(decode(word, "bit", { bit })).toBe(true);
    expect(decode(word, "bit", { bit: (bit + 1) % 16 })).toBe(false);
    expect(decode(word.slice(2) + word.slice(0, 2), "bit", { bit, order: "badc" })).toBe(true);
  }
});

test("a bit field is a separate number over as many registers as it needs", () => {
  expect(decode("AB CD", "bits", { bit: 4, toBit: 11 })).toBe(0xbc);
  expect(decode("AB CD 12 34", "bits", { bit: 12, toBit: 19 })).toBe(0xd1);
  expect(decode("12 34 AB CD", "bits", { bit: 12, toBit: 19, order: "cdab" })).toBe(0xd1);
  expect(decode("FF FF FF FF FF FF FF FF", "bits", { bit: 0, toBit: 63 })).toBe(2n ** 64n - 1n);
});

test("a power of ten from a register leaves no binary rounding error", () => {
  expect(scaled(2301, -1)).toBe(230.1);
  expect(scaled(3, -1)).toBe(0.3);
  expect(scaled(7, 2)).toBe(700);
  expect(scaled(12345678901234567890n, 1)).toBe(123456789012345678900n);
  fc.assert(
    fc.property(
      fc.oneof(fc.maxSafeInteger(), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n })),
      fc.integer({ min: -10, max: 10 }),
      (value, exponent) => {
        expect(Number(scaled(value, exponent)) + 0).toBe(Number(`${value}e${exponent}`) + 0);
      },
    ),
    runs(1_000),
  );
});

test("packed bits are read lowest first", () => {
  const bits = [...Array(10).keys()].map((index) => decodeBit(Uint8Array.of(0b1000_0001, 0b10), index));
  expect(bits).toEqual([true, false, false, false, false, false, false, true, false, true]);
});
