// Monitored items of servers that revise the sampling interval or have no capacity.
import * as ua from "node-opcua-client";
import { expect, test } from "vitest";
import { AgentError } from "../../../../src/core/errors.ts";
import type { TagId } from "../../../../src/core/source.ts";
import { opcuaOptions } from "../../../../src/source/opcua/config/options.ts";
import { openMonitoring } from "../../../../src/source/opcua/monitoring/monitoring.ts";
import type { Item } from "../../../../src/source/opcua/nodes/items.ts";
import { ClockCheck } from "../../../../src/source/opcua/types/reading.ts";
import { opcuaLink } from "../../../support/opcua-link.ts";

const never = new AbortController().signal;
const item = (name: string, every = 1_000): Item => ({
  tag: 0 as TagId,
  nodeId: ua.coerceNodeId(`ns=1;s=${name}`),
  captures: {},
  address: name,
  every,
  clockCheck: new ClockCheck(),
  index: undefined,
});

interface Behaviour {
  /** The revised sampling interval. Undefined: as requested. */
  readonly sampling?: number;
  /** The number of items that the server can hold. It refuses the others. */
  room: number;
  readonly modify?: boolean;
  /** Monitored items of the subscription that no tag uses any more. */
  readonly items?: [number, number, string][];
  /** Items that the server says it does not have. */
  readonly forgets?: readonly number[];
  /** Receives the items that are to be deleted. The answer has no results. */
  readonly deleting?: (ids: readonly number[]) => void;
}

function monitoring(server: Behaviour, creating = (_handle: number) => {}) {
  const sizes = new Map<number, number>();
  const answer = (request: object): object => {
    if (request instanceof ua.CreateMonitoredItemsRequest) {
      const results = (request.itemsToCreate ?? []).map(({ requestedParameters }) => {
        if (sizes.size >= server.room) return { statusCode: ua.StatusCodes.BadTooManyMonitoredItems };
        const { clientHandle, queueSize, samplingInterval } = requestedParameters;
        sizes.set(clientHandle, queueSize);
        creating(clientHandle);
        return {
          monitoredItemId: clientHandle + 100,
          revisedSamplingInterval: server.sampling ?? samplingInterval,
          revisedQueueSize: queueSize,
        };
      });
      return new ua.CreateMonitoredItemsResponse({ results });
    }
    if (request instanceof ua.ModifyMonitoredItemsRequest) {
      if (server.modify === false)
        throw new AgentError("SOURCE_UNREACHABLE", "the server answers BadServiceUnsupported");
      const results = (request.itemsToModify ?? []).map(({ requestedParameters: { clientHandle, queueSize } }) => {
        sizes.set(clientHandle, queueSize);
        return { revisedQueueSize: queueSize };
      });
      return new ua.ModifyMonitoredItemsResponse({ results });
    }
    if (request instanceof ua.SetMonitoringModeRequest)
      return new ua.SetMonitoringModeResponse({
        results: (request.monitoredItemIds ?? []).map((id) =>
          server.forgets?.includes(id) ? ua.StatusCodes.BadMonitoredItemIdInvalid : ua.StatusCodes.Good,
        ),
      });
    if (request instanceof ua.DeleteMonitoredItemsRequest) {
      server.deleting?.(request.monitoredItemIds ?? []);
      return new ua.DeleteMonitoredItemsResponse();
    }
    throw new TypeError("nothing else is asked");
  };
  const counts = { publishingMs: 1_000, keepAliveCount: 10, lifetimeCount: 30 };
  const record = {
    id: 1,
    group: "1000",
    ...counts,
    started: "",
    namespaces: [],
    nextHandle: 1,
    items: server.items ?? [],
    begun: true,
  };
  const made = openMonitoring({
    link: opcuaLink(answer),
    limit: 0,
    options: opcuaOptions.parse({ url: "opc.tcp://plc" }),
    resumption: { remember: async () => {} },
    subscriptions: [{ ...record, firstSequence: 1, origin: "new", wanted: counts, former: undefined }],
    orphans: [],
  });
  return { made, sizes };
}

test("an item sampled more often than requested gets a long enough queue", async () => {
  for (const [sampling, size] of [
    [1_000, 30],
    [2_000, 30],
    [500, 60],
    [0, 100],
  ] as const) {
    const { made, sizes } = monitoring({ sampling, room: 9 });
    await made.begin([item("Temp")], [], never);
    expect([...sizes.values()]).toEqual([size]);
    expect(made.queueOf(1, 1).size).toBe(size);
  }
});

test("a server that cannot modify queues keeps its length, and that length is known", async () => {
  const { made } = monitoring({ sampling: 100, room: 9, modify: false });
  await made.begin([item("Temp")], [], never);
  expect(made.queueOf(1, 1).size).toBe(30);
  expect(made.failures).toEqual([]);
});

test("items beyond the server's limit are polled until it has room", async () => {
  const server: Behaviour = { room: 1 };
  const { made } = monitoring(server);
  await made.begin([item("Temp"), item("Count"), item("Big")], [], never);
  expect(made.polled.map(({ address }) => address)).toEqual(["Count", "Big"]);
  server.room = 2;
  await made.add(made.takeCrowdedOut(), never);
  expect(made.items().map(({ address }) => address)).toEqual(["Temp", "Count"]);
  expect(made.polled.map(({ address }) => address)).toEqual(["Big"]);
});

test("a first value that arrives before the answer is recognised by its handle", async () => {
  const seen: (string | undefined)[] = [];
  const { made } = monitoring({ room: 1 }, (handle) => seen.push(made.sharing(1, handle)[0]?.address));
  await made.begin([item("Temp"), item("Count")], [], never);
  expect(seen).toEqual(["Temp"]);
  expect([1, 2].map((handle) => made.sharing(1, handle)[0]?.address)).toEqual(["Temp", undefined]);
});

test("a server that does not delete items that are no longer configured is read nevertheless", async () => {
  const deleted: number[] = [];
  const { made } = monitoring({
    room: 9,
    items: [[7, 70, "ns=1;s=Gone"]],
    deleting: (ids) => deleted.push(...ids),
  });
  await made.begin([item("Temp")], [], never);
  expect(deleted).toEqual([70]);
  expect(made.items().map(({ address }) => address)).toEqual(["Temp"]);
});

test("items that the server says it has lost are deleted before they are created again, so that none adds up", async () => {
  const deleted: number[] = [];
  const { made } = monitoring({ room: 9, forgets: [101], deleting: (ids) => deleted.push(...ids) });
  await made.begin([item("Temp"), item("Count")], [], never);
  const forgotten = await made.takeForgotten(never);
  expect(forgotten.map(({ address }) => address)).toEqual(["Temp"]);
  expect(deleted).toEqual([101]);
  await made.add(forgotten, never);
  expect(made.items().map(({ address }) => address)).toEqual(["Count", "Temp"]);
  expect(made.sharing(1, 3).map(({ address }) => address)).toEqual(["Temp"]);
});
