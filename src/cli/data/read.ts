// `tagferry read`: reads the data of Input IDs back from the service.
import { join } from "node:path";
import { inputsOf } from "../../agent/own-signals.ts";
import { loadConfig } from "../../config/load.ts";
import { nearest } from "../../config/nodes/suggest.ts";
import { epochMicros, isInputId } from "../../core/point.ts";
import { visible } from "../../lib/text/visible.ts";
import type { ConfiguredInputs } from "../../mapping/input-template.ts";
import type { MethodCaller } from "../../upload/client/method-caller.ts";
import { readKeptSignals } from "../../upload/signals/catalog-file.ts";
import { itemData, longestSpan, type ReadRollup, readRollup } from "../../upload/signals/item-data.ts";
import { type StoredSignal, storedSignals } from "../../upload/signals/stored-signals.ts";
import { maxSelected } from "../../wire/method.ts";
import { type DataFrame, rollupColumns } from "../../wire/results.ts";
import { formatTimestamp } from "../../wire/timestamp.ts";
import { commandRuntime } from "../shared/command-runtime.ts";
import { openServiceCaller } from "../shared/service-caller.ts";
import type { Console } from "../terminal/console.ts";
import { CommandFailed, type ExitStatus, exitStatus } from "../terminal/exit-status.ts";
import { plotItems } from "./read-plot.ts";
import { DataRows, type ReadItem, type ReadQuery, type RowFormat } from "./read-rows.ts";

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
  const rows = new DataRows(format, rollup === undefined ? ["value"] : rollupColumns);
  if (format === "csv" && items.length > 0) await io.write(rows.header());
  for (let first = 0; first < items.length; first += maxSelected.itemsWithData) {
    const some = items.slice(first, first + maxSelected.itemsWithData);
    const query = { items: some.map(({ item }) => item), from, before, rollup };
    let whole: DataFrame | undefined;
    for await (const frame of itemData(caller, query, io.signal)) {
      if (rollup === "window") whole = rows.joined(whole, frame);
      else if (!(await printed(rows, frame, some, io))) return false;
      io.progress(`read up to ${frame.times.at(-1) ?? formatTimestamp(from)}`);
    }
    if (whole && !(await printed(rows, whole, some, io))) return false;
  }
  io.progress(undefined);
  return true;
}

async function printed(rows: DataRows, frame: DataFrame, items: readonly ReadItem[], io: Console): Promise<boolean> {
  for (const item of items) {
    const text = rows.text(frame, item);
    if (text !== "" && !(await io.write(text))) return false;
  }
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
  const said = `the service has no signal ${input}`;
  if (configured.has(input)) return `${said}: it has one with the first points; tagferry status tells of delivery`;
  const near = nearest(input, configured.fixed.keys());
  return `${said}, nor does the configuration name it${near === undefined ? "" : `; did you mean ${near}?`}`;
}
