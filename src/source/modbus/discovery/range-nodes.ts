// A range of addresses that answers, as nodes: what is not 0, two registers as one where they most likely are a float. Pure.
import type { BrowsedNode } from "../../../core/source.ts";
import { modiconNumber } from "../config/address.ts";
import type { Table } from "../config/value-type.ts";
import { isRegisterTable } from "../config/value-type.ts";
import { type FloatPair, floatPairs } from "./float-pairs.ts";
import type { AnsweringRange } from "./survey.ts";

/** What devices give for "no value": all bits, the least and the greatest signed number. */
const noValues = [0xffff, 0x8000, 0x7fff];
/** From here on a register is more likely a small negative number, -4096 to -2, than a large one. */
const leastSigned = 0xf000;

export function* rangeNodes({ table, start, values }: AnsweringRange, unit: number): Generator<BrowsedNode> {
  const last = start + values.length - 1;
  const title = `${table}:${start} to ${table}:${last}`;
  yield {
    address: `${table}:${start}`,
    name: `${title}, ${values.length} answer`,
    depth: 0,
    signal: {},
    tag: { unit, at: addressOf(table, start) },
  };
  const pairs: ReadonlyMap<number, FloatPair> = isRegisterTable(table) ? floatPairs(values, start) : new Map();
  for (const [i, value] of values.entries()) {
    const address = start + i;
    const pair = pairs.get(i);
    if (pair) {
      const at = `${table}:${address} f32${pair.order === "abcd" ? "" : ` ${pair.order}`}`;
      const type = `f32, as u16: ${value} ${values[i + 1]}`;
      const name = `${table}:${address} (${modiconNumber({ table, address })})`;
      yield { address: at, name, depth: 1, value: pair.value, type, signal: {}, tag: { unit, at } };
    }
    if (value === 0 || pair || pairs.has(i - 1)) continue;
    const name = `${table}:${address} (${modiconNumber({ table, address })})`;
    const node = { name, depth: 1, signal: {} };
    if (!isRegisterTable(table)) {
      const at = `${table}:${address}`;
      yield { ...node, address: at, value: value === 1, tag: { unit, at } };
    } else if (noValues.includes(value)) {
      // Without a value no tag is made of it.
      const at = `${table}:${address} u16`;
      yield { ...node, address: at, type: `u16: ${value}, which often stands for "no value"`, tag: { unit, at } };
    } else if (value >= leastSigned) {
      const at = `${table}:${address} i16`;
      yield { ...node, address: at, value: value - 0x1_0000, type: `i16, as u16: ${value}`, tag: { unit, at } };
    } else {
      const at = `${table}:${address} u16`;
      yield { ...node, address: at, value, tag: { unit, at } };
    }
  }
}

function addressOf(table: Table, address: number): string {
  return isRegisterTable(table) ? `${table}:${address} u16` : `${table}:${address}`;
}
