// A notification message as the source uses it: the changes in it, and whether it is the last one of its subscription.
import type { NotificationMessage } from "node-opcua-client";
import type { Ua } from "../session/stack.ts";
import type { DataValueLike } from "../types/reading.ts";

export type Acknowledgement = Pick<Notification, "subscription" | "sequenceNumber">;

export interface DataChange {
  readonly handle: number;
  readonly value: DataValueLike;
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
      for (const { clientHandle, value } of data.monitoredItems ?? []) changes.push({ handle: clientHandle, value });
    else if (data instanceof ua.StatusChangeNotification) ended = data.status.name;
  return { notification: { subscription, sequenceNumber: message.sequenceNumber, changes }, ended };
}
