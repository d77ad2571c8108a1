// `tagferry read`: reads the data of Input IDs back from the service.
import { join } from "node:path";
import { inputsOf } from "../../agent/own-signals.ts";
import { loadConfig } from "../../config/load.ts";
import { nearest } from "../../config/nodes/suggest.ts";
import { type EpochMicros, epochMicros, isInputId } from "../../core/point.ts";
import { visible } from "../../lib/text/visible.ts";
import type { ConfiguredInputs } from "../../mapping/input-template.ts";
import type { MethodCaller } from "../../upload/client/method-caller.ts";
import { itemData, longestSpan, type ReadRollup, readRollup } from "../../upload/signals/item-data.ts";
import { readKeptSignals } from "../../upload/signals/signal-files.ts";
import { type StoredSignal, storedSignals } from "../../upload/signals/stored-signals.ts";
import { maxSelected } from "../../wire/method.ts";
import { type DataFrame, rollupColumns } from "../../wire/results.ts";
import { formatRfcDuration } from "../../wire/rfc-duration.ts";
import { formatTimestamp, parseTimestamp } from "../../wire/timestamp.ts";
import { commandRuntime } from "../shared/command-runtime.ts";
import { openServiceCaller } from "../shared/service-caller.ts";
import type { Console } from "../terminal/console.ts";
import { CommandFailed, type ExitStatus, exitStatus } from "../terminal/exit-status.ts";
import { count, number } from "../terminal/text.ts";
import { csvHeader, joinedFrames, type ReadItem, type ReadQuery, type RowFormat, rowsOf } from "./read-rows.ts";

interface ReadOptions {
  readonly config: string;
  /** Begin, in milliseconds before now. */
  readonly since: number;
  /** End, in milliseconds before now. */
  readonly until?: number;
  /** RFC 3339 duration, or `window`. */
  readonly rollup?: string;
  readonly format: RowFormat | "plot";
  /** Characters in a line of a plot. */
  readonly width?: number;
}

/** Resolves with `failed` if an input cannot be read; the others are printed. Rejects as `MethodCaller.call` does. */
export async function read(inputs: readonly string[], options: ReadOptions, io: Console): Promise<ExitStatus> {
  const config = await loadConfig(options.config, io.environment);
  const runtime = commandRuntime();
  await using service = await openServiceCaller(config, runtime);
  const { caller } = service;
  const { since, until = 0, rollup, format, width } = options;
  const now = runtime.clock.now();
  const span = { from: epochMicros(now - since * 1_000), before: epochMicros(now - until * 1_000) };
  const wrong = span.from < span.before ? wrongRollup(rollup, caller, span) : "--until must be less than --since";
  if (wrong !== undefined) throw new CommandFailed(wrong, exitStatus.usage);
  const { url, integration } = config.service;
  const kept = readKeptSignals(join(config.agent.dataDir, "signals.db"), `${url} ${integration}`);
  const ids = inputs.map((input) => (isInputId(input) ? kept?.get(input)?.id : undefined));
  const { items, missing, unknown } = await itemsOf(new Set(inputs), ids, caller, io);
  const configured = inputsOf(config);
  for (const input of unknown) missing.push(unknownSignal(input, configured));
  // Seconds in each state need other columns than numbers.
  const states = caller.version === "1.1" && rollup !== undefined;
  const readable = items.filter(({ input, enumeration }) => {
    if (!enumeration || !states || format === "ndjson") return true;
    missing.push(
      `${input} is an enumeration: with a rollup use --format ndjson, which shows the seconds in each state`,
    );
    return false;
  });
  const going =
    format === "plot"
      ? await plotItems(caller, readable, { ...span, rollup }, width, io)
      : await printRows(caller, readable, { ...span, rollup, format }, io);
  if (!going) return exitStatus.done;
  for (const line of missing) io.complain(`tagferry: ${visible(line)}`);
  return missing.length === 0 ? exitStatus.done : exitStatus.failed;
}

function wrongRollup(
  rollup: string | undefined,
  { version: spoken }: MethodCaller,
  { from, before }: Omit<ReadQuery, "rollup">,
): string | undefined {
  if (rollup === undefined) return undefined;
  const parsed: ReturnType<typeof readRollup> = readRollup(rollup, spoken);
  if (typeof parsed === "object" && "wrong" in parsed) return `--rollup ${visible(rollup)} ${parsed.wrong}`;
  const longest = longestSpan(parsed, spoken);
  if (before - from <= longest || widthOf(parsed) <= longest / 2) return undefined;
  return `--rollup ${visible(rollup)} is too long for the spans that the service permits`;
}

