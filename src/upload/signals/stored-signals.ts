// Reads the signals of the integration and their items from the service in pages, in the dialect of the current
// version.
import { setImmediate } from "node:timers/promises";
import { z } from "zod";
import { type InputId, isInputId, type SignalId } from "../../core/point.ts";
import type { PartialSignalMetadata } from "../../core/signal.ts";
import { selectSignalsResult } from "../../wire/results.ts";
import { signalAttributes } from "../../wire/signal-view.ts";
import type { MethodCaller } from "../client/method-caller.ts";
import { type AttributeChange, changesOf, type StoredAttributes, signalView } from "./attribute-map.ts";

export interface StoredItem {
  readonly id: string;
  readonly attributes: StoredAttributes;
  /** Only in the current dialect. */
  readonly visible: boolean | undefined;
}

export interface StoredSignal {
  readonly id: SignalId;
  /** Undefined: the service omits it, as the specification permits. */
  readonly input: string | undefined;
  readonly attributes: StoredAttributes;
  /** ID of the signal's item. Undefined: none. */
  readonly itemId: string | undefined;
  /** The item, if it was requested and returned. */
  readonly item: StoredItem | undefined;
}

export interface StoredSignalsQuery {
  readonly items: boolean;
  /** Restricts the result. Undefined: all signals. */
  readonly ids?: readonly SignalId[];
}

/** The service permits 1,000. Half of it halves the time during which parsing blocks other tasks. */
const perPage = 500;

/** The used part of a resource in the current dialect. */
const resource = z.object({
  id: z.string(),
  meta: z.object({ annotations: z.record(z.string(), z.string()).nullish() }).optional(),
  attributes: z.record(z.string(), z.unknown()),
  relationships: z
    .object({ item: z.object({ data: z.object({ id: z.string() }).nullish() }).optional() })
    .nullish()
    .catch(undefined),
});
const selection = z.object({
  data: z.array(resource),
  included: z
    .object({ items: z.array(resource).nullish() })
    .nullish()
    .catch(undefined),
});
type Resource = z.output<typeof resource>;

/**
 * Yields pages of signals. Rejects with `SERVICE_REFUSED` without the grant of the Admin namespace, with
 * `SERVICE_UNREACHABLE` or `SERVICE_PROTOCOL` if a page cannot be read, or with `signal.reason`.
 */
export async function* storedSignals(
  caller: MethodCaller,
  query: StoredSignalsQuery,
  signal: AbortSignal,
): AsyncGenerator<readonly StoredSignal[]> {
  const { ids, items } = query;
  const read = caller.version === "1.1" ? readCurrent : readSpecified;
  for (let skip = 0; ids === undefined || skip < ids.length; skip += perPage) {
    // Pages of given IDs, so that none is skipped if a signal is created meanwhile.
    const some = ids?.slice(skip, skip + perPage);
    const filter = some && { id: { $in: some } };
    const page = await read(caller, { items, filter, skip: some ? 0 : skip }, signal);
    yield page;
    if (!some && page.length < perPage) return;
  }
}

interface PageQuery {
  readonly items: boolean;
  readonly filter: object | undefined;
  readonly skip: number;
}

async function readSpecified(
  caller: MethodCaller,
  { items, filter, skip }: PageQuery,
  signal: AbortSignal,
): Promise<readonly StoredSignal[]> {
  const params = {
    integration: caller.integration,
    signals: { include: true, limit: perPage, skip, ...(filter && { filter }) },
    items: { include: items },
  };
  const { signals = {}, items: included = {} } = await caller.call(
    "admin.selectSignals",
    params,
    selectSignalsResult,
    signal,
  );
  return Object.entries(signals).map(([id, { inputId, item, ...view }]) => {
    const found = item ? included[item] : undefined;
    return {
      // assigned by the service
      id: id as SignalId,
      input: inputId,
      attributes: known(view),
      itemId: item ?? undefined,
      item: item && found ? { id: item, attributes: known(found), visible: undefined } : undefined,
    };
  });
}

