// How a gateway answers for a unit that is not there: some give an exception of their own, and some devices answer whatever
// the number of the unit. Rejects as the link does.

import type { ReadRequest } from "../config/pdu.ts";
import type { Table } from "../config/value-type.ts";
import { isAlive } from "../connection/exceptions.ts";
import type { Result } from "../connection/exchange.ts";

/** Numbers that hardly any bus has given to a device. */
const unlikelyUnits = [247, 246, 245];
/** Exceptions from this code on say nothing of an address: the device, or what answers for it, has failed. */
const firstFailure = 4;
const tables: readonly Table[] = ["hr", "ir", "co", "di"];

export type Ask = (request: ReadRequest) => Promise<Result>;

/** What a unit answers to the first address of each table: `data`, `silence` or the code of an exception. */
export async function patternOf(unit: number, ask: Ask): Promise<string> {
  const answers: string[] = [];
  for (const table of tables) {
    const result = await ask({ unit, table, start: 0, count: 1 });
    answers.push(result.kind === "exception" ? String(result.code) : result.kind);
  }
  return answers.join();
}

/** What the units answer that are most likely not there, where they all answer the same; undefined: they are silent, or differ. */
export async function patternOfAbsent(ask: Ask): Promise<string | undefined> {
  const patterns = new Set<string>();
  for (const unit of unlikelyUnits) {
    if (!isAlive(await ask({ unit, table: "hr", start: 0, count: 1 }))) return undefined;
    patterns.add(await patternOf(unit, ask));
  }
  const [pattern] = patterns;
  return patterns.size === 1 ? pattern : undefined;
}

/** Whether nothing was read, and no answer says anything of an address. */
export function isFailure(pattern: string): boolean {
  return pattern.split(",").every((answer) => Number(answer) >= firstFailure);
}

/** Whether a value was read. */
export function hasData(pattern: string): boolean {
  return pattern.includes("data");
}

/** Whether units that are most likely not there give a value of `table` at `address`, too: then who answers does not look at the number. */
export async function answersForAny(table: Table, address: number, ask: Ask): Promise<boolean> {
  for (const unit of unlikelyUnits)
    if ((await ask({ unit, table, start: address, count: 1 })).kind !== "data") return false;
  return true;
}