function widthOf(rollup: ReadRollup): number {
  return rollup === undefined || rollup === "window" ? 0 : rollup.micros + rollup.months * 31 * 86_400e6;
}

/** Resolves with false if the reader closed the output. */
async function printRows(
  caller: MethodCaller,
  items: readonly ReadItem[],
  { from, before, rollup, format }: ReadQuery & { readonly format: RowFormat },
  io: Console,
): Promise<boolean> {
  const columns = rollup === undefined ? ["value"] : rollupColumns;
  const print = async (frame: DataFrame, printed: readonly ReadItem[]) => {
    for (const item of printed) {
      const text = rowsOf(frame, item, format, columns);
      if (text !== "" && !(await io.write(text))) return false;
    }
    return true;
  };
  if (format === "csv" && items.length > 0) await io.write(csvHeader(columns));
  for (let first = 0; first < items.length; first += maxSelected.itemsWithData) {
    const some = items.slice(first, first + maxSelected.itemsWithData);
    const query = { items: some.map(({ item }) => item), from, before, rollup };
    let whole: DataFrame | undefined;
    for await (const frame of itemData(caller, query, io.signal)) {
      if (rollup === "window") whole = joinedFrames(whole, frame);
      else if (!(await print(frame, some))) return false;
      io.progress(`read up to ${frame.times.at(-1) ?? formatTimestamp(from)}`);
    }
    if (whole && !(await print(whole, some))) return false;
  }
  io.progress(undefined);
  return true;
}

/** The items of `wanted`, errors for inputs without one, and unknown inputs. `ids`: signals that the agent knows. */
async function itemsOf(
  wanted: ReadonlySet<string>,
  ids: readonly (StoredSignal["id"] | undefined)[],
  caller: MethodCaller,
  io: Console,
) {
  const items: ReadItem[] = [];
  const left = new Set(wanted);
  const missing: string[] = [];
  const take = (page: readonly StoredSignal[]) => {
    for (const { input: named, attributes, itemId, item } of page) {
      // The specification does not guarantee the Input ID here. The default name equals it.
      const input = named ?? attributes.name ?? "";
      if (!left.delete(input)) continue;
      const { engUnit = "", type } = (item ?? { attributes }).attributes;
      if (itemId !== undefined) items.push({ input, item: itemId, unit: engUnit, enumeration: type === "enum" });
      else
        missing.push(
          `${input} is not published, and only items can be read; tagferry signals publish makes them, or says what they miss`,
        );
    }
  };
  const known = ids.filter((id) => id !== undefined);
  if (known.length > 0)
    for await (const page of storedSignals(caller, { items: true, ids: known }, io.signal)) take(page);
  if (left.size > 0)
    for await (const page of storedSignals(caller, { items: true }, io.signal)) {
      take(page);
      if (left.size === 0) break;
    }
  // In the order of the arguments.
  const order = [...wanted];
  return { items: items.toSorted((a, b) => order.indexOf(a.input) - order.indexOf(b.input)), missing, unknown: left };
}

/** A message for an unknown input: a similar name, or that nothing was delivered yet. */
function unknownSignal(input: string, configured: ConfiguredInputs): string {
  const message = `the service has no signal ${input}`;
  if (configured.has(input)) return `${message}: it has one with the first points; tagferry status tells of delivery`;
  const near = nearest(input, configured.fixed.keys());
  return `${message}, nor does the configuration name it${near === undefined ? "" : `; did you mean ${near}?`}`;
}

/** Height of a plot in characters. */
const height = 10;
const minute = 60e6;

/** The minimum and maximum in the time step of a column of dots. Undefined: no value. */
type Column = { min: number; max: number } | undefined;

