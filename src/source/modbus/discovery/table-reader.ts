// The tables of a unit as words, for looking around: what does not answer is simply not there.

import { decodeBit } from "../config/registers.ts";
import type { Table } from "../config/value-type.ts";
import { isRegisterTable } from "../config/value-type.ts";
import { consequenceOf } from "../connection/exceptions.ts";
import type { PatientLink } from "./patient-link.ts";
import type { ReadWords } from "./sunspec.ts";

/** In a row, of one table: some devices do not refuse what they do not have, and each silence takes a second. */
const mostSilences = 10;
/** In a row, of one table of which nothing was read: some devices answer exception 1 over a hole, too. */
const mostUnsupported = 40;

/**
 * Words, or bits as 0 and 1, of `unit`. A table that it does not have, or about which it says nothing, is abandoned: then it
 * is in `abandoned`, with the address where that was.
 */
export function tableReader(
  link: Pick<PatientLink, "read">,
  unit: number,
  timeoutMs: number,
  abandoned: Map<Table, number> = new Map(),
): ReadWords {
  const silences = new Map<Table, number>();
  const unsupported = new Map<Table, number>();
  return async (table, start, count) => {
    if (abandoned.has(table) || start + count > 65_536) return undefined;
    const result = await link.read({ unit, table, start, count }, timeoutMs);
    const silent = result.kind === "silence" ? (silences.get(table) ?? 0) + 1 : 0;
    silences.set(table, silent);
    if (result.kind === "data") unsupported.set(table, Number.NEGATIVE_INFINITY);
    else if (result.kind === "exception" && consequenceOf(result.code) === "unsupported")
      unsupported.set(table, (unsupported.get(table) ?? 0) + 1);
    if (silent >= mostSilences || (unsupported.get(table) ?? 0) >= mostUnsupported) abandoned.set(table, start);
    if (result.kind !== "data") return undefined;
    const { bytes } = result;
    return isRegisterTable(table)
      ? Array.from({ length: count }, (_, i) => (bytes[i * 2]! << 8) | bytes[i * 2 + 1]!)
      : Array.from({ length: count }, (_, i) => Number(decodeBit(bytes, i)));
  };
}
