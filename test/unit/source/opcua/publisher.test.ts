import * as ua from "node-opcua-client";
import { expect, test } from "vitest";
import { AgentError } from "../../../../src/core/errors.ts";
import { openPublisher, type PublisherOptions } from "../../../../src/source/opcua/publishing/publisher.ts";
import { bounded } from "../../../../src/source/opcua/session/client.ts";
import type { Link } from "../../../../src/source/opcua/session/link.ts";
import { eventually } from "../../../support/eventually.ts";
import { opcuaLink } from "../../../support/opcua-link.ts";
import { ManualClock, testRuntime } from "../../../support/runtime.ts";

test("four requests wait at the server, and acknowledgements of an abandoned request are repeated with the next", async () => {
  const sent: number[] = [];
  let [refused, asked] = [0, 0];
  const link = opcuaLink((request, signal) => {
    const acknowledged = request instanceof ua.PublishRequest ? (request.subscriptionAcknowledgements ?? []) : [];
    asked++;
    sent.push(...acknowledged.map(({ sequenceNumber }) => sequenceNumber));
    if (acknowledged.length > 0 && refused++ === 0)
      return Promise.reject(new AgentError("SOURCE_UNREACHABLE", "Publish: BadTimeout"));
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  });
  const stop = new AbortController();
  const publisher = publisherOf(link);
  publisher.acknowledge({ subscription: 1, sequenceNumber: 7 });
  const running = publisher.run(stop.signal);
  await eventually(() => sent.length === 2);
  expect(sent).toEqual([7, 7]);
  // One acknowledgement is sent twice.
  expect(asked).toBe(5);
  stop.abort(new Error("enough"));
  await expect(running).rejects.toThrow("enough");
});

test("a notification that cannot be decoded completely is lost, after the values that it has", async () => {
  const change = Object.assign(new ua.DataChangeNotification(), { undecoded: "there is no built-in type 63" });
  const notificationMessage = new ua.NotificationMessage({ sequenceNumber: 1, notificationData: [change] });
  const answers = [new ua.PublishResponse({ subscriptionId: 1, notificationMessage })];
  const link = opcuaLink(
    (_request, signal) =>
      answers.shift() ?? new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  );
  const stop = new AbortController();
  const log: string[] = [];
  const publisher = publisherOf(link, {
    deliver: async ({ sequenceNumber }) => void log.push(`${sequenceNumber}`),
    lost: (id) => log.push(`lost of ${id}`),
  });
  const running = publisher.run(stop.signal);
  await eventually(() => log.length === 2);
  expect(log).toEqual(["1", "lost of 1"]);
  stop.abort(new Error("enough"));
  await expect(running).rejects.toThrow("enough");
});

test("a server that answers every Publish request with a time-out ends the connection, and is not flooded", async () => {
  const clock = new ManualClock();
  let asked = 0;
  const link = opcuaLink((request) => {
    if (request instanceof ua.ReadRequest) return new ua.ReadResponse();
    if (request instanceof ua.DeleteSubscriptionsRequest) return new ua.DeleteSubscriptionsResponse();
    if (++asked > 100) return new Promise(() => {});
    throw new AgentError("SOURCE_UNREACHABLE", "Publish: BadTimeout");
  });
  const running = publisherOf(link, { runtime: testRuntime({ clock }) }).run(new AbortController().signal);
  const ended = expect(running).rejects.toThrow("has published nothing for");
  for (let s = 0; s < 60; s++) await clock.advance(1_000);
  await ended;
  expect(asked).toBeLessThanOrEqual(100);
});

function publisherOf(link: Link, more: Partial<PublisherOptions> = {}) {
  const counts = { publishingMs: 1_000, keepAliveCount: 10, lifetimeCount: 30 };
  return openPublisher({
    link,
    runtime: testRuntime(),
    source: "line",
    subscriptions: [{ id: 1, firstSequence: 1, lags: false, origin: "new", ...counts }],
    formers: [],
    deliver: async () => {},
    alive: () => {},
    unreadable: () => {},
    room: async () => {},
    lost: () => {},
    gone: async () => {},
    ...more,
  });
}

test("a call with the patience for an enormous publishing interval does not time out at once", async () => {
  const stop = new AbortController();
  // Node shortens a longer timer to one millisecond, before that of the test.
  const later = new Promise((resolve) => setTimeout(() => setTimeout(resolve, 2), 2));
  const call = bounded("Publish", 2 ** 40, stop.signal, () => later.then(() => "answered"));
  expect(await call).toBe("answered");
});