/** Plots each item. `width`: characters in a line. Resolves with false if the reader closed the pipe. */
async function plotItems(
  caller: MethodCaller,
  items: readonly ReadItem[],
  { from, before, rollup: asked }: ReadQuery,
  width: number | undefined,
  io: Console,
): Promise<boolean> {
  // Two dots a character, next to the axis.
  const dots = Math.max(10, (width ?? process.stdout.columns ?? 80) - axisWidth - 2) * 2;
  const perDot = (before - from) / dots;
  for (const { item, input, unit, enumeration } of items) {
    // For a dot of a minute or more, the minimum and maximum suffice. Enumerations have neither.
    const fits = enumeration || perDot < minute ? undefined : formatRfcDuration(Math.floor(perDot / minute) * minute);
    const rollup = asked === "window" || enumeration ? undefined : (asked ?? fits);
    const columns: Column[] = Array.from({ length: dots }, () => undefined);
    let points = 0;
    for await (const { times, series } of itemData(caller, { items: [item], from, before, rollup }, io.signal)) {
      const least = series[rollup === undefined ? item : `${item}_min`] ?? [];
      const greatest = series[rollup === undefined ? item : `${item}_max`] ?? [];
      const counts = rollup === undefined ? undefined : (series[`${item}_count`] ?? []);
      for (const [i, text] of times.entries()) {
        const [min, max, time] = [least[i] ?? null, greatest[i] ?? null, parseTimestamp(text)];
        if (min === null || max === null || time === undefined) continue;
        points += counts?.[i] ?? (counts ? 0 : 1);
        const dot = Math.min(dots - 1, Math.max(0, Math.floor((time - from) / perDot)));
        const column = columns[dot];
        if (column) {
          column.min = Math.min(column.min, min);
          column.max = Math.max(column.max, max);
        } else columns[dot] = { min, max };
      }
      io.progress(`${input}: ${count(points, "point")}`);
    }
    io.progress(undefined);
    const title = `${visible(input)}${unit === "" ? "" : ` in ${visible(unit)}`}, ${count(points, "point")}`;
    const lines = plot(columns, shown(from), shown(before));
    if (!(await io.write(`${[title, ...lines, ""].join("\n")}\n`))) return false;
  }
  return true;
}

/** Rounded down to seconds. */
function shown(time: EpochMicros): string {
  return formatTimestamp(epochMicros(Math.floor(time / 1e6) * 1e6));
}

/** Bits of the dots in a braille character: left and right, from top to bottom. */
const dots = [
  [0x01, 0x08],
  [0x02, 0x10],
  [0x04, 0x20],
  [0x40, 0x80],
] as const;
const empty = 0x2800;

const axisWidth = 11;

function plot(columns: readonly Column[], from: string, to: string): readonly string[] {
  const known = columns.filter((column) => column !== undefined);
  if (known.length === 0) return [];
  let low = Math.min(...known.map(({ min }) => min));
  let high = Math.max(...known.map(({ max }) => max));
  if (low === high) {
    const room = low === 0 ? 1 : Math.abs(low) * 0.1;
    low -= room;
    high += room;
  }
  const rows = height * 4;
  const letters = Array.from({ length: height }, () => new Uint8Array(Math.ceil(columns.length / 2)));
  // Halved first, since the difference may exceed the range of a double.
  const rowOf = (value: number) => Math.round(((high / 2 - value / 2) / (high / 2 - low / 2)) * (rows - 1));
  let before: { readonly column: number; readonly row: number } | undefined;
  for (const [column, range] of columns.entries()) {
    if (!range) {
      before = undefined;
      continue;
    }
    const [top, bottom] = [rowOf(range.max), rowOf(range.min)];
    // Connect to the previous column, so that a step is visible.
    const joined = before?.column === column - 1 ? before.row : top;
    const [first, last] = [Math.min(top, joined), Math.max(bottom, joined)];
    for (let row = first; row <= last; row++) {
      const line = letters[row >> 2];
      const letter = column >> 1;
      if (line) line[letter] = (line[letter] ?? 0) | (dots[row & 3]?.[column & 1] ?? 0);
    }
    before = { column, row: bottom };
  }
  const lines = letters.map((line, index) => {
    const side = index === 0 ? axisNumber(high) : index === height - 1 ? axisNumber(low) : "";
    const picture = Array.from(line, (bits) => (bits === 0 ? " " : String.fromCodePoint(empty + bits))).join("");
    return `${side.padStart(axisWidth - 1)} ${index === 0 || index === height - 1 ? "┤" : "│"}${picture}`.trimEnd();
  });
  const width = Math.ceil(columns.length / 2);
  const between = Math.max(1, width - from.length - to.length);
  return [
    ...lines,
    `${" ".repeat(axisWidth)}└${"─".repeat(width)}`,
    `${" ".repeat(axisWidth + 1)}${from}${" ".repeat(between)}${to}`,
  ];
}

function axisNumber(value: number): string {
  const magnitude = Math.abs(value);
  if (magnitude !== 0 && (magnitude >= 1e8 || magnitude < 1e-4)) return value.toExponential(2);
  return magnitude >= 100 ? number(value) : String(Number(value.toPrecision(4)));
}
