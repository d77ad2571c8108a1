// Groups tags into subscriptions and sets the parameters of each. Tags share a subscription if they have the same publishing
// interval, so that slow tags do not delay fast ones. Pure.
import type { OpcuaOptions } from "../config/options.ts";

export interface PublishingGroup {
  /** Names it in the record of a connection. */
  readonly key: string;
  /** Publishing interval to ask for, in milliseconds. */
  readonly publishingMs: number;
}

/** Few, since servers have few subscriptions to give; the slowest is what a person at the status page can wait for. */
const intervals = [100, 250, 500, 1_000] as const;
/** Most subscriptions that one source takes. */
const mostGroups = 10;

/** Publishing interval for a tag that is sampled every `everyMs`: the longest of `intervals` that is not longer. */
export function publishingFor({ subscription }: Pick<OpcuaOptions, "subscription">, everyMs: number): number {
  return subscription.publishing ?? intervals.findLast((interval) => interval <= everyMs) ?? intervals[0];
}

/**
 * The groups that tags sampled every `everyMs` need, fastest first; more than one of an interval where a server takes no
 * more than `limit` items in a subscription (0: it says nothing). At least one.
 */
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

/**
 * Which of the groups there are takes an item: the slowest that is not too slow, of those with room, else the fastest; of
 * several the one with the fewest. Undefined: there are none.
 */
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

/** Values to keep of an item that is sampled whenever it changes. */
const unsteady = 100;

/** Values to keep for one item, so that neither a publishing interval nor an interruption of `bridge` overwrites one. */
export function queueSize({ subscription }: OpcuaOptions, everyMs: number, publishingMs: number): number {
  if (subscription.queue !== "auto") return subscription.queue;
  if (everyMs === 0) return unsteady;
  const samples = Math.max(1, everyMs);
  const needed = Math.max(2 * Math.ceil(publishingMs / samples) + 2, Math.ceil(subscription.bridge / samples));
  return Math.min(1_000, Math.max(2, needed));
}

/** Longest silence of a healthy server, with room for a slow network. */
export function silenceLimitMs({ keepAliveCount, publishingMs }: Counts): number {
  return (keepAliveCount + 2) * publishingMs + 5_000;
}

/** What the status page shows of a connection's subscriptions: of several what differs, the fastest first. */
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
