// Messages to all agents, where the connection fails at any step.
import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { type NatsClient, natsHeartbeats } from "../../../src/cluster/connection/nats-connection.ts";
import { AgentError } from "../../../src/core/errors.ts";
import { ManualClock } from "../../support/runtime.ts";

/** A link whose connection only subscribes. Errors of a call become those of the cluster, as `NatsLink` does it. */
function linkWith(subscribe: () => Partial<Subscription>) {
  const connection = { subscribe } as unknown as NatsConnection;
  return {
    async connected() {},
    async use<T>(what: string, call: (client: NatsClient) => Promise<T>): Promise<T> {
      try {
        return await call({ connection } as NatsClient);
      } catch (cause) {
        throw new AgentError("CLUSTER_UNREACHABLE", what, { cause });
      }
    },
  };
}

/** Gives the messages, then waits for the end. */
async function* iterator(end: () => Promise<void>, messages: readonly Msg[] = []): AsyncGenerator<Msg, void> {
  yield* messages;
  await end();
}

test("an agent that stops while it subscribes leaves no subscription behind", async () => {
  const stop = new AbortController();
  const ended = Promise.withResolvers<void>();
  const subscription: Partial<Subscription> = {
    unsubscribe: () => ended.resolve(),
    [Symbol.asyncIterator]: () => iterator(() => ended.promise),
  };
  const link = linkWith(() => {
    stop.abort(new Error("the agent stops"));
    return subscription;
  });
  await natsHeartbeats(link, "plant", new ManualClock()).listen(() => {}, stop.signal);
  await ended.promise;
});

test("an agent listens again after a closed connection, and after the servers refused the subject", async () => {
  const clock = new ManualClock();
  const stop = new AbortController();
  const failure = (name: string) => Object.assign(new Error(name), { name });
  const steps = [
    () => {
      throw failure("ClosedConnectionError");
    },
    () => ({
      unsubscribe() {},
      [Symbol.asyncIterator]: () => iterator(() => Promise.reject(failure("PermissionViolationError"))),
    }),
    () => ({
      unsubscribe: () => ended.resolve(),
      [Symbol.asyncIterator]: () =>
        iterator(() => ended.promise, [{ data: Buffer.from("heartbeat") } as unknown as Msg]),
    }),
  ];
  const ended = Promise.withResolvers<void>();
  const received: string[] = [];
  const link = linkWith(() => (steps.shift() ?? (() => expect.fail("it subscribes once more")))());
  const listening = natsHeartbeats(link, "plant", clock).listen((data) => received.push(String(data)), stop.signal);
  await clock.advance(60_000);
  expect(received).toEqual(["heartbeat"]);
  stop.abort(new Error("the agent stops"));
  await listening;
});
