// What the registers of a value hold in other formats, for a person who sees a wrong value. Pure.
import type { OtherFormat } from "../../../core/commissioning.ts";
import type { DriverTag } from "../../../core/driver.ts";
import { formatAddress } from "./address.ts";
import type { modbusTag } from "./options.ts";
import { decodeRegisters, reorder } from "./registers.ts";
import { isRegisterTable, orders, registersOf, type ValueType } from "./value-type.ts";

/** Formats of devices, with the way back from a value to its registers. */
const writers: Partial<Readonly<Record<ValueType, (view: DataView, value: number) => void>>> = {
  u16: (view, value) => view.setUint16(0, value),
  i16: (view, value) => view.setInt16(0, value),
  u32: (view, value) => view.setUint32(0, value),
  i32: (view, value) => view.setInt32(0, value),
  f32: (view, value) => view.setFloat32(0, value),
  f64: (view, value) => view.setFloat64(0, value),
};
const types: readonly ValueType[] = ["u16", "i16", "u32", "i32", "f32", "f64"];

/** Those of the usual magnitude first. Empty where `value` does not tell the registers, as with a scale factor. */
export function otherFormats(
  { at, order: orderOfTag, scaleFactor }: DriverTag<typeof modbusTag>,
  value: number,
): readonly OtherFormat[] {
  const { table, address, type } = at;
  const write = writers[type];
  if (!write || scaleFactor || !isRegisterTable(table)) return [];
  const order = at.order ?? orderOfTag ?? "abcd";
  const width = registersOf[type];
  const bytes = new Uint8Array(width * 2);
  write(new DataView(bytes.buffer), value);
  const sent = new Uint8Array(width * 2);
  reorder(bytes, 0, width, order, sent);
  const found = new Map<number, string>();
  for (const other of types.filter((each) => registersOf[each] === width))
    for (const turn of orders) {
      const decoded = decodeRegisters(sent, 0, { type: other, order: turn });
      if (!decoded.ok || typeof decoded.value !== "number" || decoded.value === value || found.has(decoded.value))
        continue;
      found.set(decoded.value, formatAddress({ table, address, type: other, order: turn }));
    }
  return [...found]
    .map(([otherValue, format]) => ({ format, value: otherValue }))
    .toSorted((a, b) => magnitude(a.value) - magnitude(b.value));
}

/** Powers of ten between the value and 1. */
function magnitude(value: number): number {
  return value === 0 ? 0 : Math.abs(Math.log10(Math.abs(value)));
}
