import { expect, test } from "vitest";
import type { InputId } from "../../../src/core/point.ts";
import { DeliveredRecord } from "../../../src/demo/comparison.ts";
import { NotificationLedger } from "../../../src/demo/notification-ledger.ts";

const speed = "line.speed" as InputId; // a valid Input ID

/**
 * The ledger of one variable, which a client monitors with handle 7 in subscription 1. Two publish requests are open.
 */
function watched() {
  const record = new DeliveredRecord();
  const ledger = new NotificationLedger(new Map([["ns=2;s=Speed", speed]]), record);
  ledger.request({
    schema: { name: "CreateMonitoredItemsRequest" },
    subscriptionId: 1,
    itemsToCreate: [
      {
        itemToMonitor: { nodeId: { namespace: 2, value: "Speed" }, attributeId: 13 },
        requestedParameters: { clientHandle: 7 },
      },
      {
        itemToMonitor: { nodeId: { namespace: 0, value: 2258 }, attributeId: 13 },
        requestedParameters: { clientHandle: 8 },
      },
    ],
  });
  publish(ledger);
  publish(ledger);
  return { ledger, record, values: () => [...(record.values.get(speed) ?? [])] };
}

const publish = (ledger: NotificationLedger, ...acknowledged: number[]) =>
  ledger.request({
    schema: { name: "PublishRequest" },
    subscriptionAcknowledgements: acknowledged.map((sequenceNumber) => ({ subscriptionId: 1, sequenceNumber })),
  });

const notify = (ledger: NotificationLedger, sequenceNumber: number, clientHandle: number, value: unknown) =>
  ledger.response({
    schema: { name: "PublishResponse" },
    subscriptionId: 1,
    notificationMessage: {
      sequenceNumber,
      notificationData: [{ monitoredItems: [{ clientHandle, value: { value: { value } } }] }],
    },
  });

test("values in notifications count as served, 64-bit halves are combined, other nodes skipped", () => {
  const { ledger, values } = watched();
  notify(ledger, 1, 7, 1.5);
  notify(ledger, 2, 8, 99);
  notify(ledger, 3, 7, [1, 2]);
  expect(values()).toEqual([1.5, 4_294_967_298]);
  expect(ledger.watched(speed)).toBe(true);
});

test("a notification counts as received when the client requests the next one, or at the latest acknowledges it", () => {
  const { ledger } = watched();
  expect(ledger.taken).toBe(true);
  notify(ledger, 1, 7, 1);
  expect(ledger.taken).toBe(false);
  publish(ledger);
  expect(ledger.taken).toBe(true);
  notify(ledger, 2, 7, 2);
  notify(ledger, 3, 7, 3);
  publish(ledger, 1, 2);
  expect(ledger.taken).toBe(false);
  publish(ledger, 3);
  expect(ledger.taken).toBe(true);
});

test("when the client closes its session, no notification is outstanding", () => {
  const { ledger } = watched();
  notify(ledger, 1, 7, 1);
  ledger.request({ schema: { name: "CloseSessionRequest" } });
  expect(ledger.taken).toBe(true);
});

test("keep-alives and other messages do not count as values", () => {
  const { ledger, record } = watched();
  const notificationMessage = { sequenceNumber: 1, notificationData: [] };
  ledger.response({ schema: { name: "PublishResponse" }, subscriptionId: 1, notificationMessage });
  ledger.response({ schema: { name: "ReadResponse" }, results: [] });
  ledger.request({ schema: { name: "BrowseRequest" } });
  expect(record.count).toBe(0);
});
