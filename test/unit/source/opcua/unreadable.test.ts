// What the agent does when a notification or a value cannot be received.
import * as ua from "node-opcua-client";
import { expect, test } from "vitest";
import { AgentError } from "../../../../src/core/errors.ts";
import { unreadableNodes } from "../../../../src/source/opcua/monitoring/retry.ts";
import type { Item } from "../../../../src/source/opcua/nodes/items.ts";
import { shrinkMessages } from "../../../../src/source/opcua/publishing/subscription.ts";
import { Services } from "../../../../src/source/opcua/session/services.ts";
import type { DataValueLike } from "../../../../src/source/opcua/types/reading.ts";
import { opcuaItem } from "../../../support/opcua-item.ts";
import { opcuaLink } from "../../../support/opcua-link.ts";
import { testRuntime } from "../../../support/runtime.ts";

const never = new AbortController().signal;
const refuse = (status: string) => new AgentError("SOURCE_UNREACHABLE", `the server answers ${status}`);
const limits = { read: 0, browse: 0 };

/** A server whose answers fail if they contain `bad` or more than `most` values. */
function reader(bad: readonly string[], most = Number.POSITIVE_INFINITY) {
  const calls: number[] = [];
  const link = opcuaLink((request) => {
    if (!(request instanceof ua.ReadRequest)) throw new TypeError("Read only");
    const names = (request.nodesToRead ?? []).map(({ nodeId }) => String(nodeId.value));
    calls.push(names.length);
    if (names.length > most || names.some((name) => bad.includes(name))) throw refuse("BadResponseTooLarge");
    return new ua.ReadResponse({
      results: names.map((value) => new ua.DataValue({ value: { dataType: ua.DataType.String, value } })),
    });
  });
  const services = new Services(link, limits);
  const read = (names: readonly string[]) =>
    services.read(
      names.map((name) => ({ nodeId: `s=${name}`, attributeId: 13 })),
      never,
    );
  return { read, calls };
}
const names = Array.from({ length: 100 }, (_, i) => `n${i}`);

test("a read finds the values that make any answer fail, and the next read is as large as before", async () => {
  const { read, calls } = reader(["n17", "n60"]);
  const values = await read([...names, "n17"]);
  expect(values).toHaveLength(101);
  for (const [i, name] of [...names, "n17"].entries())
    if (name === "n17" || name === "n60")
      expect(values[i]?.value?.value, name).toMatchObject({ reason: expect.stringContaining("BadResponseTooLarge") });
    else expect(values[i]?.value?.value, name).toBe(name);
  calls.length = 0;
  await read(names.filter((name) => name !== "n17" && name !== "n60"));
  expect(calls).toEqual([98]);
});

test("an answer that is too large is not transferred again for the same values, however few a read has", async () => {
  const { read, calls } = reader(["n3"]);
  await read(names.slice(0, 10));
  expect(calls.filter((length) => length === 10)).toHaveLength(1);
  expect(calls.length).toBeLessThanOrEqual(9);
});

test("reads stay smaller where the sum of the values is too large", async () => {
  const { read, calls } = reader([], 30);
  expect(await read(names)).toHaveLength(100);
  calls.length = 0;
  expect(await read(names)).toHaveLength(100);
  expect(Math.max(...calls)).toBeLessThanOrEqual(30);
});

const [first, second] = [opcuaItem(), opcuaItem()];
const unreadableOf = async (name: string) => (await reader([name]).read([name]))[0] as DataValueLike; // one is read

function nodes() {
  const log: string[] = [];
  const found = unreadableNodes({
    monitoring: { items: () => [first, second], refuse: async (reasons) => void log.push(`refuse ${reasons.size}`) },
    log: testRuntime().log,
    reread: (items) => log.push(`reread ${items.length}`),
    refused: () => {},
    shrink: async () => void log.push("shrink"),
  });
  const examined = (...read: (readonly [Item, DataValueLike])[]) => found.examine(read, never);
  const message = (error: unknown) => found.message(error);
  return { log, message, examined };
}

test("a message that cannot be received is followed by a read of all items, which finds the unreadable ones", async () => {
  const { log, message, examined } = nodes();
  message(refuse("BadResponseTooLarge"));
  await examined([first, await unreadableOf("a")], [second, new ua.DataValue()]);
  await examined([second, new ua.DataValue()]);
  expect(log).toEqual(["reread 2", "refuse 1"]);
});

test("messages get smaller where each value of one that was too large can be read", async () => {
  const { log, message, examined } = nodes();
  message(refuse("BadEncodingLimitsExceeded"));
  await examined([first, new ua.DataValue()], [second, new ua.DataValue()]);
  await examined([first, new ua.DataValue()]);
  // Its size is not the reason.
  message(refuse("BadDecodingError"));
  await examined([first, new ua.DataValue()]);
  expect(log).toEqual(["reread 2", "shrink", "reread 2"]);
});

test("each request for smaller messages divides their size by eight, down to one value, unless the server refuses", async () => {
  let modifies = true;
  const asked: number[] = [];
  const link = opcuaLink((request) => {
    if (!(request instanceof ua.ModifySubscriptionRequest)) throw new TypeError("ModifySubscription only");
    if (!modifies) throw refuse("BadServiceUnsupported");
    asked.push(request.maxNotificationsPerPublish);
    return new ua.ModifySubscriptionResponse();
  });
  const subscriptions = [{ id: 1, publishingMs: 100, keepAliveCount: 10, lifetimeCount: 30 }];
  let most = await shrinkMessages(link, subscriptions, never);
  for (let i = 0; i < 5; i++) most = await shrinkMessages(link, subscriptions, never, most);
  expect(asked).toEqual([625, 79, 10, 2, 1, 1]);
  modifies = false;
  expect(await shrinkMessages(link, subscriptions, never, 79)).toBe(79);
});
