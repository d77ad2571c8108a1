// The registers of a simulated meter: counting numbers of several types as 16-bit words. Pure.

/** Types of numbers in registers. Word order: `abcd` (high word first) or `cdab` (low word first). */
type RegisterType = "u16" | "i16" | "u32" | "i32" | "f32" | "u64" | "f64";

/** A number in registers. Its raw value starts at `start` and grows by `step` with each reply that contains it. */
interface Register {
  readonly name: string;
  readonly table: "hr" | "ir";
  readonly address: number;
  readonly type: RegisterType;
  readonly order: "abcd" | "cdab";
  readonly start: number;
  readonly step: number;
  /** Raw value × scale is the value in `unit`. A power of two avoids rounding. */
  readonly scale: number;
  readonly unit: string;
}

/** Writes a value, big-endian in each word. Returns its length in bytes. */
const write: Readonly<Record<RegisterType, (into: Buffer, value: number) => number>> = {
  u16: (into, value) => into.writeUInt16BE(value),
  i16: (into, value) => into.writeInt16BE(value),
  u32: (into, value) => into.writeUInt32BE(value),
  i32: (into, value) => into.writeInt32BE(value),
  f32: (into, value) => into.writeFloatBE(value),
  u64: (into, value) => into.writeBigUInt64BE(BigInt(value)),
  f64: (into, value) => into.writeDoubleBE(value),
};

export function wordCount(type: RegisterType): number {
  return write[type](Buffer.alloc(8), 0) / 2;
}

export function encodeWords(type: RegisterType, order: Register["order"], value: number): number[] {
  const bytes = Buffer.alloc(8);
  const words = Array.from({ length: write[type](bytes, value) / 2 }, (_, i) => bytes.readUInt16BE(i * 2));
  return order === "abcd" ? words : words.toReversed();
}

const usual = { order: "abcd", scale: 1 } as const;

/** The registers of one meter: all types and orders of a typical one. */
export const meter: readonly Register[] = [
  { ...usual, name: "voltage", table: "hr", address: 0, type: "u16", start: 400, step: 1, scale: 0.5, unit: "V" },
  { ...usual, name: "temperature", table: "hr", address: 1, type: "i16", start: -40, step: 1, scale: 0.5, unit: "°C" },
  { ...usual, name: "energy", table: "hr", address: 2, type: "u32", start: 70_000, step: 1, unit: "Wh" },
  { ...usual, name: "power", table: "hr", address: 4, type: "f32", order: "cdab", start: 1.5, step: 0.25, unit: "kW" },
  { ...usual, name: "balance", table: "hr", address: 6, type: "i32", order: "cdab", start: -9, step: 3, unit: "Wh" },
  { ...usual, name: "pulses", table: "ir", address: 0, type: "u64", start: 5e9, step: 7, unit: "" },
  { ...usual, name: "frequency", table: "ir", address: 4, type: "f64", start: 40, step: 0.125, unit: "Hz" },
];

export class Meter {
  readonly #values = new Map<Register, number>();

  /** `count` registers from `address`, and the numbers completely inside. Undefined: no such register (exception 2). */
  read(table: Register["table"], address: number, count: number): MeterReply | undefined {
    const within = meter.filter((register) => register.table === table);
    const end = Math.max(...within.map((register) => register.address + wordCount(register.type)));
    if (count < 1 || count > 125 || address + count > end) return undefined;
    const words = Array.from({ length: count }, () => 0);
    const values: { register: Register; value: number }[] = [];
    for (const register of within) {
      const offset = register.address - address;
      const size = wordCount(register.type);
      if (offset + size <= 0 || offset >= count) continue;
      const whole = offset >= 0 && offset + size <= count;
      const before = this.#values.get(register);
      const raw = before === undefined ? register.start : before + (whole ? register.step : 0);
      if (whole) {
        this.#values.set(register, raw);
        values.push({ register, value: raw * register.scale });
      }
      for (const [i, word] of encodeWords(register.type, register.order, raw).entries())
        if (offset + i >= 0 && offset + i < count) words[offset + i] = word;
    }
    return { words, values };
  }
}

interface MeterReply {
  readonly words: readonly number[];
  /** In engineering units. */
  readonly values: readonly { readonly register: Register; readonly value: number }[];
}
