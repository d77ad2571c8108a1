import * as ua from "node-opcua-client";
import { expect, test } from "vitest";
import { AgentError } from "../../../../src/core/errors.ts";
import { reportLost, republish } from "../../../../src/source/opcua/publishing/missing-messages.ts";
import { opcuaLink } from "../../../support/opcua-link.ts";
import { ManualClock, testRuntime } from "../../../support/runtime.ts";

const never = new AbortController().signal;

async function ask(answer: () => ua.NotificationMessage) {
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  const link = opcuaLink(() => new ua.RepublishResponse({ notificationMessage: answer() }));
  const asked = republish({ link, runtime, source: "line" }, 1, 7, never);
  asked.catch(() => {});
  for (let s = 0; s < 5; s++) await clock.advance(1_000);
  const message = await asked;
  return {
    message,
    fetched: runtime.metric("source_opcua_republished_notifications_total"),
  };
}
const refuse = (status: string) => () => {
  throw new AgentError("SOURCE_PROTOCOL", `Republish: ${status}`);
};

test("a message kept by the server is republished", async () => {
  const kept = new ua.NotificationMessage({ sequenceNumber: 7, notificationData: [new ua.DataChangeNotification()] });
  expect(await ask(() => kept)).toMatchObject({ message: { sequenceNumber: 7 }, fetched: 1 });
});

test("an answer without data does not count", async () => {
  // The answer of asyncua 2.1 for a message that it has not kept.
  expect(await ask(() => new ua.NotificationMessage())).toEqual({ message: "gone", fetched: 0 });
});

test("another message than the requested one does not count", async () => {
  const other = new ua.NotificationMessage({ sequenceNumber: 8, notificationData: [new ua.DataChangeNotification()] });
  expect(await ask(() => other)).toEqual({ message: "gone", fetched: 0 });
});

test("a message is asked for again after an error that says nothing about it", async () => {
  const kept = new ua.NotificationMessage({ sequenceNumber: 7, notificationData: [new ua.DataChangeNotification()] });
  const failures = ["BadInternalError", "BadUnexpectedError"];
  const answer = () => {
    const status = failures.shift();
    return status === undefined ? kept : refuse(status)();
  };
  expect(await ask(answer)).toMatchObject({ message: { sequenceNumber: 7 }, fetched: 1 });
});

test.each([
  ["BadMessageNotAvailable", "gone"],
  ["BadSequenceNumberUnknown", "gone"],
  ["BadInternalError", "gone"],
  ["BadServiceUnsupported", "none"],
  ["BadNotImplemented", "none"],
  ["BadNotSupported", "none"],
])("a server that answers %s has the message not, and the connection goes on", async (status, message) => {
  expect(await ask(refuse(status))).toEqual({ message, fetched: 0 });
});

test("a lost message is counted and reported", () => {
  const runtime = testRuntime();
  reportLost({ runtime, source: "line" }, 7);
  expect(runtime.metric("source_opcua_lost_notifications_total")).toBe(1);
  expect(runtime.lines).toMatchObject([{ level: "error", fields: { sequenceNumber: 7 } }]);
});

test("errors unrelated to the message are passed on", async () => {
  for (const status of ["BadSubscriptionIdInvalid", "BadSessionIdInvalid", "BadTimeout"])
    await expect(ask(refuse(status))).rejects.toMatchObject({ code: "SOURCE_PROTOCOL" });
});
