// Tells the operator that tags are polled for want of room at the server, and which limit is to blame.
import type { MonitoredGroups } from "./monitored-groups.ts";

/** Undefined: nothing is polled that could be subscribed to. `noSubscription`: the server had no subscription left. */
export function pollingAdvice(
  { polled, crowdedOut }: Pick<MonitoredGroups, "polled" | "crowdedOut">,
  noSubscription: boolean,
): string | undefined {
  const tags = (count: number) => `${count} ${count === 1 ? "tag is" : "tags are"} polled instead of subscribed to`;
  if (noSubscription && polled.length > 0)
    return `${tags(polled.length)}, which misses changes between two polls: the server has no subscription left (BadTooManySubscriptions); end one of another client or raise the server's limit; a subscription is tried again every 5 min`;
  if (crowdedOut > 0)
    return `${tags(crowdedOut)}, which misses changes between two polls: the server monitors no more items (BadTooManyMonitoredItems); raise its limit or read fewer tags`;
  return undefined;
}
