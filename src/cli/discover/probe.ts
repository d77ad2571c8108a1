// `tagferry probe`: decodes one place of a device in all types and byte orders, ranked by the expected value.

import type { ProbeRow, ProbeTarget } from "../../core/commissioning.ts";
import { AgentError } from "../../core/errors.ts";
import { driverOf } from "../../discover/device/target.ts";
import { scaled } from "../../lib/values/decimal-text.ts";
import { commandRuntime } from "../shared/command-runtime.ts";
import type { Console } from "../terminal/console.ts";
import { type ExitStatus, exitStatus } from "../terminal/exit-status.ts";
import { columns, printResult } from "../terminal/text.ts";

interface ProbeOptions extends Omit<ProbeTarget, "url"> {
  readonly json?: boolean;
}

/** Resolves with `failed` if no decoding gives the expected value. Rejects as `Driver.probe` does. */
export async function probe(
  url: string,
  { at, unit, expect, replyUnit, json = false }: ProbeOptions,
  io: Console,
): Promise<ExitStatus> {
  if (expect !== undefined && !/^[+-]?\d+(\.\d+)?$/.test(expect))
    throw new AgentError(
      "CONFIG_INVALID",
      `--expect must be a number as the display shows it, as in 231.4, is ${expect}`,
    );
  const target = { url, unit, at, ...(expect !== undefined && { expect }), ...(replyUnit && { replyUnit }) };
  const driver = driverOf(url);
  if (!driver.probe)
    throw new AgentError("CONFIG_INVALID", `${url}: ${driver.example.protocol} has nothing to probe; use browse`);
  const rows = await driver.probe(target, commandRuntime(), io.signal);
  const found = rows.filter(({ matches, near }) => matches || near);
  const none = expect !== undefined && found.length === 0;
  const lines = () => [
    ...(found[0]
      ? [`${found[0].matches ? "shown as" : "near"} ${expect}, the likeliest first; as it would stand in tags:`]
      : []),
    ...(none
      ? [`nothing at ${at}, next to it or in the other table is shown as ${expect} or near it; the nearest:`]
      : []),
    ...columns(shown(rows, found, expect).map(cells)),
    ...(found.some(({ near }) => near) ? ["Values move: where it says now, read the display again to be sure."] : []),
    ...(none
      ? ["A value that moves: read the display again. Without --expect every way to read the place is shown."]
      : []),
  ];
  printResult({ json }, { url, unit, at, expect, rows }, lines, io);
  return none ? exitStatus.failed : exitStatus.done;
}

/** Most rows to show if nothing matches. */
const mostNear = 10;

function shown(rows: readonly ProbeRow[], found: readonly ProbeRow[], expect: string | undefined) {
  if (found.length > 0) return found;
  if (expect === undefined) return rows;
  const wanted = Number(expect);
  return rows
    .filter(({ value }) => Number.isFinite(Number(value)))
    .toSorted((a, b) => Math.abs(Number(a.value) - wanted) - Math.abs(Number(b.value) - wanted))
    .slice(0, mostNear);
}

function cells({ at, value, exponent, matches, near }: ProbeRow): readonly string[] {
  if (!matches && !near) return [at, String(value)];
  const scale = exponent === 0 ? "" : `, scale: ${Number(`1e${exponent}`)}`;
  return [`at: "${at}"${scale}`, String(value), ...(near ? [`now ${scaled(value, exponent)}`] : [])];
}
