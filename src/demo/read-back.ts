// Reads all points back from the service without the agent's client, so that the comparison is independent.
import type { z } from "zod";
import { AgentError } from "../core/errors.ts";
import { type EpochMicros, epochMicros, type InputId, isInputId } from "../core/point.ts";
import type { Clock, Runtime } from "../core/runtime.ts";
import { rpcResponse } from "../wire/json-rpc.ts";
import { type ApiVersion, type Method, versionHeader, wireName } from "../wire/method.ts";
import { publishSignalsResult, selectItemsResult, selectSignalsResult } from "../wire/results.ts";
import type { ItemSaveInput, SignalSelectView } from "../wire/signal-view.ts";
import { formatTimestamp, parseTimestamp } from "../wire/timestamp.ts";
import { type Comparison, compare, type DeliveredValues, type Stored } from "./comparison.ts";

/** A half-open interval: `from` is inclusive, `before` exclusive. */
interface Span {
  readonly from: EpochMicros;
  readonly before: EpochMicros;
}

/** Limits of the specification: `signals.limit`, and `items.limit` with data. */
const signalsPerPage = 1_000;
const itemsPerPage = 50;
/** Items without common times need a row for each point. Ten minutes keep the frame small. */
const pageMicros = 600e6;

/** Resolves whatever the comparison says. Rejects with `SERVICE_*` if reading fails, or with `signal.reason`. */
export async function readBackAndCompare(
  options: ReaderOptions,
  delivered: DeliveredValues,
  span: Span,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<Comparison> {
  return compare(delivered, await readBack(options, span, runtime, signal));
}

/** All stored points of the integration within `span`. Publishes the signals first. */
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

/** All signals of the integration, by Signal ID. */
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

/** Publishes each signal with its own metadata. Resolves with the Input ID of each item. */
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
      // The specification does not guarantee `inputId`. The default name equals it.
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

export interface ReaderOptions {
  /** `{base_url}` of the specification; requests go to `{url}/rpc`. */
  readonly url: string;
  readonly integration: string;
  /** For basic authentication; the user name is the Integration ID. */
  readonly password: string;
  readonly apiVersion: ApiVersion;
  /** Prefix of the platform methods. */
  readonly namespace: string;
}

/** Interval for 10 requests/s, the limit of each method. */
const spacingMs = 100;
const timeoutMs = 60_000;

/** Calls the service sequentially, spaced so that no method exceeds its limit. */
class RpcReader {
  readonly #options: ReaderOptions;
  readonly #clock: Clock;
  #id = 0;
  #next = 0;

  constructor(options: ReaderOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
  }

  get integration(): string {
    return this.#options.integration;
  }

  /**
   * Rejects with `SERVICE_UNREACHABLE`, `SERVICE_REFUSED` (credentials), `SERVICE_PROTOCOL` or `signal.reason`. Never
   * retries.
   */
  async call<Result extends z.ZodType>(
    method: Method,
    params: object,
    result: Result,
    signal: AbortSignal,
  ): Promise<z.output<Result>> {
    const wait = this.#next - this.#clock.monotonic();
    if (wait > 0) await this.#clock.sleep(wait, signal);
    this.#next = this.#clock.monotonic() + spacingMs;
    const { integration, password, apiVersion, namespace } = this.#options;
    const name = wireName(method, namespace);
    const { status, body } = await this.#post(
      JSON.stringify({ jsonrpc: "2.0", method: name, id: ++this.#id, params }),
      {
        "content-type": "application/json",
        authorization: `Basic ${Buffer.from(`${integration}:${password}`).toString("base64")}`,
        [versionHeader]: apiVersion,
      },
      signal,
    );
    if (status === 401 || status === 403)
      throw new AgentError("SERVICE_REFUSED", `${name}: the service answered HTTP ${status}`);
    if (status !== 200)
      throw new AgentError("SERVICE_PROTOCOL", `${name}: the service answered HTTP ${status}: ${body.slice(0, 200)}`);
    const response = rpcResponse.parse(JSON.parse(body));
    if ("error" in response && response.error) {
      const { code, message, data } = response.error;
      throw new AgentError("SERVICE_PROTOCOL", `${name}: ${code} ${message} ${JSON.stringify(data?.params ?? {})}`);
    }
    if (!("result" in response)) throw new AgentError("SERVICE_PROTOCOL", `${name}: neither result nor error`);
    return result.parse(response.result);
  }

  async #post(body: string, headers: Record<string, string>, signal: AbortSignal) {
    try {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
      const address = `${this.#options.url.replace(/\/$/, "")}/rpc`;
      const response = await fetch(address, { method: "POST", headers, body, redirect: "manual", signal: limit });
      return { status: response.status, body: await response.text() };
    } catch (error) {
      signal.throwIfAborted();
      throw new AgentError("SERVICE_UNREACHABLE", `${this.#options.url}: ${String(error)}`, { cause: error });
    }
  }
}
