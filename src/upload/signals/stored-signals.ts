// The signals of the integration as the service has them, and the items made of them, in pages, in the dialect of the
// version that is spoken.
import { z } from "zod";
import type { SignalId } from "../../core/point.ts";
import { selectSignalsResult } from "../../wire/results.ts";
import { signalAttributes } from "../../wire/signal-view.ts";
import type { MethodCaller } from "../client/method-caller.ts";

/** Attributes as the service gives them; those it gives in a form that is not known are left out. */
export type StoredAttributes = z.output<typeof signalAttributes>;

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
  const { ids } = query;
  for (let skip = 0; ids === undefined || skip < ids.length; skip += perPage) {
    // Of named signals a page is those named, so that none is skipped when another is created meanwhile.
    const some = ids?.slice(skip, skip + perPage);
    const page = await readPage(caller, query.items, some, some ? 0 : skip, signal);
    yield page;
    if (!some && page.length < perPage) return;
  }
}

function readPage(
  caller: MethodCaller,
  items: boolean,
  ids: readonly SignalId[] | undefined,
  skip: number,
  signal: AbortSignal,
): Promise<readonly StoredSignal[]> {
  return caller.version === "1.1"
    ? readCurrent(caller, items, ids, skip, signal)
    : readSpecified(caller, items, ids, skip, signal);
}

async function readSpecified(
  caller: MethodCaller,
  items: boolean,
  ids: readonly SignalId[] | undefined,
  skip: number,
  signal: AbortSignal,
): Promise<readonly StoredSignal[]> {
  const { signals = {}, items: included = {} } = await caller.call(
    "admin.selectSignals",
    {
      integration: caller.integration,
      signals: { include: true, limit: perPage, skip, ...(ids && { filter: { id: { $in: ids } } }) },
      items: { include: items },
    },
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
  items: boolean,
  ids: readonly SignalId[] | undefined,
  skip: number,
  signal: AbortSignal,
): Promise<readonly StoredSignal[]> {
  const { data, included } = await caller.call(
    "admin.selectSignals",
    {
      integration: caller.integration,
      query: {
        filter: ids ? { id: { $in: ids } } : {},
        // Pages need an order; the service promises none.
        sort: ["id"],
        limit: perPage,
        skip,
        total: false,
      },
      include: items ? ["item"] : [],
      format: { dataAsArray: true, groupIncludedByType: true },
    },
    selection,
    signal,
  );
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
