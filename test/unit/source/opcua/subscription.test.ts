// How a former subscription is continued, depending on what the server still has and permits.
import * as ua from "node-opcua-client";
import { expect, test } from "vitest";
import { AgentError } from "../../../../src/core/errors.ts";
import { openPositions } from "../../../../src/source/opcua/publishing/positions.ts";
import { obtainSubscription } from "../../../../src/source/opcua/publishing/subscription.ts";
import { openResumption, type SubscriptionRecord } from "../../../../src/source/opcua/session/resumption.ts";
import { opcuaLink } from "../../../support/opcua-link.ts";
import { testRuntime } from "../../../support/runtime.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

const { log } = testRuntime();
const never = new AbortController().signal;
const started = "2026-03-01T12:00:00.000Z";
const counts = { publishingMs: 100, keepAliveCount: 100, lifetimeCount: 1_000 };
/** Counts for a keep-alive after 10 s and a lifetime of 100 s. */
const countsFor = (publishingMs: number) => ({
  publishingMs,
  keepAliveCount: Math.ceil(10_000 / publishingMs),
  lifetimeCount: Math.ceil(100_000 / publishingMs),
});
const record: SubscriptionRecord = {
  id: 7,
  group: "100",
  ...counts,
  started,
  namespaces: ["", "urn:line"],
  nextHandle: 5,
  items: [],
  begun: true,
};
const refuse = (status: string) => new AgentError("SOURCE_UNREACHABLE", `the server answers ${status}`);

interface Server {
  /** The IDs of its subscriptions. */
  readonly has: Set<number>;
  readonly most: number;
  readonly resumed: boolean;
  readonly namespaces?: string[];
  /** Whether it supports SetPublishingMode. */
  readonly modes?: boolean;
  readonly record?: Partial<SubscriptionRecord>;
  /** The revised publishing interval, whatever was requested. */
  readonly publishes?: number;
  /** Whether it supports ModifySubscription. */
  readonly modifies?: boolean;
}

/** Obtains subscriptions from a server, given the record of one from an earlier connection. */
async function obtain(server: Server) {
  const { has, most, resumed, namespaces = record.namespaces, modes = true, record: change } = server;
  using folder = temporaryFolder();
  const resumption = await openResumption(folder.file("session.json"), "", log);
  await resumption.remember({ subscriptions: [{ ...record, ...change }] });
  await using positions = await openPositions(folder.file("positions.json"), log);
  await positions.begin([record], []);
  await positions.reached(record, 41);
  const answer = (request: object): object => {
    const known = (ids: readonly number[] | null) =>
      (ids ?? []).map((id) => (has.has(id) ? ua.StatusCodes.Good : ua.StatusCodes.BadSubscriptionIdInvalid));
    if (request instanceof ua.SetPublishingModeRequest) {
      if (!modes) throw refuse("BadServiceUnsupported");
      return new ua.SetPublishingModeResponse({ results: known([...(request.subscriptionIds ?? [])]) });
    }
    if (request instanceof ua.TransferSubscriptionsRequest) {
      const results = known([...(request.subscriptionIds ?? [])]).map((statusCode) => ({ statusCode }));
      return new ua.TransferSubscriptionsResponse({ results });
    }
    if (request instanceof ua.DeleteSubscriptionsRequest) {
      for (const id of request.subscriptionIds ?? []) has.delete(id);
      return new ua.DeleteSubscriptionsResponse({});
    }
    if (request instanceof ua.ModifySubscriptionRequest) {
      if (server.modifies === false) throw refuse("BadServiceUnsupported");
      return new ua.ModifySubscriptionResponse({
        revisedPublishingInterval: server.publishes ?? request.requestedPublishingInterval,
        revisedMaxKeepAliveCount: request.requestedMaxKeepAliveCount,
        revisedLifetimeCount: request.requestedLifetimeCount,
      });
    }
    if (has.size >= most) throw refuse("BadTooManySubscriptions");
    has.add(8);
    const { publishingMs, keepAliveCount, lifetimeCount } = counts;
    return new ua.CreateSubscriptionResponse({
      subscriptionId: 8,
      revisedPublishingInterval: server.publishes ?? publishingMs,
      revisedMaxKeepAliveCount: keepAliveCount,
      revisedLifetimeCount: lifetimeCount,
    });
  };
  const link = opcuaLink(answer, { resumed });
  const limits = { read: 0, browse: 0, monitor: 0, history: 0, itemsPerSubscription: 0 };
  const product = { name: "", uri: "", manufacturer: "", version: "" };
  const facts = { namespaces, limits, product, started };
  return await obtainSubscription({ link, facts, resumption, positions, counts: countsFor, log }, "100", 100, never);
}

test("a subscription of a resumed session continues from the first message that is not on disk", async () => {
  expect(await obtain({ has: new Set([7]), most: 1, resumed: true })).toMatchObject({
    id: 7,
    origin: "kept",
    firstSequence: 42,
  });
});

test("it continues also when the server has more namespaces, but not when an index changed", async () => {
  const has = () => new Set([7]);
  const more = ["", "urn:line", "urn:new"];
  expect(await obtain({ has: has(), most: 2, resumed: true, namespaces: more })).toMatchObject({
    origin: "kept",
    namespaces: more,
  });
  expect(await obtain({ has: has(), most: 2, resumed: true, namespaces: ["", "urn:new", "urn:line"] })).toMatchObject({
    id: 8,
    origin: "new",
  });
});

test("a barely started subscription transfers its messages next to a new one", async () => {
  const hardly = { record: { begun: false }, has: new Set([7]), most: 2, resumed: true };
  expect(await obtain(hardly)).toMatchObject({ id: 8, origin: "transferred", former: { id: 7 }, firstSequence: 1 });
});

test("when the server has no room for a second subscription, the former one is deleted", async () => {
  const has = new Set([7]);
  expect(await obtain({ has, most: 1, resumed: false })).toMatchObject({ id: 8, origin: "new", former: undefined });
  expect([...has]).toEqual([8]);
});

test("when other clients use all subscriptions there is none, with the reason", async () => {
  expect(await obtain({ has: new Set([1, 2]), most: 2, resumed: false })).toBe("taken");
});

test("a server that does not report the former subscription gets a new one", async () => {
  expect(await obtain({ has: new Set([7]), most: 2, resumed: true, modes: false })).toMatchObject({ origin: "new" });
});

test("when the server publishes more slowly than requested, the counts are adapted to its interval", async () => {
  const server = { has: new Set<number>(), most: 1, resumed: false, publishes: 5_000 };
  const fitted = { publishingMs: 5_000, keepAliveCount: 2, lifetimeCount: 20 };
  expect(await obtain(server)).toMatchObject({ ...fitted, wanted: counts });
  const stubborn = { ...server, has: new Set<number>(), modifies: false };
  expect(await obtain(stubborn)).toMatchObject({ ...counts, publishingMs: 5_000 });
});

test("a server that revises the parameters to zero is taken to have left them as requested", async () => {
  const server = { has: new Set<number>(), most: 1, resumed: false, publishes: 0 };
  expect(await obtain(server)).toMatchObject({ ...counts, origin: "new", wanted: counts });
});

test("a resumed subscription gets the keep-alive and lifetime of a changed configuration", async () => {
  const server = { has: new Set([7]), most: 1, resumed: true, record: { lifetimeCount: 300, keepAliveCount: 10 } };
  expect(await obtain(server)).toMatchObject({ ...counts, origin: "kept", id: 7 });
  expect(await obtain({ ...server, modifies: false })).toMatchObject({ lifetimeCount: 300, keepAliveCount: 10 });
});
