// Finds the nodes whose values make any answer fail. Once a minute, monitors again what the server refused, as a program
// may be loaded, a device switched on, or a node created, and what it has forgotten, as after an internal restart.
import { AgentError } from "../../../core/errors.ts";
import type { Logger, Runtime } from "../../../core/runtime.ts";
import type { TagId } from "../../../core/source.ts";
import { type Item, type Resolver, resolveTags, type Tag } from "../nodes/items.ts";
import { addNamespaces } from "../session/server-facts.ts";
import { isTooLarge } from "../stack/failure.ts";
import type { DataValueLike } from "../types/reading.ts";
import { Unreadable } from "../types/value.ts";
import type { Monitoring } from "./monitoring.ts";
import { readItems } from "./polling.ts";
import type { MonitoringFailure } from "./refused-nodes.ts";

export interface RetryOptions {
  readonly tags: readonly (readonly [TagId, Tag])[];
  readonly resolver: Resolver;
  readonly monitoring: Monitoring;
  /** Receives items whose changes were missed, as the server did not monitor them any more. */
  readonly forgotten: (items: readonly Item[]) => void;
  /** Receives items that are monitored from now on. */
  readonly added: (items: readonly Item[]) => void;
  /** Receives failures that are new or have a new reason. */
  readonly failed: (failures: readonly MonitoringFailure[]) => void;
}

const everyMs = 60_000;
/** Patterns are browsed again in the first rounds, as the server may have just started, then in every tenth. */
const firstRounds = 3;
const roundsBetweenBrowses = 10;

/** Runs until `signal` aborts. Rejects with `SOURCE_*` if the connection fails. */
export async function retryFailures(options: RetryOptions, runtime: Runtime, signal: AbortSignal): Promise<never> {
  for (let round = 1; ; round++) {
    await runtime.clock.sleep(everyMs * (0.9 + 0.2 * runtime.random()), signal);
    await retryOnce(options, round <= firstRounds || round % roundsBetweenBrowses === 0, signal);
  }
}

/** One round. `browse`: includes successful patterns, and items that were polled for lack of room. */
async function retryOnce(
  { tags, resolver, monitoring, forgotten, added, failed }: RetryOptions,
  browse: boolean,
  signal: AbortSignal,
): Promise<void> {
  const all = await monitoring.takeFailures(signal);
  const { unreadable = [], others: failures = [] } = Object.groupBy(all, ({ isUnreadable }) =>
    isUnreadable ? "unreadable" : "others",
  );
  const readable = browse ? await readAgain(unreadable, resolver.services, signal) : [];
  monitoring.failures.push(...unreadable.filter(({ item }) => item && !readable.includes(item)));
  const before = new Map(failures.map((failure) => [`${failure.tag} ${failure.address}`, failure.reason]));
  // The path may lead to another node now.
  const paths = new Set(tags.flatMap(([tag, config]) => (config.path === undefined ? [] : [tag])));
  const refused = failures.flatMap(({ item }) => (item && !paths.has(item.tag) ? item : []));
  const unresolved = new Set(failures.flatMap(({ item, tag }) => (item && !paths.has(tag) ? [] : tag)));
  const lookAt = tags.filter(([tag, config]) => unresolved.has(tag) || (browse && config.browse !== undefined));
  if (unresolved.size > 0) await addNamespaces(resolver.services, resolver.namespaces, signal);
  const found = await resolveTags(lookAt, resolver, signal);
  const known = [...monitoring.items(), ...monitoring.polled, ...refused, ...itemsOf(unreadable)];
  const present = new Set(known.map(identity));
  const fresh = [...readable, ...found.items.filter((item) => !present.has(identity(item)))];
  // Changes are missed until the lost items are created again, so that no other work comes in between.
  const lost = await monitoring.takeForgotten(signal);
  if (lost.length > 0) forgotten(lost);
  const stillRefused = await monitoring.add([...refused, ...lost, ...fresh], signal);
  if (browse) await monitoring.add(monitoring.takeCrowdedOut(), signal);
  const failing = new Set(stillRefused.map(({ item }) => item));
  added([...refused, ...fresh].filter((item) => !failing.has(item)));
  // A pattern that finds nothing now keeps its earlier items.
  const stillUnresolved = found.unresolved
    .filter(({ tag }) => unresolved.has(tag))
    .map((failure) => ({ ...failure, captures: {} }));
  monitoring.failures.push(...stillUnresolved);
  const news = [...stillRefused, ...stillUnresolved].filter(
    (failure) => before.get(`${failure.tag} ${failure.address}`) !== failure.reason,
  );
  if (news.length > 0) failed(news);
}