async function readCurrent(
  caller: MethodCaller,
  { items, filter = {}, skip }: PageQuery,
  signal: AbortSignal,
): Promise<readonly StoredSignal[]> {
  const params = {
    integration: caller.integration,
    // Pagination needs an order, and the service guarantees none by default.
    query: { filter, sort: ["id"], limit: perPage, skip, total: false },
    include: items ? ["item"] : [],
    format: { dataAsArray: true, groupIncludedByType: true },
  };
  const { data, included } = await caller.call("admin.selectSignals", params, selection, signal);
  const byId = new Map((included?.items ?? []).map((item) => [item.id, item]));
  return data.map(({ id, meta, attributes, relationships }) => {
    const itemId = relationships?.item?.data?.id;
    const item = itemId === undefined ? undefined : byId.get(itemId);
    const input = attributes["input"];
    return {
      // assigned by the service
      id: id as SignalId,
      input: typeof input === "string" ? input : undefined,
      attributes: currentAttributes({ meta, attributes }),
      itemId,
      item: item && {
        id: item.id,
        attributes: currentAttributes(item),
        visible: typeof item.attributes["visible"] === "boolean" ? item.attributes["visible"] : undefined,
      },
    };
  });
}

function currentAttributes({ meta, attributes }: Pick<Resource, "meta" | "attributes">): StoredAttributes {
  return known({ ...attributes, type: attributes["valueType"], annotations: meta?.annotations ?? {} });
}

/** Parses attributes individually, so that an unknown form does not affect the others. */
function known(view: Readonly<Record<string, unknown>>): StoredAttributes {
  const attributes = Object.entries(signalAttributes.shape).flatMap(([name, schema]) => {
    const value = schema.safeParse(view[name]);
    return value.success && value.data !== undefined ? [[name, value.data] as const] : [];
  });
  return signalAttributes.parse(Object.fromEntries(attributes));
}

export interface OurSignals {
  inputs(): Iterable<InputId>;
  metadata(input: InputId): PartialSignalMetadata | undefined;
  /** Whether the configuration contains the input or can produce it. */
  configured(input: string): boolean;
}

/** A signal of the agent that exists at the service. */
export interface ReviewedSignal {
  readonly input: InputId;
  readonly signal: PartialSignalMetadata;
  readonly stored: StoredSignal;
  readonly changes: readonly AttributeChange[];
}

export interface SignalReview {
  /** Inputs of the agent that the service does not have. Empty if the service hides Input IDs. */
  readonly missing: readonly InputId[];
  /** Input IDs of the service that are not configured. Never modified. */
  readonly unconfigured: readonly string[];
  /** Signals without an Input ID, which cannot be compared. */
  readonly nameless: number;
}

export interface ReviewOptions {
  readonly items: boolean;
  /** Receives the agent's signals of a page before the next one is read. */
  readonly each: (reviewed: readonly ReviewedSignal[]) => Promise<void>;
}

/** Signals to compare before other tasks run. */
const slice = 50;

/** Resolves after all pages. Rejects as `storedSignals` and `each` do. */
export async function reviewSignals(
  caller: MethodCaller,
  ours: OurSignals,
  { items, each }: ReviewOptions,
  signal: AbortSignal,
): Promise<SignalReview> {
  const seen = new Set<string>();
  const unconfigured = new Set<string>();
  let nameless = 0;
  for await (const page of storedSignals(caller, { items }, signal)) {
    const reviewed: ReviewedSignal[] = [];
    for (const [i, stored] of page.entries()) {
      if (i % slice === slice - 1) await setImmediate();
      const { input, attributes } = stored;
      if (input === undefined) nameless++;
      else if (!ours.configured(input)) unconfigured.add(input);
      else if (isInputId(input) && !seen.has(input)) {
        seen.add(input);
        const known = ours.metadata(input);
        const view = known && signalView(input, known);
        if (view) reviewed.push({ input, signal: known, stored, changes: changesOf(view, attributes) });
      }
    }
    await each(reviewed);
  }
  const missing =
    nameless > 0 ? [] : Array.from(ours.inputs()).filter((input) => !seen.has(input) && ours.configured(input));
  return { missing, unconfigured: [...unconfigured].sort(), nameless };
}
