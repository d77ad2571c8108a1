// Compares signals with the service: saves lost or changed ones again, and publishes qualified ones.
import { setImmediate } from "node:timers/promises";
import { errorCodes, isAgentError, reasonOf } from "../../core/errors.ts";
import type { EpochMicros, InputId } from "../../core/point.ts";
import { checkGridMs, type Runtime } from "../../core/runtime.ts";
import { BackOff } from "../../lib/flow/repeat.ts";
import type { MethodCaller } from "../client/method-caller.ts";
import type { ServiceOptions } from "../client/options.ts";
import { canonicalJson } from "./attribute-map.ts";
import type { Catalog } from "./catalog.ts";
import { ItemPublisher, type PlannedItem } from "./item-publisher.ts";
import type { PublishedItems } from "./signal-files.ts";
import { type ReviewedSignal, reviewSignals } from "./stored-signals.ts";

export interface SignalWatchParts {
  readonly options: ServiceOptions;
  readonly caller: MethodCaller;
  readonly catalog: Catalog;
  /** Whether the configuration contains an input or can produce it. */
  readonly configured: (input: string) => boolean;
  /** Undefined: publishing is disabled. The caller disposes it. */
  readonly published: PublishedItems | undefined;
}

const pollMs = 1_000;
/** New metadata is saved before a comparison, which waits at most this long. */
const patienceMs = 60_000;
/** Least interval of comparisons that newly saved signals trigger. */
const newsMs = 10_000;
const firstMs = 5_000;
/** Signals to plan before other tasks run. */
const slice = 50;

const resaved = { name: "upload_signals_resaved_total", help: "Signals lost or changed at the service." } as const;
const publications = { name: "upload_items_published_total", help: "Items created or updated by publishing." } as const;

export interface NamedReason {
  readonly input: string;
  readonly reason: string;
}

/** Total count, and the first entries. */
export interface Named<T = NamedReason> {
  readonly count: number;
  readonly first: readonly T[];
}

export interface SignalWatchStatus {
  /** Time of the last complete comparison. Undefined: none yet. */
  readonly checkedAt: EpochMicros | undefined;
  /** Why comparisons fail at present, with the remedy. */
  readonly error: { readonly message: string; readonly hint: string | undefined } | undefined;
  /** Signals lost or changed at the service since the start, and saved again. */
  readonly lost: number;
  readonly changed: number;
  /** Signals that still differ after they were saved again. */
  readonly kept: Named;
  /** Input IDs of the service that are not configured. Never modified. */
  readonly unconfigured: Named<string>;
  /** Undefined: publishing is disabled. */
  readonly items:
    | {
        /** Created or updated since the start. */
        readonly published: number;
        /** Not qualified; `reason` names what is missing. */
        readonly unfit: Named;
        /** Attributes that a person changed, which stay. */
        readonly edited: Named;
        readonly refused: Named;
      }
    | undefined;
}

interface ItemTally {
  published: number;
  readonly refused: NamedReason[];
  readonly unfit: NamedReason[];
  readonly edited: NamedReason[];
}

const mostNamed = 20;

function named<T>(all: readonly T[]): Named<T> {
  return { count: all.length, first: all.slice(0, mostNamed) };
}

export type SignalWatch = ReturnType<typeof signalWatch>;

