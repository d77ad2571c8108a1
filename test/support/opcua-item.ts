// A variable as the parts of the OPC UA source represent it, for their unit tests.
import { coerceNodeId } from "node-opcua-client";
import type { TagId } from "../../src/core/source.ts";
import type { Item } from "../../src/source/opcua/nodes/items.ts";
import { ClockCheck } from "../../src/source/opcua/types/reading.ts";

export const opcuaItem = (): Item => ({
  tag: 0 as TagId, // the first tag
  nodeId: coerceNodeId("ns=1;s=Temp"),
  captures: {},
  address: "Temp",
  every: 100,
  clockCheck: new ClockCheck(),
  index: undefined,
});
