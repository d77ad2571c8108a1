// Groups tags with the same publishing interval into subscriptions, so that slow tags do not delay fast ones. Pure.
import type { OpcuaOptions } from "../config/options.ts";

export interface PublishingGroup {
  /** Identifies the group in the stored session record. */
  readonly key: string;
  /** Requested publishing interval, in milliseconds. */
  readonly publishingMs: number;
}

/** Few, since servers limit subscriptions. The longest still suits a live display. */
const intervals = [100, 250, 500, 1_000] as const;
/** Most subscriptions of one source. */
const mostGroups = 10;

/** The longest interval that does not exceed the sampling interval `everyMs`. */
export function publishingFor({ subscription }: Pick<OpcuaOptions, "subscription">, everyMs: number): number {
  return subscription.publishing ?? intervals.findLast((interval) => interval <= everyMs) ?? intervals[0];
}

/** At least one group, fastest first; several per interval if it has more than `limit` items (0: no limit). */
export function planGroups(
  options: Pick<OpcuaOptions, "subscription">,
  everyMs: readonly number[],
  limit: number,
): PublishingGroup[] {
  const counts = new Map<number, number>();
  for (const every of everyMs.length > 0 ? everyMs : [1_000]) {
    const publishingMs = publishingFor(options, every);
    counts.set(publishingMs, (counts.get(publishingMs) ?? 0) + 1);
  }
  const sorted = [...counts].toSorted(([a], [b]) => a - b);
  let spare = Math.max(0, mostGroups - sorted.length);
  return sorted.flatMap(([publishingMs, items]) => {
    const more = Math.min(spare, limit > 0 ? Math.ceil(items / limit) - 1 : 0);
    spare -= more;
    return Array.from({ length: more + 1 }, (_, i) => ({
      key: i === 0 ? `${publishingMs}` : `${publishingMs}/${i + 1}`,
      publishingMs,
    }));
  });
}

/** The slowest group that is fast enough, else the fastest; of several, that with the fewest items. */
export function groupFor<G extends Pick<PublishingGroup, "publishingMs"> & { readonly items: number }>(
  groups: readonly G[],
  publishingMs: number,
): G | undefined {
  const fitting = groups.filter((group) => group.publishingMs <= publishingMs);
  const slowest = Math.max(...fitting.map((group) => group.publishingMs));
  const fastest = Math.min(...groups.map((group) => group.publishingMs));
  const wanted = fitting.length > 0 ? slowest : fastest;
  return groups.filter((group) => group.publishingMs === wanted).toSorted((a, b) => a.items - b.items)[0];
}

export interface Counts {
  readonly publishingMs: number;
  readonly keepAliveCount: number;
  readonly lifetimeCount: number;
}

export function requestedCounts({ subscription }: OpcuaOptions, publishingMs: number): Counts {
  const keepAliveCount = Math.max(3, Math.ceil(subscription.keepAlive / publishingMs));
  const lifetimeCount = Math.max(3 * keepAliveCount, Math.ceil(subscription.lifetime / publishingMs));
  return { publishingMs, keepAliveCount, lifetimeCount };
}

/** Queue size for sampling on each change. */
const unsteady = 100;

/** Sizes the queue (2 to 1,000) for all values of a publishing interval and of an interruption of `bridge`. */
export function queueSize({ subscription }: OpcuaOptions, everyMs: number, publishingMs: number): number {
  if (subscription.queue !== "auto") return subscription.queue;
  if (everyMs === 0) return unsteady;
  const samples = Math.max(1, everyMs);
  const needed = Math.max(2 * Math.ceil(publishingMs / samples) + 2, Math.ceil(subscription.bridge / samples));
  return Math.min(1_000, Math.max(2, needed));
}

/** Longest silence of a healthy server, with a margin for slow networks. */
export function silenceLimitMs({ keepAliveCount, publishingMs }: Counts): number {
  return (keepAliveCount + 2) * publishingMs + 5_000;
}

/** Subscription parameters for the status page. Lists distinct values, fastest first. */
export function subscriptionDetails(
  subscriptions: readonly (Counts & { readonly wanted: Counts; readonly origin: string })[],
) {
  const all = (text: (subscription: (typeof subscriptions)[number]) => string) =>
    [...new Set(subscriptions.map(text))].join(", ");
  return {
    publishing: all(({ publishingMs, wanted }) => {
      const slower = publishingMs > wanted.publishingMs ? ` (asked for ${wanted.publishingMs} ms)` : "";
      return `${publishingMs} ms${slower}`;
    }),
    keepAlive: all(({ publishingMs, keepAliveCount }) => `${publishingMs * keepAliveCount} ms`),
    lifetime: all(({ publishingMs, lifetimeCount, wanted }) => {
      const [given, asked] = [publishingMs * lifetimeCount, wanted.publishingMs * wanted.lifetimeCount];
      return `${given} ms${given < asked ? ` (asked for ${asked} ms)` : ""}`;
    }),
    subscription: all(({ origin }) => origin),
  };
}
