// The signals of the integration as the service has them, read in pages, in the dialect of the version that is spoken.
import { z } from "zod";
import { AgentError } from "../core/errors.ts";
import type { SignalId } from "../core/point.ts";
import type { ApiVersion } from "../wire/api-version.ts";
import { selectSignalsResult } from "../wire/select-signals.ts";
import { signalAttributes } from "../wire/signal-view.ts";
import { firstRequestId } from "./frame-plan.ts";
import type { Pacer } from "./pacer.ts";
import type { Call, Verdict } from "./rpc-client.ts";

/** Attributes as the service gives them; those it gives in a form that is not known are left out. */
export type StoredAttributes = z.output<typeof signalAttributes>;

export interface StoredSignal {
  readonly id: SignalId;
  /** Undefined: the service does not say, which the specification allows. */
  readonly input: string | undefined;
  readonly attributes: StoredAttributes;
}

export interface StoredSignalsParts {
  readonly integration: string;
  readonly apiVersion: ApiVersion;
  /** Of `admin.selectSignals`. */
  readonly pacer: Pacer;
  readonly call: (call: Call, signal: AbortSignal) => Promise<Verdict>;
}

/** `signals.limit` at most. */
const perPage = 1_000;
/** A signal takes 10 kB where its labels and states are many. */
const maxAnswerBytes = 16 * 2 ** 20;

/** The current dialect, as far as it is read. */
const selection = z.object({
  data: z.array(
    z.object({
      id: z.string(),
      meta: z.object({ annotations: z.record(z.string(), z.string()).nullish() }).optional(),
      attributes: z.record(z.string(), z.unknown()),
    }),
  ),
});

/**
 * Reads them all. Resolves undefined where the service does not let us: it needs a grant, and version 1.0 has no such
 * method. Rejects with `SERVICE_UNREACHABLE`
 * or `SERVICE_PROTOCOL` when a page cannot be read (nothing is tried again), or with `signal.reason`.
 */
export async function readStoredSignals(
  { integration, apiVersion, pacer, call }: StoredSignalsParts,
  signal: AbortSignal,
): Promise<readonly StoredSignal[] | undefined> {
  if (apiVersion === "1.0") return undefined;
  const all = new Map<SignalId, StoredSignal>();
  for (let page = 0; ; page++) {
    const id = firstRequestId + page;
    const params = apiVersion === "1.1" ? currentParams(integration, page) : firstParams(integration, page);
    const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", method: "admin.selectSignals", id, params }), "utf8");
    const verdict = await pacer.run(() => call({ id, body, maxAnswerBytes }, signal), signal);
    if (verdict.kind === "unauthorized") return undefined;
    if (verdict.kind === "unavailable") throw verdict.cause;
    if (verdict.kind !== "done")
      throw new AgentError(
        "SERVICE_PROTOCOL",
        `signals cannot be read: ${"reason" in verdict ? verdict.reason : verdict.kind}`,
      );
    const stored = apiVersion === "1.1" ? currentSignals(verdict.result) : firstSignals(verdict.result);
    if (!stored) throw new AgentError("SERVICE_PROTOCOL", "the answer to admin.selectSignals has another shape");
    for (const each of stored) all.set(each.id, each);
    if (stored.length < perPage) return [...all.values()];
  }
}

function firstParams(integration: string, page: number): object {
  return { integration, signals: { include: true, limit: perPage, skip: page * perPage }, items: { include: false } };
}

function currentParams(integration: string, page: number): object {
  return {
    integration,
    // Pages need an order; the service promises none.
    query: { sort: ["id"], limit: perPage, skip: page * perPage, total: false },
    format: { dataAsArray: true, groupIncludedByType: false },
  };
}

function firstSignals(result: unknown): StoredSignal[] | undefined {
  const parsed = selectSignalsResult.safeParse(result);
  if (!parsed.success) return undefined;
  return Object.entries(parsed.data.signals ?? {}).map(([id, { inputId, ...view }]) => ({
    // The service's own.
    id: id as SignalId,
    input: inputId,
    attributes: known(view),
  }));
}

function currentSignals(result: unknown): StoredSignal[] | undefined {
  const parsed = selection.safeParse(result);
  if (!parsed.success) return undefined;
  return parsed.data.data.map(({ id, meta, attributes: { input, valueType, ...attributes } }) => ({
    // The service's own.
    id: id as SignalId,
    input: typeof input === "string" ? input : undefined,
    attributes: known({ ...attributes, type: valueType, annotations: meta?.annotations ?? {} }),
  }));
}

/** One attribute in a form that is not known does not hide the others. */
function known(view: Readonly<Record<string, unknown>>): StoredAttributes {
  const attributes = Object.entries(signalAttributes.shape).flatMap(([name, schema]) => {
    const value = schema.safeParse(view[name]);
    return value.success && value.data !== undefined ? [[name, value.data] as const] : [];
  });
  return signalAttributes.parse(Object.fromEntries(attributes));
}
