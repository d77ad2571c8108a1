// Missing messages are requested in order, and those that the server has not kept are reported as lost.
import * as ua from "node-opcua-client";
import { expect, test } from "vitest";
import { AgentError } from "../../../../src/core/errors.ts";
import {
  FormerSubscription,
  missingMessages,
  SequenceTracker,
} from "../../../../src/source/opcua/publishing/missing-messages.ts";
import { opcuaLink } from "../../../support/opcua-link.ts";
import { ManualClock, testRuntime } from "../../../support/runtime.ts";

const { signal } = new AbortController();

/** A server that has kept the messages `kept`. `next` is the first message that is not on disk. */
function openStory({ kept, next, refusal = "BadMessageNotAvailable" }: Story) {
  const log: string[] = [];
  const asked: number[] = [];
  const link = opcuaLink((request) => {
    const sequenceNumber = request instanceof ua.RepublishRequest ? request.retransmitSequenceNumber : 0;
    asked.push(sequenceNumber);
    if (!kept.includes(sequenceNumber)) throw new AgentError("SOURCE_PROTOCOL", `Republish: ${refusal}`);
    const notificationData = [new ua.DataChangeNotification()];
    return new ua.RepublishResponse({
      notificationMessage: new ua.NotificationMessage({ sequenceNumber, notificationData }),
    });
  });
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  const tracker = new SequenceTracker(next);
  const missing = missingMessages({
    link,
    runtime,
    source: "line",
    trackers: new Map([[1, tracker]]),
    deliver: async (_id, { sequenceNumber }) => void log.push(`${sequenceNumber}`),
    room: async () => void log.push("room"),
    lost: () => log.push("lost"),
  });
  const lost = () => runtime.metric("source_opcua_lost_notifications_total");
  return { missing, tracker, log, asked, clock, lost };
}

interface Story {
  readonly kept: readonly number[];
  readonly next?: number;
  readonly refusal?: string;
}

const atOnce = <T>(work: () => Promise<T>) => work();

test("missing messages are delivered in order; several lost in a row give one report before the next message", async () => {
  const { missing, log, lost } = openStory({ kept: [3, 6] });

  await missing.fetch(1, [3, 4, 5, 6, 7], signal);

  expect(log).toEqual(["3", "lost", "6", "lost"]);
  expect(lost()).toBe(3);
});

test("a message that the server could not republish is delivered when it arrives late", async () => {
  const { missing, tracker } = openStory({ kept: [3] });
  await missing.fetch(1, [3, 4], signal);
  const late = (sequenceNumber: number) => tracker.arrived({ sequenceNumber, keepAlive: false, available: [] }).known;
  expect([late(5), late(4), late(3)]).toEqual([false, false, true]);
});

test("what another agent has acknowledged is not lost; a message is that is missing after one the server has", async () => {
  const { missing, log, lost } = openStory({ kept: [2, 5, 7], next: 3 });

  // Message 2 is on disk: the other agent was killed before its acknowledgement arrived.
  await missing.fetch(1, [2, 3, 4, 5, 6, 7], signal, true);
  expect(log).toEqual(["2", "5", "lost", "7"]);
  expect(lost()).toBe(1);

  const none = openStory({ kept: [], next: 3, refusal: "BadServiceUnsupported" });
  await none.missing.fetch(1, [3, 4], signal, true);
  expect(none.lost()).toBe(2);
});

test("a server that keeps no messages is asked once, and all missing messages are lost", async () => {
  const { missing, log, asked, lost } = openStory({ kept: [], refusal: "BadServiceUnsupported" });

  await missing.fetch(1, [3, 4, 5], signal);

  expect(asked).toEqual([3]);
  expect(log).toEqual(["lost"]);
  expect(lost()).toBe(3);
});

test("a former subscription transfers all messages of the server, including the last one", async () => {
  const { missing, log } = openStory({ kept: [4, 5, 6] });

  await missing.fetchKept(1, [6, 4, 5], signal);
  expect(log).toEqual(["4", "5", "6"]);

  // No message is delivered twice. Subscriptions that are unknown or have kept nothing are not queried.
  await missing.fetchKept(1, [6, 4, 5], signal);
  await missing.fetchKept(1, [], signal);
  await missing.fetchKept(2, [1], signal);
  expect(log).toEqual(["4", "5", "6"]);
});

test("messages sent on the previous connection are requested until the subscription publishes", async () => {
  const kept = [5, 6];
  const { missing, log, asked, clock } = openStory({ kept, next: 5 });
  let isHeard = false;
  const caughtUp = missing.catchUp(1, () => isHeard, atOnce, signal);
  await clock.advance(0);
  expect(log).toEqual(["room", "5", "room", "6", "room"]);

  kept.push(7);
  await clock.advance(1_000);
  expect(log.slice(5)).toEqual(["room", "7", "room"]);
  isHeard = true;
  await clock.advance(1_000);
  await caughtUp;
  expect(asked).toEqual([5, 6, 7, 7, 8]);
});

test("no message is requested when the next one is unknown, or the server keeps none", async () => {
  const unknown = openStory({ kept: [5] });
  await unknown.missing.catchUp(1, () => false, atOnce, signal);
  expect(unknown.asked).toEqual([]);

  const none = openStory({ kept: [], next: 5, refusal: "BadNotImplemented" });
  await none.missing.catchUp(1, () => false, atOnce, signal);
  expect(none.asked).toEqual([5]);
});

test("a former subscription is finished when it has ended and all its values are on disk", async () => {
  const former = new FormerSubscription();
  let isOver = false;
  void former.over.then(() => (isOver = true));
  const over = async () => {
    await Promise.resolve();
    return isOver;
  };

  former.delivered(1);
  former.delivered(2);
  former.acknowledged(1);
  former.end();
  expect(await over()).toBe(false);
  former.acknowledged(2);
  expect(await over()).toBe(true);
});

test("a former subscription without values is not finished before it has ended", async () => {
  const former = new FormerSubscription();
  let isOver = false;
  void former.over.then(() => (isOver = true));
  former.acknowledged(1);
  await Promise.resolve();
  expect(isOver).toBe(false);

  former.end();
  await former.over;
});
