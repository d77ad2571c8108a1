// The tables of a unit as words, for looking around: what does not answer is simply not there.
import { consequenceOf } from "./exceptions.ts";
import type { PatientLink } from "./patient-link.ts";
import { decodeBit } from "./registers.ts";
import type { ReadWords } from "./sunspec.ts";
import type { Table } from "./value-type.ts";
import { isRegisterTable } from "./value-type.ts";

/** In a row, of one table: some devices do not refuse what they do not have, and each silence takes a second. */
const mostSilences = 10;

/** Words, or bits as 0 and 1, of `unit`. A table that it does not have, or about which it says nothing, is given up. */
export function tableReader(link: Pick<PatientLink, "read">, unit: number, timeoutMs: number): ReadWords {
  const givenUp = new Set<Table>();
  const silences = new Map<Table, number>();
  return async (table, start, count) => {
    if (givenUp.has(table) || start + count > 65_536) return undefined;
    const result = await link.read({ unit, table, start, count }, timeoutMs);
    const silent = result.kind === "silence" ? (silences.get(table) ?? 0) + 1 : 0;
    silences.set(table, silent);
    const unsupported = result.kind === "exception" && consequenceOf(result.code) === "unsupported";
    if (unsupported || silent >= mostSilences) givenUp.add(table);
    if (result.kind !== "data") return undefined;
    const { bytes } = result;
    return isRegisterTable(table)
      ? Array.from({ length: count }, (_, i) => (bytes[i * 2]! << 8) | bytes[i * 2 + 1]!)
      : Array.from({ length: count }, (_, i) => Number(decodeBit(bytes, i)));
  };
}
