// The signals of the integration as the service has them, and the items made of them, in pages, in the dialect of the
// version that is spoken.
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
  /** Current dialect only. */
  readonly visible: boolean | undefined;
}

export interface StoredSignal {
  readonly id: SignalId;
  /** Undefined: the service does not say, which the specification allows. */
  readonly input: string | undefined;
  readonly attributes: StoredAttributes;
  /** Item ID of the item that was made of it; undefined: none. */
  readonly itemId: string | undefined;
  /** That item, where items were asked for and the service gave it. */
  readonly item: StoredItem | undefined;
}

export interface StoredSignalsQuery {
  /** Whether the items are wanted too. */
  readonly items: boolean;
  /** Only these; undefined: all. */
  readonly ids?: readonly SignalId[];
}

/** The service gives 1,000 at most; half of it is parsed in half the time, and others run in between. */
const perPage = 500;

/** A resource of the current dialect, as far as it is read. */
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
 * Reads them page by page. Needs the grant of the Admin namespace: rejects with `SERVICE_REFUSED` without it, with
 * `SERVICE_UNREACHABLE` or `SERVICE_PROTOCOL` when a page cannot be read (nothing is tried again), or with `signal.reason`.
 */
export async function* storedSignals(
  caller: MethodCaller,
  query: StoredSignalsQuery,
  signal: AbortSignal,
): AsyncGenerator<readonly StoredSignal[]> {
  const { ids, items } = query;
  const read = caller.version === "1.1" ? readCurrent : readSpecified;
  for (let skip = 0; ids === undefined || skip < ids.length; skip += perPage) {
    // Of named signals a page is those named, so that none is skipped when another is created meanwhile.
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
      // The service's own.
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
    // Pages need an order; the service promises none.
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
      // The service's own.
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

/** One attribute in a form that is not known does not hide the others. */
function known(view: Readonly<Record<string, unknown>>): StoredAttributes {
  const attributes = Object.entries(signalAttributes.shape).flatMap(([name, schema]) => {
    const value = schema.safeParse(view[name]);
    return value.success && value.data !== undefined ? [[name, value.data] as const] : [];
  });
  return signalAttributes.parse(Object.fromEntries(attributes));
}

/** What is to be there. */
export interface OurSignals {
  /** Of which something is known. */
  inputs(): Iterable<InputId>;
  metadata(input: InputId): PartialSignalMetadata | undefined;
  /** Whether the configuration has it, or may give rise to it. */
  configured(input: string): boolean;
}

/** A signal at the service that is ours. */
export interface ReviewedSignal {
  readonly input: InputId;
  /** As it is to be. */
  readonly signal: PartialSignalMetadata;
  readonly stored: StoredSignal;
  /** Where the service has it otherwise. */
  readonly changes: readonly AttributeChange[];
}

export interface SignalReview {
  /** Ours, and the service does not have them. Empty where it hides Input IDs. */
  readonly missing: readonly InputId[];
  /** Input IDs that the service has and the configuration has not: shown, never touched. */
  readonly unconfigured: readonly string[];
  /** Signals that the service gives without an Input ID: nothing can be said of them. */
  readonly nameless: number;
}

export interface ReviewOptions {
  /** Whether the items are read too. */
  readonly items: boolean;
  /** Given those of ours that a page has, before the next one is read. */
  readonly each: (reviewed: readonly ReviewedSignal[]) => Promise<void>;
}

/** So many are compared before others run. */
const slice = 50;

/** Resolves when all are read. Rejects as `storedSignals` and `each` do. */
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