export function signalWatch(parts: SignalWatchParts, runtime: Runtime) {
  /** Inputs saved since the current comparison began. The signals that it reads may be older. */
  const savedMeanwhile = new Set<InputId>();
  /** Input → difference that was saved again. If the next comparison finds it unchanged, saving does not help. */
  const savedAgain = new Map<InputId, string>();
  let current: SignalWatchStatus = {
    checkedAt: undefined,
    error: undefined,
    lost: 0,
    changed: 0,
    kept: named([]),
    unconfigured: named([]),
    items: undefined,
  };
  let news = false;
  const { published, options, caller } = parts;
  const { publish: mode, require } = options.signals;
  const backOff = new BackOff({ minMs: 30_000, maxMs: 600_000, random: runtime.random });
  const itemPublisher =
    published && mode !== "off" ? new ItemPublisher({ caller, published, mode, require, log: runtime.log }) : undefined;

  /** Resolves with milliseconds to wait before a retry; 0 after success. */
  async function compare(stop: AbortSignal): Promise<number> {
    news = false;
    savedMeanwhile.clear();
    try {
      await review(stop);
      backOff.reset();
      return 0;
    } catch (error) {
      if (stop.aborted) return 0;
      news = true;
      const message = reasonOf(error);
      const refused = isAgentError(error, "SERVICE_REFUSED");
      const hint = refused
        ? "check service.auth; where that is right, grant the integration access to the Admin namespace, or set service.signals.check and publish to off"
        : isAgentError(error)
          ? errorCodes[error.code].hint
          : undefined;
      if (current.error?.message !== message)
        runtime.log.warn({ reason: message, hint }, "signals cannot be compared with the service for now");
      current = { ...current, error: { message, hint } };
      return refused ? patienceMs * 10 : backOff.next();
    }
  }

  async function review(stop: AbortSignal): Promise<void> {
    const { catalog, configured } = parts;
    const { log, clock } = runtime;
    const found = { lost: 0, changed: 0, kept: [] as NamedReason[] };
    const items: ItemTally = { published: 0, refused: [], unfit: [], edited: [] };
    const { missing, unconfigured } = await reviewSignals(
      caller,
      {
        inputs: () => catalog.inputs(),
        metadata: (input) => catalog.entry(input)?.signal,
        configured,
      },
      {
        items: itemPublisher !== undefined,
        each: async (page) => {
          for (const signal of page) if (resave(signal, found.kept)) found.changed++;
          await publishItems(page, items, stop);
        },
      },
      stop,
    );
    for (const input of missing) if (isLost(input, found.kept)) found.lost++;
    if (found.lost + found.changed > 0)
      log.warn(
        { lost: found.lost, changed: found.changed },
        "signals were lost or changed at the service, they are saved again",
      );
    if (items.published > 0) log.info({ items: items.published }, "items published");
    runtime.metrics.counter(resaved).add(found.lost + found.changed);
    const { published, unfit, edited, refused } = items;
    const before = current;
    current = {
      checkedAt: clock.now(),
      error: undefined,
      lost: before.lost + found.lost,
      changed: before.changed + found.changed,
      kept: named(found.kept),
      unconfigured: named(unconfigured),
      items: itemPublisher && {
        published: (before.items?.published ?? 0) + published,
        unfit: named(unfit),
        edited: named(edited),
        refused: named(refused),
      },
    };
    if (unconfigured.length > before.unconfigured.count)
      log.info(
        { inputs: unconfigured.length, first: unconfigured[0] },
        "the service has signals that are not configured",
      );
  }

  /** Whether a signal was changed at the service and must be saved again. */
  function resave({ input, changes, stored }: ReviewedSignal, kept: NamedReason[]): boolean {
    const { catalog } = parts;
    const entry = catalog.entry(input);
    catalog.learn(input, stored.id);
    if (changes.length === 0) savedAgain.delete(input);
    // With `createOnly`, differences are intended.
    if (changes.length === 0 || options.signals.createOnly || !entry?.saved) return false;
    const reason = changes.map(({ attribute }) => attribute).join(", ");
    return again(input, `${entry.hash} ${canonicalJson(changes)}`, `keeps its own ${reason}`, kept);
  }

  function isLost(input: InputId, kept: NamedReason[]): boolean {
    const entry = parts.catalog.entry(input);
    return entry?.saved === true && again(input, `${entry.hash} lost`, "does not show it though it was saved", kept);
  }

  function again(input: InputId, what: string, reason: string, kept: NamedReason[]): boolean {
    if (savedMeanwhile.has(input)) return false;
    if (savedAgain.get(input) === what) {
      kept.push({ input, reason });
      return false;
    }
    savedAgain.set(input, what);
    parts.catalog.markSaved(input, undefined, undefined);
    return true;
  }

  async function publishItems(page: readonly ReviewedSignal[], tally: ItemTally, stop: AbortSignal): Promise<void> {
    const publisher = itemPublisher;
    if (!publisher) return;
    const planned: PlannedItem[] = [];
    for (const [i, { input, signal, stored }] of page.entries()) {
      if (i % slice === slice - 1) await setImmediate();
      planned.push(publisher.plan(input, signal, stored));
    }
    const { published, refused } = await publisher.publish(planned, stop);
    tally.published += published.length;
    tally.refused.push(...refused);
    for (const { input, plan } of planned) {
      if (plan.action === "unfit") tally.unfit.push({ input, reason: plan.missing.join(", ") });
      else if ((plan.action === "keep" || plan.action === "update") && plan.edited.length > 0)
        tally.edited.push({ input, reason: plan.edited.map(({ attribute }) => attribute).join(", ") });
    }
    runtime.metrics.counter(publications).add(published.length);
  }

  return {
    status: (): SignalWatchStatus => current,
    /** The metadata of these inputs was saved. */
    saved(inputs: readonly InputId[]): void {
      for (const input of inputs) savedMeanwhile.add(input);
      news = true;
    },
    /** Compares at intervals until `stop` aborts, then resolves. */
    async run(stop: AbortSignal): Promise<void> {
      const { clock } = runtime;
      const { check } = parts.options.signals;
      const everyMs = check === "off" ? Number.POSITIVE_INFINITY : check;
      let due = clock.monotonic() + firstMs;
      let earliest = due;
      while (!stop.aborted) {
        await clock.sleep(pollMs, stop, checkGridMs).catch(() => {});
        const now = clock.monotonic();
        const wanted = now >= due || (news && itemPublisher !== undefined);
        const settled = parts.catalog.pending.size === 0 || now >= due + patienceMs;
        if (stop.aborted || !wanted || !settled || now < earliest) continue;
        const waitMs = await compare(stop);
        earliest = clock.monotonic() + Math.max(newsMs, waitMs);
        due = clock.monotonic() + (waitMs > 0 ? Math.min(waitMs, everyMs) : everyMs);
      }
    },
  };
}