function itemsOf(failures: readonly MonitoringFailure[]): Item[] {
  return failures.flatMap(({ item }) => item ?? []);
}

/** The items of `failures` whose values can be received by now. */
async function readAgain(
  failures: readonly MonitoringFailure[],
  services: Resolver["services"],
  signal: AbortSignal,
): Promise<Item[]> {
  const read = await readItems(services, itemsOf(failures), signal);
  return read.flatMap(([item, { value }]) => (value?.value instanceof Unreadable ? [] : item));
}

function identity({ tag, nodeId }: Item): string {
  return `${tag} ${nodeId.toString()}`;
}

/** How long the agent polls before it tries again. */
const withoutSubscriptionMs = 300_000;

/** Ends a connection that got no subscription, with `SOURCE_UNREACHABLE` after 5 min, or with `signal.reason`. */
export async function openAgain({ clock }: Pick<Runtime, "clock">, signal: AbortSignal): Promise<never> {
  await clock.sleep(withoutSubscriptionMs, signal);
  throw new AgentError("SOURCE_UNREACHABLE", "all subscriptions of the server were taken: looking for one again");
}

/** Advice if tags are polled for lack of room. `noSubscription`: the server had no subscription left. */
export function pollingAdvice(
  { polled, counts: { crowdedOut } }: Pick<Monitoring, "polled" | "counts">,
  noSubscription: boolean,
): string | undefined {
  const tags = (count: number) => `${count} ${count === 1 ? "tag is" : "tags are"} polled instead of subscribed to`;
  if (noSubscription && polled.length > 0)
    return `${tags(polled.length)}, which misses changes between two polls: the server has no subscription left (BadTooManySubscriptions); end one of another client or raise the server's limit; a subscription is tried again every 5 min`;
  if (crowdedOut > 0)
    return `${tags(crowdedOut)}, which misses changes between two polls: the server monitors no more items (BadTooManyMonitoredItems); raise its limit or read fewer tags`;
  return undefined;
}

export interface UnreadableOptions {
  readonly monitoring: Pick<Monitoring, "refuse" | "items">;
  readonly log: Logger;
  /** Reads items soon. `refused` takes back those that are waiting for it. */
  readonly reread: (items: readonly Item[]) => void;
  readonly refused: (items: Iterable<Item>) => void;
  /** Asks for smaller messages. Rejects with `SOURCE_*` if the connection fails. */
  readonly shrink: (signal: AbortSignal) => Promise<void>;
}

/**
 * Finds the nodes whose values make any answer fail, since they are too large or cannot be decoded, so that they cost no
 * other node.
 */
export function unreadableNodes({ monitoring, log, reread, refused, shrink }: UnreadableOptions) {
  let isShrinkingDue = false;

  return {
    /** A notification message could not be received. Either one of its values alone is the cause, or their sum. */
    message(error: unknown): void {
      log.warn({ err: error }, "a notification of the server cannot be received");
      isShrinkingDue ||= isTooLarge(error);
      reread(monitoring.items());
    },
    /** Looks for unreadable nodes in the results of a read. Rejects with `SOURCE_*` if the connection fails. */
    async examine(read: readonly (readonly [Item, DataValueLike])[], signal: AbortSignal): Promise<void> {
      const reasons = new Map<Item, string>();
      for (const [item, { value }] of read)
        if (value?.value instanceof Unreadable) reasons.set(item, value.value.reason);
      for (const [{ address }, reason] of reasons) log.warn({ address, reason }, "a node cannot be read");
      refused(reasons.keys());
      if (reasons.size > 0) await monitoring.refuse(reasons, signal);
      else if (isShrinkingDue) await shrink(signal);
      isShrinkingDue = false;
    },
  };
}
