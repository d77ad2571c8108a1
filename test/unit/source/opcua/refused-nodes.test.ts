// Which tags `check --online` reports as refused, and which ones it omits because their device is off.
import { coerceNodeId, DataValue, StatusCodes } from "node-opcua-client";
import { expect, test } from "vitest";
import { refusedNodes } from "../../../../src/source/opcua/monitoring/refused-nodes.ts";
import type { Item, Tag } from "../../../../src/source/opcua/nodes/items.ts";
import type { StructureTypes } from "../../../../src/source/opcua/nodes/structure-types.ts";
import { opcuaItem } from "../../../support/opcua-item.ts";

const item: Item = { ...opcuaItem(), nodeId: coerceNodeId("ns=1;s=Temp") };

async function refusalsOf(reason: string, read: DataValue): Promise<readonly string[]> {
  const services = { read: async () => [read] };
  const { refused } = await refusedNodes(
    {
      tags: [{ node: "ns=1;s=Temp" } as Tag],
      items: [item],
      failures: [{ tag: item.tag, address: item.address, reason, item }],
      services,
      structures: { learn: async () => {} } as unknown as StructureTypes,
      url: "opc.tcp://plc:4840",
    },
    new AbortController().signal,
  );
  return refused.map(({ message }) => message);
}

test("a node that is not monitored while its device is off is not reported as missing", async () => {
  const off = new DataValue({ statusCode: StatusCodes.BadNotConnected });

  expect(await refusalsOf("BadNotConnected: The variable has no connection.", off)).toEqual([]);
});

test("a node unknown to the server is reported as missing once", async () => {
  const missing = new DataValue({ statusCode: StatusCodes.BadNodeIdUnknown });

  expect(await refusalsOf("BadNodeIdUnknown: no such node", missing)).toEqual([
    "expected a node of the server, got BadNodeIdUnknown: no such node, for Temp",
  ]);
});
