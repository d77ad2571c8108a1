// Observes which values an OPC UA server sends, and which notifications are unacknowledged.
import { z } from "zod";
import type { InputId } from "../core/point.ts";
import type { DeliveredRecord } from "./comparison.ts";

/** Value attribute (OPC 10000-6, A.1). */
const valueAttribute = 13;

const message = z.object({ schema: z.object({ name: z.string() }) });
/** Any NodeId; those without a string identifier become undefined. */
const nodeId = z.object({ namespace: z.number(), value: z.unknown() }).transform(({ namespace, value }) => {
  return typeof value === "string" ? `ns=${namespace};s=${value}` : undefined;
});
const createMonitoredItems = z.object({
  subscriptionId: z.number(),
  itemsToCreate: z.array(
    z.object({
      itemToMonitor: z.object({ nodeId, attributeId: z.number() }),
      requestedParameters: z.object({ clientHandle: z.number() }),
    }),
  ),
});
const publishRequest = z.object({
  subscriptionAcknowledgements: z.array(z.object({ subscriptionId: z.number(), sequenceNumber: z.number() })).nullish(),
});
/** 64-bit integers are pairs of halves, high first. */
const number = z.union([
  z.number(),
  z.tuple([z.number(), z.number()]).transform(([high, low]) => high * 2 ** 32 + low),
]);
const dataChange = z.object({
  monitoredItems: z.array(
    z.object({ clientHandle: z.number(), value: z.object({ value: z.object({ value: number }) }) }),
  ),
});
const publishResponse = z.object({
  subscriptionId: z.number(),
  notificationMessage: z.object({ sequenceNumber: z.number(), notificationData: z.array(z.unknown()).nullish() }),
});

/** Receives every decoded request and response of a server. Ignores values of unknown nodes. */
export class NotificationLedger {
  readonly #inputs: ReadonlyMap<string, InputId>;
  readonly #record: DeliveredRecord;
  /** By subscription and client handle. */
  readonly #items = new Map<string, InputId>();
  readonly #watched = new Set<InputId>();
  /** Sent but unacknowledged notifications, by subscription and sequence number. */
  readonly #unacknowledged = new Set<string>();
  /** Publish requests queued at the server, and their maximum so far. */
  #waiting = 0;
  #mostWaiting = 0;

  /** `inputs`: Input IDs by NodeId text, with the server's namespace indexes. */
  constructor(inputs: ReadonlyMap<string, InputId>, record: DeliveredRecord) {
    this.#inputs = inputs;
    this.#record = record;
  }

  /** Whether the client has acknowledged all, or sent a publish request after each. Acknowledgements may come later. */
  get taken(): boolean {
    return this.#unacknowledged.size === 0 || this.#waiting >= this.#mostWaiting;
  }

  watched(input: InputId): boolean {
    return this.#watched.has(input);
  }

  request(request: unknown): void {
    switch (message.parse(request).schema.name) {
      case "CreateMonitoredItemsRequest": {
        const { subscriptionId, itemsToCreate } = createMonitoredItems.parse(request);
        for (const { itemToMonitor, requestedParameters } of itemsToCreate) {
          const input = this.#inputs.get(itemToMonitor.nodeId ?? "");
          if (input === undefined || itemToMonitor.attributeId !== valueAttribute) continue;
          this.#items.set(`${subscriptionId}/${requestedParameters.clientHandle}`, input);
          this.#watched.add(input);
        }
        break;
      }
      case "PublishRequest":
        this.#mostWaiting = Math.max(this.#mostWaiting, ++this.#waiting);
        for (const { subscriptionId, sequenceNumber } of publishRequest.parse(request).subscriptionAcknowledgements ??
          [])
          this.#unacknowledged.delete(`${subscriptionId}/${sequenceNumber}`);
        break;
      case "DeleteSubscriptionsRequest":
      case "CloseSessionRequest":
        // No client is left to acknowledge.
        this.#unacknowledged.clear();
        break;
    }
  }

  response(response: unknown): void {
    const { name } = message.parse(response).schema;
    if (name !== "PublishResponse") return;
    this.#waiting--;
    const { subscriptionId, notificationMessage } = publishResponse.parse(response);
    for (const data of notificationMessage.notificationData ?? []) {
      const change = dataChange.safeParse(data);
      if (!change.success) continue;
      this.#unacknowledged.add(`${subscriptionId}/${notificationMessage.sequenceNumber}`);
      for (const { clientHandle, value } of change.data.monitoredItems) {
        const input = this.#items.get(`${subscriptionId}/${clientHandle}`);
        if (input !== undefined) this.#record.add(input, value.value.value);
      }
    }
  }
}
