// Lists what a Modbus device offers: units, identification, SunSpec models and ranges of addresses. Reads only.

import type { BrowsedNode, BrowseTarget } from "../../../core/commissioning.ts";
import { AgentError } from "../../../core/errors.ts";
import { silenceHint } from "../config/endpoint.ts";
import { type ModbusOptions, optionsOf } from "../config/options.ts";
import { describeException, type ReadRequest } from "../config/pdu.ts";
import { isRegisterTable, isTable, type Table } from "../config/registers.ts";
import { isAlive } from "../connection/result.ts";
import { cameInstead } from "../polling/unit-reader.ts";
import { type ProbeConnection, rangeNodes, scanAddresses, tableReader } from "./address-scan.ts";
import {
  answersForAny,
  hasData,
  identify,
  isFailure,
  patternOf,
  patternOfAbsent,
  type ReadOnce,
} from "./identification.ts";
import { findSunspec, sunspecNodes } from "./sunspec.ts";

/** A unit that is present answers within this time, at least by an exception. */
const scanTimeoutMs = 300;
const pauseMs = 10;
/** Most registers are at low addresses, or on pages of the vendor; `?from=` and `?to=` select others. */
const defaultTo = 2_000;
/** Shortest range that is always found, in registers; eight times as many bits. */
const shortestRange = 6;
/** Longest range in which each address is tested if blocks are refused. */
const narrow = 200;

/** What a target asks for. */
export interface ModbusSearch {
  readonly options: ModbusOptions;
  /** Units to look for, in this order. */
  readonly candidates: readonly number[];
  /** Units that a source polls. They may take the time-out to answer. */
  readonly known: readonly number[];
  /** The single unit of the target. Undefined: all units. */
  readonly only: number | undefined;
  /** Addresses to look at. */
  readonly from: number;
  readonly to: number;
  /** `to` was not given. */
  readonly isUsualEnd: boolean;
}

/**
 * Takes `tcp://host:502?unit=1&from=0&to=2000`. Without `unit`, all units are searched. `replyUnit=any` works like the
 * option of a source. Throws `CONFIG_INVALID`.
 */
export function searchOf(target: BrowseTarget): ModbusSearch {
  const { url, units, replyUnit, ...addresses } = queryOf(target.url);
  const own = optionsOf({ url, interRequestDelay: `${pauseMs}ms` });
  // These options were parsed by this driver's schema.
  const configured = target.options as Partial<ModbusOptions> | undefined;
  const interRequestDelay = Math.max(own.interRequestDelay, configured?.interRequestDelay ?? 0);
  const options: ModbusOptions = {
    ...own,
    ...configured,
    url: own.url,
    interRequestDelay,
    ...(replyUnit && { replyUnit }),
  };
  // On a bus, unit 0 is the broadcast address, which no unit answers.
  const candidates = options.url.frames === "mbap" ? units : units.filter((unit) => unit >= 1 && unit <= 247);
  const [only] = units.length === 1 ? units : [];
  if (only !== undefined && candidates.length === 0)
    throw new AgentError("CONFIG_INVALID", `unit ${only} is none that answers on a bus: they are 1 to 247`);
  return { options, candidates, known: [], only, ...addresses };
}

/**
 * Yields each unit's identification, SunSpec points, ranges with their non-zero values, and a note on omissions. If the
 * device answers for every unit number, lists only the first. Rejects with `SOURCE_*` or `signal.reason`.
 */
export async function* searchNodes(search: ModbusSearch, link: ProbeConnection): AsyncGenerator<BrowsedNode> {
  const { options, only } = search;
  if (only === undefined) {
    yield* allUnits(search, link);
    return;
  }
  const first = await link.read(firstRegister(only), options.timeout);
  if (!isAlive(first)) {
    const why =
      first.kind === "exception"
        ? `: ${describeException(first.code)}`
        : ` within ${options.timeout} ms${first.kind === "silence" ? cameInstead(first) : ""}`;
    throw new AgentError("SOURCE_UNREACHABLE", `unit ${only} did not answer${why}`, {
      hint: `the device accepts the connection; without unit= all units are looked for; ${silenceHint(options.url)}`,
    });
  }
  yield* unitNodes(only, search, link);
}

