// Asks again for a notification message that did not arrive (OPC 10000-4, 5.14.6).
import type { NotificationMessage } from "node-opcua-client";
import type { Runtime } from "../../../core/runtime.ts";
import { statusOf } from "../session/failure.ts";
import type { Link } from "../session/link.ts";
import type { Ua } from "../session/stack.ts";

const lostNotifications = {
  name: "source_opcua_lost_notifications_total",
  help: "Notification messages that the server did not have any more when they were asked for again.",
  labels: ["source"],
} as const;
const republished = {
  name: "source_opcua_republished_notifications_total",
  help: "Notification messages that were missing and were fetched again.",
  labels: ["source"],
} as const;

/** What a server says that keeps no messages at all. */
const keepsNone = ["BadServiceUnsupported", "BadNotImplemented", "BadNotSupported"];

export interface Republishing {
  readonly ua: Ua;
  readonly link: Link;
  readonly runtime: Runtime;
  readonly source: string;
}

/**
 * The message; `gone` where the server has it not, or not yet; `none` where it keeps none at all. Rejects with `SOURCE_*`
 * when it cannot be asked.
 */
export async function republish(
  { ua, link, runtime, source }: Republishing,
  subscriptionId: number,
  sequenceNumber: number,
  signal: AbortSignal,
): Promise<NotificationMessage | "gone" | "none"> {
  const request = new ua.RepublishRequest({ subscriptionId, retransmitSequenceNumber: sequenceNumber });
  try {
    const { notificationMessage } = await link.call(request, ua.RepublishResponse, signal);
    // Only messages with data are kept; servers were seen that answer with an empty one where they have none.
    if (!notificationMessage.notificationData?.length) return "gone";
    runtime.metrics.counter(republished).add(1, { source });
    return notificationMessage;
  } catch (error) {
    const status = statusOf(error) ?? "";
    if (status === "BadMessageNotAvailable") return "gone";
    if (keepsNone.includes(status)) return "none";
    throw error;
  }
}

/** Counts and tells that a message is lost: it was sent, did not arrive, and the server has it no more. */
export function tellLost({ runtime, source }: Pick<Republishing, "runtime" | "source">, sequenceNumber: number): void {
  runtime.metrics.counter(lostNotifications).add(1, { source });
  runtime.log.error({ sequenceNumber }, "the server has lost a notification that did not arrive");
}
