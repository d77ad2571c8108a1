// Publishes every signal to an item and reads all their points back from the service, as a person would see them.
import { type EpochMicros, epochMicros, type InputId, isInputId } from "../core/point.ts";
import type { Runtime } from "../core/runtime.ts";
import { publishSignalsResult, selectItemsResult, selectSignalsResult } from "../wire/results.ts";
import type { ItemSaveInput, SignalSelectView } from "../wire/signal-view.ts";
import { formatTimestamp, parseTimestamp } from "../wire/timestamp.ts";
import { type Comparison, compare, type Stored } from "./comparison.ts";
import type { HandedOut } from "./handed-out.ts";
import { type ReaderOptions, RpcReader } from "./rpc.ts";

/** Points from this time on and before that time. */
interface Span {
  readonly from: EpochMicros;
  readonly before: EpochMicros;
}

/** Limits of the specification: `signals.limit`, and `items.limit` where data is included. */
const signalsPerPage = 1_000;
const itemsPerPage = 50;
/** Points of items that share no times make a frame as wide as it is long; ten minutes keep it small. */
const pageMicros = 600e6;

/**
 * Reads every signal of the integration back and compares. Resolves whatever the comparison says; rejects with
 * `SERVICE_*` where the service cannot be read, or with `signal.reason`.
 */
export async function readBackAndCompare(
  options: ReaderOptions,
  handedOut: HandedOut,
  span: Span,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<Comparison> {
  return compare(handedOut, await readBack(options, span, runtime, signal));
}

/** Every stored point of every signal of the integration within `span`. Publishes the signals on the way. */
export async function readBack(
  options: ReaderOptions,
  span: Span,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<Stored> {
  const reader = new RpcReader(options, runtime.clock);
  const inputs = await publishItems(reader, await selectSignals(reader, signal), signal);
  const stored = new Map<InputId, Map<number, EpochMicros[]>>();
  const items = [...inputs.keys()];
  for (let first = 0; first < items.length; first += itemsPerPage) {
    const page = items.slice(first, first + itemsPerPage);
    for (let from: number = span.from; from < span.before; from += pageMicros) {
      const before = Math.min(from + pageMicros, span.before);
      const { data } = await reader.call(
        "platform.selectItems",
        {
          items: { include: false, filter: { id: { $in: page } }, limit: itemsPerPage },
          data: {
            include: true,
            notBefore: formatTimestamp(epochMicros(from)),
            before: formatTimestamp(epochMicros(before)),
          },
        },
        selectItemsResult,
        signal,
      );
      const times = (data?.times ?? []).map((text) => parseTimestamp(text) ?? epochMicros(Number.NaN));
      for (const [item, values] of Object.entries(data?.series ?? {})) {
        const input = inputs.get(item);
        if (input !== undefined) gather(stored, input, times, values);
      }
    }
  }
  return stored;
}

function gather(
  stored: Map<InputId, Map<number, EpochMicros[]>>,
  input: InputId,
  times: readonly EpochMicros[],
  values: readonly (number | null)[],
): void {
  const byValue = stored.get(input) ?? new Map<number, EpochMicros[]>();
  stored.set(input, byValue);
  for (const [i, value] of values.entries()) {
    const time = times[i];
    if (value === null || time === undefined) continue;
    const at = byValue.get(value);
    if (at) at.push(time);
    else byValue.set(value, [time]);
  }
}

/** Every signal of the integration, by Signal ID. */
async function selectSignals(reader: RpcReader, signal: AbortSignal): Promise<Map<string, SignalSelectView>> {
  const all = new Map<string, SignalSelectView>();
  for (let skip = 0; ; skip += signalsPerPage) {
    const { signals = {} } = await reader.call(
      "admin.selectSignals",
      { integration: reader.integration, signals: { include: true, limit: signalsPerPage, skip } },
      selectSignalsResult,
      signal,
    );
    const page = Object.entries(signals);
    for (const [id, view] of page) all.set(id, view);
    if (page.length < signalsPerPage) return all;
  }
}

/** Makes an item of each signal with the signal's own metadata. Resolves with the Input ID of each item. */
async function publishItems(
  reader: RpcReader,
  signals: ReadonlyMap<string, SignalSelectView>,
  signal: AbortSignal,
): Promise<Map<string, InputId>> {
  const inputs = new Map<string, InputId>();
  const all = [...signals];
  for (let first = 0; first < all.length; first += signalsPerPage) {
    const page = all.slice(first, first + signalsPerPage);
    const { itemsBySignal } = await reader.call(
      "admin.publishSignals",
      {
        integration: reader.integration,
        itemsBySignal: Object.fromEntries(page.map(([id, view]) => [id, itemView(view)])),
      },
      publishSignalsResult,
      signal,
    );
    for (const [id, view] of page) {
      const item = itemsBySignal[id]?.id;
      // Beside `inputId`, which the specification does not promise: the default of the name is the Input ID.
      const input = view.inputId ?? view.name;
      if (item !== undefined && isInputId(input)) inputs.set(item, input);
    }
  }
  return inputs;
}

function itemView({
  id: _id,
  meta: _meta,
  item: _item,
  inputId: _inputId,
  ...attributes
}: SignalSelectView): ItemSaveInput {
  return attributes;
}
