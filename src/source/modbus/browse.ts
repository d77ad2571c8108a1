// What a Modbus device offers: units that answer and what they are, SunSpec models, ranges of addresses and what they
// hold. Reads only.
import { AgentError } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { BrowsedNode, BrowseTarget } from "../../core/source.ts";
import { modiconNumber } from "./address.ts";
import { describeException, isAlive } from "./exceptions.ts";
import type { Result } from "./exchange.ts";
import { identify } from "./identification.ts";
import { type ModbusOptions, optionsOf } from "./options.ts";
import { PatientLink } from "./patient-link.ts";
import { findSunspec, sunspecNodes } from "./sunspec.ts";
import { survey } from "./survey.ts";
import { tableReader } from "./table-reader.ts";
import type { Table } from "./value-type.ts";
import { isRegisterTable } from "./value-type.ts";

/** A unit that is there answers anything, if only by an exception, within this. */
const scanTimeoutMs = 300;
const pauseMs = 10;
/** Numbers that hardly any bus has given to a device. Whoever answers for all of them does not look at the number. */
const unlikelyUnits = [247, 246, 245];
/** Registers of interest lie low, or where a vendor begins a page of its own; `?from=` and `?to=` look elsewhere. */
const defaultTo = 2_000;

interface Wish {
  readonly url: string;
  readonly units: readonly number[];
  readonly from: number;
  readonly to: number;
}

/**
 * `tcp://host:502?unit=1&from=0&to=2000`: without `unit` all units are looked for, one after the other; of a device that
 * answers whatever the number the first one alone. Yields what each unit says that it is, its SunSpec points, then its
 * ranges with the values that are not 0. Rejects with `SOURCE_*` or `signal.reason`.
 */
export async function* browseModbus(
  target: BrowseTarget,
  runtime: Runtime,
  signal: AbortSignal,
): AsyncGenerator<BrowsedNode> {
  const { url, units, from, to } = wishOf(target.url);
  const own = optionsOf({ url, interRequestDelay: `${pauseMs}ms` });
  // What the schema of this very driver gave.
  const configured = target.options as Partial<ModbusOptions> | undefined;
  const interRequestDelay = Math.max(own.interRequestDelay, configured?.interRequestDelay ?? 0);
  const options: ModbusOptions = { ...own, ...configured, url: own.url, interRequestDelay };
  // On a bus unit 0 is everybody, and nobody answers.
  const asked = options.url.frames === "mbap" ? units : units.filter((unit) => unit >= 1 && unit <= 247);
  await using link = await PatientLink.open({ name: "browse", options, units: new Set(asked) }, runtime, signal);
  const [only] = units.length === 1 ? units : [];
  if (only !== undefined && asked.length === 0)
    throw new AgentError("CONFIG_INVALID", `unit ${only} is none that answers on a bus: they are 1 to 247`);
  let judged = false;
  for (const unit of asked) {
    const first = await ask(link, unit, only === undefined ? scanTimeoutMs : options.timeout);
    if (!isAlive(first)) {
      if (only === undefined) continue;
      const why = first.kind === "exception" ? `: ${describeException(first.code)}` : ` within ${options.timeout} ms`;
      throw new AgentError("SOURCE_UNREACHABLE", `unit ${only} did not answer${why}`, {
        hint: "the device accepts the connection; without unit= all units are looked for",
      });
    }
    yield { address: `unit ${unit}`, name: `unit ${unit} answers`, depth: 0, signal: {}, tag: { unit } };
    for (const { name, text } of await identify(unit, (request) => link.read(request, options.timeout)))
      yield { address: `unit ${unit}`, name, depth: 1, value: text, signal: {}, tag: { unit } };
    const read = tableReader(link, unit, options.timeout);
    for (const model of await findSunspec(read)) yield* sunspecNodes(model, unit);
    for (const table of ["hr", "ir", "co", "di"] as const) {
      const registers = isRegisterTable(table);
      const block = registers ? Math.min(100, options.maxRegisters) : Math.min(800, options.maxBits);
      for await (const range of survey(read, { table, from, to, block, smallest: registers ? 6 : 50 }))
        yield* rangeNodes(range, unit);
    }
    if (only === undefined && options.url.frames === "mbap" && !judged) {
      if (await answersAnyUnit(link)) {
        yield { address: `unit ${unit}`, name: anyUnit, depth: 0, signal: {}, tag: { unit } };
        return;
      }
      judged = true;
    }
  }
}

/** Many devices with a network port of their own do. 248 times the same takes an hour and tells nothing. */
async function answersAnyUnit(link: PatientLink): Promise<boolean> {
  for (const unit of unlikelyUnits) if (!isAlive(await ask(link, unit, scanTimeoutMs))) return false;
  return true;
}
const anyUnit = "it answers for every unit number, so the others are left out; ?unit=2 looks at unit 2";

function* rangeNodes(
  { table, start, values }: { table: Table; start: number; values: readonly number[] },
  unit: number,
): Generator<BrowsedNode> {
  const last = start + values.length - 1;
  const title = `${table}:${start} to ${table}:${last}`;
  yield {
    address: `${table}:${start}`,
    name: `${title}, ${values.length} answer`,
    depth: 0,
    signal: {},
    tag: { unit, at: addressOf(table, start) },
  };
  for (const [i, value] of values.entries()) {
    if (value === 0) continue;
    const address = start + i;
    const at = addressOf(table, address);
    const name = `${table}:${address} (${modiconNumber({ table, address })})`;
    yield {
      address: at,
      name,
      depth: 1,
      value: isRegisterTable(table) ? value : value === 1,
      signal: {},
      tag: { unit, at },
    };
  }
}

function addressOf(table: Table, address: number): string {
  return isRegisterTable(table) ? `${table}:${address} u16` : `${table}:${address}`;
}

function ask(link: PatientLink, unit: number, timeoutMs: number): Promise<Result> {
  return link.read({ unit, table: "hr", start: 0, count: 1 }, timeoutMs);
}

function wishOf(text: string): Wish {
  const at = text.indexOf("?");
  const settings = new URLSearchParams(at < 0 ? "" : text.slice(at + 1));
  const number = (name: string, standard: number, least: number, most: number) => {
    const given = settings.get(name) ?? String(standard);
    settings.delete(name);
    if (/^\d+$/.test(given) && Number(given) >= least && Number(given) <= most) return Number(given);
    throw new AgentError("CONFIG_INVALID", `${name} in ${text} must be a number from ${least} to ${most}`);
  };
  const single = settings.has("unit") ? [number("unit", 1, 0, 255)] : undefined;
  const from = number("from", 0, 0, 65_535);
  const to = number("to", Math.min(from + defaultTo, 65_536), from, 65_536);
  const rest = settings.size > 0 ? `?${settings.toString()}` : "";
  // The usual ones first: most devices are found with the first request.
  const all = [1, 255, 0, ...Array.from({ length: 246 }, (_, i) => i + 2)];
  return { url: `${at < 0 ? text : text.slice(0, at)}${rest}`, units: single ?? all, from, to };
}
