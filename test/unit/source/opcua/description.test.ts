import * as ua from "node-opcua-client";
import { expect, test } from "vitest";
import type { TagId } from "../../../../src/core/source.ts";
import { describe } from "../../../../src/source/opcua/nodes/description.ts";
import type { Item } from "../../../../src/source/opcua/nodes/items.ts";
import type { ReadTarget, Services } from "../../../../src/source/opcua/session/services.ts";
import { ClockCheck } from "../../../../src/source/opcua/types/reading.ts";

const item: Item = {
  tag: 0 as TagId,
  nodeId: ua.coerceNodeId("ns=1;s=Mode"),
  captures: {},
  address: "Mode",
  every: 100,
  clockCheck: new ClockCheck(),
  index: undefined,
};

/** A server that describes its data type only with a definition. */
function services(definition: unknown): Services {
  const type = ua.coerceNodeId("ns=1;i=5");
  return {
    children: async (nodes: readonly unknown[]) => nodes.map(() => []),
    read: async (targets: readonly ReadTarget[]) =>
      targets.map(({ attributeId }) => {
        if (attributeId === ua.AttributeIds.DataType) return { value: { value: type } };
        return attributeId === ua.AttributeIds.DataTypeDefinition ? { value: { value: definition } } : {};
      }),
  } as unknown as Services; // the only part that is used
}
const signalOf = async (definition: unknown) =>
  (await describe(services(definition), [item], new AbortController().signal))[0]?.signal;

test("names of states come from the type definition when the node has none", async () => {
  const fields = [
    { name: "Off", value: [0, 0], displayName: { text: "Aus" } },
    { name: "Auto", value: [0, 7], displayName: {} },
  ];
  expect(await signalOf({ fields })).toEqual({
    type: "enum",
    enumValues: { 0: "Aus", 7: "Auto" },
  });
});

test("the definition of a structure gives no state names", async () => {
  const fields = [{ name: "Speed", dataType: ua.coerceNodeId("i=10") }];
  expect(await signalOf({ fields })).toEqual({});
  expect(await signalOf(undefined)).toEqual({});
});