async function* allUnits(search: ModbusSearch, link: ProbeConnection): AsyncGenerator<BrowsedNode> {
  const { options, candidates, known } = search;
  const read: ReadOnce = (request) =>
    link.read(request, known.includes(request.unit) ? options.timeout : scanTimeoutMs);
  let judged = options.url.frames !== "mbap";
  /** The answers of unit numbers that are absent. */
  let absent: string | undefined;
  const leftOut: number[] = [];
  let found = 0;
  let instead = "";
  for (const unit of candidates) {
    const first = await read(firstRegister(unit));
    if (first.kind === "silence") instead ||= cameInstead(first);
    if (!isAlive(first)) continue;
    const others = judged ? undefined : await patternOfAbsent(read);
    const pattern = judged && absent === undefined ? undefined : await patternOf(unit, read);
    if (others !== undefined && (others !== pattern || isFailure(others)) && !hasData(others)) absent = others;
    if (pattern !== undefined && pattern === absent) {
      judged = true;
      leftOut.push(unit);
      continue;
    }
    found++;
    let place: ReturnType<typeof placeOf>;
    for await (const node of unitNodes(unit, search, link)) {
      place ??= placeOf(node);
      yield node;
    }
    // The unit answers like an absent one: one device may answer for all unit numbers.
    const isLikeOthers = others !== undefined && others === pattern;
    if (isLikeOthers && (hasData(others) || (place && (await answersForAny(place.table, place.address, read))))) {
      yield note(unit, "it answers for every unit number, so the others are left out; ?unit=2 looks at unit 2");
      return;
    }
    if (isLikeOthers) absent = others;
    judged = true;
  }
  const [example] = leftOut;
  if (example !== undefined) {
    const text = `left out: ${leftOut.length} unit numbers that answer with exceptions as numbers of no unit do (${absent} for hr, ir, co, di); ?unit=${example} looks at one`;
    yield note(example, text);
  }
  if (found === 0 && instead !== "")
    throw new AgentError("SOURCE_UNREACHABLE", `no unit answered${instead}`, { hint: silenceHint(options.url) });
}

async function* unitNodes(unit: number, search: ModbusSearch, link: ProbeConnection): AsyncGenerator<BrowsedNode> {
  const { options, from, to, isUsualEnd } = search;
  yield note(unit, `unit ${unit} answers`);
  for (const { name, text } of await identify(unit, (request) => link.read(request, options.timeout)))
    yield { address: `unit ${unit}`, name, depth: 1, value: text, signal: {}, tag: { unit } };
  const abandoned = new Map<Table, number>();
  const read = tableReader(link, unit, options.timeout, abandoned);
  for (const model of await findSunspec(read)) yield* sunspecNodes(model, unit);
  const isNarrow = to - from <= narrow;
  let zeros = 0;
  for (const table of ["hr", "ir", "co", "di"] as const) {
    const registers = isRegisterTable(table);
    const smallest = isNarrow ? 1 : registers ? shortestRange : shortestRange * 8;
    const block = registers ? Math.min(100, options.maxRegisters) : Math.min(800, options.maxBits);
    for await (const range of scanAddresses(read, { table, from, to, block, smallest })) {
      zeros += range.values.filter((value) => value === 0).length;
      yield* rangeNodes(range, unit);
    }
  }
  const omitted = [
    zeros > 0 && `${zeros} ${zeros === 1 ? "address" : "addresses"} that hold 0`,
    ...[...abandoned].map(([table, address]) => `${table} from ${address} on, where nothing is answered`),
    !isNarrow &&
      `ranges shorter than ${shortestRange} registers between refused ones (?from= and ?to= up to ${narrow} apart find them)`,
    isUsualEnd && to < 65_536 && `addresses from ${to} on (?from=${to} looks there)`,
  ].filter((text) => text !== false);
  if (omitted.length > 0) yield note(unit, `left out: ${omitted.join("; ")}`);
}

function note(unit: number, name: string): BrowsedNode {
  return { address: `unit ${unit}`, name, depth: 0, signal: {}, tag: { unit } };
}

/** Start of a range that a node describes. */
function placeOf({ address }: BrowsedNode) {
  const [, table = "", start] = /^(hr|ir|co|di):(\d+)/.exec(address) ?? [];
  return isTable(table) ? { table, address: Number(start) } : undefined;
}

function firstRegister(unit: number): ReadRequest {
  return { unit, table: "hr", start: 0, count: 1 };
}

function queryOf(text: string) {
  const at = text.indexOf("?");
  const settings = new URLSearchParams(at < 0 ? "" : text.slice(at + 1));
  const number = (name: string, standard: number, least: number, most: number) => {
    const given = settings.get(name) ?? String(standard);
    settings.delete(name);
    if (/^\d+$/.test(given) && Number(given) >= least && Number(given) <= most) return Number(given);
    throw new AgentError("CONFIG_INVALID", `${name} in ${text} must be a number from ${least} to ${most}`);
  };
  const single = settings.has("unit") ? [number("unit", 1, 0, 255)] : undefined;
  const replyUnit = settings.get("replyUnit");
  settings.delete("replyUnit");
  if (replyUnit !== null && replyUnit !== "same" && replyUnit !== "any")
    throw new AgentError("CONFIG_INVALID", `replyUnit in ${text} must be same or any`);
  const isUsualEnd = !settings.has("to");
  const from = number("from", 0, 0, 65_535);
  const to = number("to", Math.min(from + defaultTo, 65_536), from, 65_536);
  const rest = settings.size > 0 ? `?${settings.toString()}` : "";
  // The most common ones first, as most devices are then found with the first request.
  const all = [1, 255, 0, ...Array.from({ length: 246 }, (_, i) => i + 2)];
  return {
    url: `${at < 0 ? text : text.slice(0, at)}${rest}`,
    units: single ?? all,
    from,
    to,
    isUsualEnd,
    ...(replyUnit === "any" && { replyUnit: "any" as const }),
  };
}
