// A notification message as the source uses it: the changes in it, whether it is the last one of its subscription, and whether a
// queue at the server may have been too short although no value says so.
import type { NotificationMessage } from "node-opcua-client";
import type { Ua } from "../session/stack.ts";
import { DecodedChange } from "../types/plain-value.ts";
import { type NotifiedValue, overflowed } from "../types/reading.ts";

export type Acknowledgement = Pick<Notification, "subscription" | "sequenceNumber">;

export interface DataChange {
  readonly handle: number;
  readonly value: NotifiedValue;
}

/** One notification message with data. */
export interface Notification {
  readonly subscription: number;
  readonly sequenceNumber: number;
  readonly changes: readonly DataChange[];
  /** Was on disk before, as far as is known: it comes again since the server was not told. */
  readonly old: boolean;
}

/** `ended`: the server says that the subscription ends, and why. */
export function readNotification(
  ua: Ua,
  subscription: number,
  message: NotificationMessage,
): { readonly notification: Omit<Notification, "old">; readonly ended: string | undefined } {
  const changes: DataChange[] = [];
  let ended: string | undefined;
  for (const data of message.notificationData ?? [])
    if (data instanceof ua.DataChangeNotification)
      for (const each of data.monitoredItems ?? [])
        changes.push(each instanceof DecodedChange ? each : { handle: each.clientHandle, value: each.value });
    else if (data instanceof ua.StatusChangeNotification) ended = data.status.name;
  return { notification: { subscription, sequenceNumber: message.sequenceNumber, changes }, ended };
}

interface Change {
  readonly handle: number;
  readonly value: { readonly statusCode: { readonly value: number } };
}

/** What is known of an item's queue. */
export interface Queue {
  /** Length of the server's queue; 0: unknown. */
  readonly size: number;
  /** Most values that come between two notifications when all goes well. */
  readonly usual: number;
}

/**
 * Those of the changes of one message before which others may have been thrown away unreported: the first of each item whose
 * queue came full, none of whose values is marked. A queue that is often full is none of these unless the server is known
 * to mark nothing (`unmarked`).
 */
export function unreportedOverflows<C extends Change>(
  changes: readonly C[],
  queueOf: (handle: number) => Queue,
  unmarked = false,
): ReadonlySet<C> {
  const found = new Set<C>();
  // Mostly there is one of each, in the order of the handles.
  if (changes.every(({ handle }, i) => i === 0 || handle > (changes[i - 1]?.handle ?? 0))) return found;
  for (const [handle, values] of Map.groupBy(changes, (change) => change.handle)) {
    const [first] = values;
    if (!first || values.length < 2) continue;
    const { size, usual } = queueOf(handle);
    const full = size > 1 && values.length >= size && (unmarked || size > usual);
    if (full && !values.some(({ value }) => overflowed(value.statusCode.value))) found.add(first);
  }
  return found;
}
