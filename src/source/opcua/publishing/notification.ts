// Decodes a notification message and detects queue overflows that the server does not report.
import type { NotificationMessage } from "node-opcua-client";
import type { Ua } from "../stack/stack.ts";
import { DecodedChange } from "../types/plain-value.ts";
import { type NotifiedValue, overflowed } from "../types/reading.ts";
import { member } from "../types/value.ts";

export type Acknowledgement = Pick<Notification, "subscription" | "sequenceNumber">;

export interface DataChange {
  readonly handle: number;
  readonly value: NotifiedValue;
}

export interface Notification {
  readonly subscription: number;
  readonly sequenceNumber: number;
  readonly changes: readonly DataChange[];
  /** The message was probably stored already. The server resends it because it lacks the acknowledgement. */
  readonly old: boolean;
}

/**
 * `ended`: the status with which the server ends the subscription, if it does. `undecoded`: why the values from one on
 * are missing.
 */
export function readNotification(ua: Ua, subscription: number, message: NotificationMessage) {
  const changes: DataChange[] = [];
  let ended: string | undefined;
  let undecoded: unknown;
  for (const data of message.notificationData ?? [])
    if (data instanceof ua.DataChangeNotification) {
      for (const each of data.monitoredItems ?? [])
        changes.push(each instanceof DecodedChange ? each : { handle: each.clientHandle, value: each.value });
      undecoded ??= member(data, "undecoded");
    } else if (data instanceof ua.StatusChangeNotification) ended = data.status.name;
  const notification: Omit<Notification, "old"> = { subscription, sequenceNumber: message.sequenceNumber, changes };
  return { notification, ended, undecoded };
}

interface Change {
  readonly handle: number;
  readonly value: { readonly statusCode: { readonly value: number } };
}

export interface Queue {
  /** Queue size on the server; 0 if unknown. */
  readonly size: number;
  /** Most values between two notifications in normal operation. */
  readonly usual: number;
}

/**
 * Finds changes that may follow unreported overflows: the first change of each item whose queue was full and has no
 * overflow mark. A queue that is usually full does not count, unless the server marks no overflows (`unmarked`).
 */
export function unreportedOverflows<C extends Change>(
  changes: readonly C[],
  queueOf: (handle: number) => Queue,
  unmarked = false,
): ReadonlySet<C> {
  const found = new Set<C>();
  // Fast path: usually each item has one change, in the order of handles.
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
