// What was read, or why nothing was, as readings. Pure.
import type { EpochMicros } from "../../../core/point.ts";
import type { Reading } from "../../../core/source.ts";
import { scaled } from "../../../lib/power-of-ten.ts";
import type { Block } from "../config/plan.ts";
import type { Decoded } from "../config/registers.ts";
import { decodeBit, decodeRegisters } from "../config/registers.ts";
import type { Wanted, WantedValue } from "../config/wanted.ts";

/** Largest power of ten that SunSpec allows either way. */
const largestExponent = 10;

/** One reading for each value in `block`, out of the data of its reply. */
export function decodeBlock(block: Block<Wanted>, bytes: Uint8Array, time: EpochMicros): readonly Reading[] {
  return block.items.flatMap((item) =>
    item.values.map((value) => {
      const decoded = decode(value, bytes, block.start);
      return decoded.ok ? readingOf(value, decoded.value, time) : failedReading(value, decoded.reason, time);
    }),
  );
}

/** One reading for each value in `block` that could not be had. */
export function failedReadings(block: Block<Wanted>, reason: string, time: EpochMicros): readonly Reading[] {
  return block.items.flatMap((item) => item.values.map((value) => failedReading(value, reason, time)));
}

function decode({ start, format, scale }: WantedValue, bytes: Uint8Array, from: number): Decoded {
  if (!format) return { ok: true, value: decodeBit(bytes, start - from) };
  const decoded = decodeRegisters(bytes, start - from, format);
  if (!decoded.ok || !scale || typeof decoded.value === "boolean") return decoded;
  const factor = decodeRegisters(bytes, scale.start - from, scale.format);
  if (!factor.ok) return { ok: false, reason: `its scale factor: ${factor.reason}` };
  const exponent = Number(factor.value);
  if (!Number.isInteger(exponent) || Math.abs(exponent) > largestExponent)
    return { ok: false, reason: `its scale factor is ${exponent}, beyond ±${largestExponent}` };
  return { ok: true, value: scaled(decoded.value, exponent) };
}

function failedReading(value: WantedValue, reason: string, time: EpochMicros): Reading {
  return { ...readingOf(value, undefined, time), quality: "bad", reason };
}

function readingOf({ tag, captures, address }: WantedValue, value: Reading["value"], time: EpochMicros): Reading {
  return { tag, captures, address, value, time, clock: "agent", quality: "good", historical: false };
}
