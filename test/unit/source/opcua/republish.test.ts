import * as ua from "node-opcua-client";
import { expect, test } from "vitest";
import { AgentError } from "../../../../src/core/errors.ts";
import type { Link } from "../../../../src/source/opcua/link.ts";
import { republish } from "../../../../src/source/opcua/republish.ts";
import { testRuntime } from "../../../support/runtime.ts";

const never = new AbortController().signal;

async function ask(answer: () => ua.NotificationMessage) {
  const runtime = testRuntime();
  const link = {
    call: async () => new ua.RepublishResponse({ notificationMessage: answer() }),
  } as unknown as Link; // what is used of it
  const message = await republish({ ua, link, runtime, source: "line" }, 1, 7, never);
  return {
    message,
    lost: runtime.metric("source_opcua_lost_notifications_total"),
    fetched: runtime.metric("source_opcua_republished_notifications_total"),
  };
}
const refuse = (status: string) => () => {
  throw new AgentError("SOURCE_PROTOCOL", `Republish: ${status}`);
};

test("a message that the server has kept is had again", async () => {
  const kept = new ua.NotificationMessage({ sequenceNumber: 7, notificationData: [new ua.DataChangeNotification()] });
  expect(await ask(() => kept)).toMatchObject({ message: { sequenceNumber: 7 }, fetched: 1 });
});

test("an answer without data is none: it is counted as lost", async () => {
  // asyncua 2.1 answers so where it has not kept the message.
  expect(await ask(() => new ua.NotificationMessage())).toEqual({ message: undefined, lost: 1, fetched: 0 });
});

test.each(["BadMessageNotAvailable", "BadServiceUnsupported", "BadNotImplemented", "BadNotSupported"])(
  "a server that answers %s has lost the message, and the connection goes on",
  async (status) => {
    expect(await ask(refuse(status))).toEqual({ message: undefined, lost: 1, fetched: 0 });
  },
);

test("what says nothing of the message is passed on", async () => {
  await expect(ask(refuse("BadSubscriptionIdInvalid"))).rejects.toMatchObject({ code: "SOURCE_PROTOCOL" });
});
