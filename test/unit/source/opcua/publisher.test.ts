import * as ua from "node-opcua-client";
import { expect, test } from "vitest";
import { AgentError } from "../../../../src/core/errors.ts";
import { Publisher } from "../../../../src/source/opcua/monitoring/publisher.ts";
import { eventually } from "../../../support/eventually.ts";
import { opcuaLink } from "../../../support/opcua-link.ts";
import { testRuntime } from "../../../support/runtime.ts";

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
  const publisher = new Publisher({
    link,
    runtime: testRuntime(),
    source: "line",
    subscriptions: [
      {
        id: 1,
        firstSequence: 1,
        lags: false,
        origin: "new",
        publishingMs: 1_000,
        keepAliveCount: 10,
        lifetimeCount: 30,
      },
    ],
    formers: [],
    deliver: async () => {},
    alive: () => {},
    room: async () => {},
    lost: () => {},
    gone: async () => {},
  });
  publisher.acknowledge({ subscription: 1, sequenceNumber: 7 });
  const running = publisher.run(stop.signal);
  await eventually(() => sent.length === 2);
  expect(sent).toEqual([7, 7]);
  // One acknowledgement is sent twice.
  expect(asked).toBe(5);
  stop.abort(new Error("enough"));
  await expect(running).rejects.toThrow("enough");
});
