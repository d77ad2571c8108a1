// The register file of a simulated meter: numbers of several types that count up, as 16-bit words. Pure.

/** Numbers as registers hold them; the word order is `abcd` (high word first) or `cdab` (low word first). */
type RegisterType = "u16" | "i16" | "u32" | "i32" | "f32" | "u64" | "f64";

/** A number in the register file. Its raw value starts at `start` and grows by `step` with every reply that holds it. */
interface Register {
  readonly name: string;
  readonly table: "hr" | "ir";
  readonly address: number;
  readonly type: RegisterType;
  readonly order: "abcd" | "cdab";
  readonly start: number;
  readonly step: number;
  /** Raw value × scale is the value in `unit`. A power of two, so that nothing is rounded. */
  readonly scale: number;
  readonly unit: string;
}

const bytes: Readonly<Record<RegisterType, number>> = { u16: 2, i16: 2, u32: 4, i32: 4, f32: 4, u64: 8, f64: 8 };

/** How many registers a number of this type takes. */
export function wordCount(type: RegisterType): number {
  return bytes[type] / 2;
}

/** The registers of `value`, big-endian within each word as Modbus has it. */
export function encodeWords(type: RegisterType, order: Register["order"], value: number): number[] {
  const view = new DataView(new ArrayBuffer(bytes[type]));
  switch (type) {
    case "u16":
      view.setUint16(0, value);
      break;
    case "i16":
      view.setInt16(0, value);
      break;
    case "u32":
      view.setUint32(0, value);
      break;
    case "i32":
      view.setInt32(0, value);
      break;
    case "f32":
      view.setFloat32(0, value);
      break;
    case "u64":
      view.setBigUint64(0, BigInt(value));
      break;
    case "f64":
      view.setFloat64(0, value);
      break;
  }
  const words = Array.from({ length: view.byteLength / 2 }, (_, i) => view.getUint16(i * 2));
  return order === "abcd" ? words : words.toReversed();
}

/** What one meter offers: every type and order of a usual one, side by side as makers lay them out. */
export const meter: readonly Register[] = [
  { name: "voltage", table: "hr", address: 0, type: "u16", order: "abcd", start: 400, step: 1, scale: 0.5, unit: "V" },
  {
    name: "temperature",
    table: "hr",
    address: 1,
    type: "i16",
    order: "abcd",
    start: -40,
    step: 1,
    scale: 0.5,
    unit: "°C",
  },
  { name: "energy", table: "hr", address: 2, type: "u32", order: "abcd", start: 70_000, step: 1, scale: 1, unit: "Wh" },
  { name: "power", table: "hr", address: 4, type: "f32", order: "cdab", start: 1.5, step: 0.25, scale: 1, unit: "kW" },
  { name: "balance", table: "hr", address: 6, type: "i32", order: "cdab", start: -9, step: 3, scale: 1, unit: "Wh" },
  { name: "pulses", table: "ir", address: 0, type: "u64", order: "abcd", start: 5e9, step: 7, scale: 1, unit: "" },
  {
    name: "frequency",
    table: "ir",
    address: 4,
    type: "f64",
    order: "abcd",
    start: 40,
    step: 0.125,
    scale: 1,
    unit: "Hz",
  },
];

/** A meter that counts. */
export class Meter {
  readonly #values = new Map<Register, number>();

  /**
   * The words of `count` registers from `address`, and the numbers that lie wholly within them, each a step further
   * than in the reply before. Undefined where the meter has no register: exception 2.
   */
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
