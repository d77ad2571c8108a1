// Known values in every type and order, laid out in the registers of one device.
import type { DeviceTable } from "./modbus-device.ts";
import type { ModbusTagText } from "./modbus-source.ts";

export interface ModbusVector {
  readonly words: readonly number[];
  readonly type: string;
  readonly value: number | bigint | boolean;
}

export const modbusVectors: readonly ModbusVector[] = [
  { words: [0x47f1, 0x2065], type: "f32 abcd", value: 123456.79 },
  { words: [0x2065, 0x47f1], type: "f32 cdab", value: 123456.79 },
  { words: [0xf147, 0x6520], type: "f32 badc", value: 123456.79 },
  { words: [0x6520, 0xf147], type: "f32 dcba", value: 123456.79 },
  { words: [0xf8a4, 0x32eb], type: "i32", value: -123456789 },
  { words: [0x32eb, 0xf8a4], type: "i32 cdab", value: -123456789 },
  { words: [0xeedd, 0xef0b, 0x8216, 0x7eeb], type: "i64", value: -1234567890123456789n },
  { words: [0x7eeb, 0x8216, 0xef0b, 0xeedd], type: "i64 cdab", value: -1234567890123456789n },
  { words: [0xc071, 0x1266, 0x6666, 0x6666], type: "f64", value: -273.15 },
  { words: [0x4d60], type: "f16", value: 21.5 },
  { words: [0xffff], type: "u16", value: 65535 },
  { words: [0xffff], type: "i16", value: -1 },
  { words: [0x3412], type: "u16 badc", value: 0x1234 },
  { words: [0x1234], type: "bcd16", value: 1234 },
  { words: [0x1234, 0x5678], type: "bcd32", value: 12345678 },
  { words: [0x80ff], type: "u8", value: 255 },
  { words: [0x80ff], type: "i8h", value: -128 },
];

const words = modbusVectors.flatMap((vector) => vector.words);
const starts = modbusVectors.map((_, i) => modbusVectors.slice(0, i).flatMap((vector) => vector.words).length);

/** The vectors in sequence in both register tables, and a bit pattern in the other tables. */
export const vectorTables: { readonly [Table in DeviceTable]: Readonly<Record<number, readonly number[]>> } = {
  hr: { 0: words },
  ir: { 0: words },
  co: { 0: [0, 1, 0, 0, 1, 1, 0, 0, 1, 0] },
  di: { 0: [1, 0] },
};

/** One tag for each vector, alternating between the two tables. */
export const vectorTags: readonly ModbusTagText[] = modbusVectors.map(({ type }, i) => ({
  at: `${i % 2 === 0 ? "hr" : "ir"}:${starts[i]} ${type}`,
}));

/** Bits of `vectorTables` with their values. */
export const bitTags: readonly (ModbusTagText & { readonly value: boolean })[] = [
  { at: "co:0", value: false },
  { at: "co:1", value: true },
  { at: "co:8", value: true },
  { at: "co:9", value: false },
  { at: "di:0", value: true },
  { at: "di:1", value: false },
];
