// `tagferry read`: the data of Input IDs, read back from the service.
import { loadConfig } from "../config/load.ts";
import { epochMicros } from "../core/point.ts";
import type { DataFrame } from "../wire/data-frame.ts";
import { maxSelected } from "../wire/limits.ts";
import { rollupColumns, selectItemsResult } from "../wire/select-items.ts";
import { selectSignalsResult } from "../wire/select-signals.ts";
import { formatTimestamp } from "../wire/timestamp.ts";
import { commandRuntime } from "./command-runtime.ts";
import type { Console } from "./console.ts";
import { csvCell, numberCell } from "./csv-cell.ts";
import { type ExitStatus, exitStatus } from "./exit-status.ts";
import { version } from "./program.ts";
import { ServiceCaller } from "./service-caller.ts";
import { visible } from "./table.ts";

export interface ReadOptions {
  readonly config: string;
  /** Milliseconds before now. */
  readonly since: number;
  /** RFC 3339 duration, or `window`. */
  readonly rollup?: string;
  readonly format: "csv" | "ndjson";
}

/** The longest window that the service answers without a rollup, in microseconds. */
const longestRaw = 40 * 86_400e6;

/** Resolves with `failed` where an input cannot be read; the others are printed. Rejects as `ServiceCaller.call` does. */
export async function read(inputs: readonly string[], options: ReadOptions, io: Console): Promise<ExitStatus> {
  const config = await loadConfig(options.config, io.environment);
  const runtime = commandRuntime();
  await using service = await ServiceCaller.open(config, version(), runtime);
  const { items, missing } = await itemsOf(new Set(inputs), config.service.integration, service, io);
  const { since, rollup, format } = options;
  const columns = rollup === undefined ? (["value"] as const) : rollupColumns;
  if (format === "csv" && items.size > 0) await io.write(`${["input", "time", ...columns].join(",")}\n`);
  const now = runtime.clock.now();
  const begin = now - since * 1_000;
  const page = rollup === undefined ? longestRaw : Number.POSITIVE_INFINITY;
  const ids = [...items.keys()];
  for (let first = 0; first < ids.length; first += maxSelected.itemsWithData) {
    const some = ids.slice(first, first + maxSelected.itemsWithData);
    for (let from = begin; from < now; from += page) {
      const { data } = await service.call(
        "platform.selectItems",
        {
          items: { include: false, filter: { id: { $in: some } }, limit: some.length },
          data: {
            include: true,
            notBefore: formatTimestamp(epochMicros(from)),
            before: formatTimestamp(epochMicros(Math.min(from + page, now))),
            rollup: rollup ?? null,
          },
        },
        selectItemsResult,
        io.signal,
      );
      if (!data) continue;
      for (const item of some) {
        const text = rowsOf(data, item, items.get(item) ?? item, columns, format);
        if (text !== "" && !(await io.write(text))) return exitStatus.done;
      }
    }
  }
  for (const line of missing) io.complain(`tagferry: ${visible(line)}`);
  return missing.length === 0 ? exitStatus.done : exitStatus.failed;
}

/** Input ID by Item ID; and in words, why others have none. */
async function itemsOf(wanted: ReadonlySet<string>, integration: string, service: ServiceCaller, io: Console) {
  const items = new Map<string, string>();
  const left = new Set(wanted);
  const missing: string[] = [];
  for (let skip = 0; left.size > 0; skip += maxSelected.signals) {
    const { signals = {} } = await service.call(
      "admin.selectSignals",
      { integration, signals: { include: true, limit: maxSelected.signals, skip } },
      selectSignalsResult,
      io.signal,
    );
    const views = Object.values(signals);
    for (const { inputId, name, item } of views) {
      // Beside `inputId`, which the specification does not promise: the default of the name is the Input ID.
      const input = inputId ?? name;
      if (!left.delete(input)) continue;
      if (item) items.set(item, input);
      else missing.push(`${input} is not published: only items made of signals can be read`);
    }
    if (views.length < maxSelected.signals) break;
  }
  for (const input of left) missing.push(`the service has no signal ${input}`);
  return { items, missing };
}

function rowsOf(
  { times, series }: DataFrame,
  item: string,
  input: string,
  columns: readonly string[],
  format: ReadOptions["format"],
): string {
  const values = columns.map((column) => series[column === "value" ? item : `${item}_${column}`] ?? []);
  let text = "";
  for (const [i, time] of times.entries()) {
    const row = values.map((of) => of[i] ?? null);
    if (row.every((value) => value === null)) continue;
    if (format === "csv")
      text += `${csvCell(input)},${time},${row.map((value) => (value === null ? "" : numberCell(value))).join(",")}\n`;
    else
      text += `${JSON.stringify({ input, time, ...Object.fromEntries(columns.map((column, k) => [column, row[k]])) })}\n`;
  }
  return text;
}
