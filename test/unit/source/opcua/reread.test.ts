// Variables whose notification was lost are read again.
import * as ua from "node-opcua-client";
import { expect, test } from "vitest";
import { rereader } from "../../../../src/source/opcua/monitoring/polling.ts";
import { opcuaItem } from "../../../support/opcua-item.ts";
import { ManualClock, testRuntime } from "../../../support/runtime.ts";

test("a variable with a lost notification is read once, unless its next value arrives first", async () => {
  const clock = new ManualClock();
  const [steady, busy] = [opcuaItem(), { ...opcuaItem(), address: "Count" }];
  const read: string[] = [];
  const value = new ua.DataValue({ value: { dataType: ua.DataType.Double, value: 42 } });
  const reread = rereader({
    services: { read: async (nodes) => nodes.map(() => value) },
    runtime: testRuntime({ clock }),
    deliver: async (values) => void read.push(...values.map(([{ address }]) => address)),
  });
  const stop = new AbortController();
  const running = reread.run(stop.signal);
  reread.add([steady, busy]);
  await clock.advance(1_000);
  expect(read).toEqual([]);
  reread.arrived([busy]);
  for (const _ of [1, 2, 3]) await clock.advance(1_000);
  expect(read).toEqual(["Temp"]);
  stop.abort(new Error("over"));
  await expect(running).rejects.toThrow("over");
});

test("a variable whose next value arrives during the read does not fall back to the older value", async () => {
  const clock = new ManualClock();
  const [steady, busy] = [opcuaItem(), { ...opcuaItem(), address: "Count" }];
  const read: string[] = [];
  const value = new ua.DataValue({ value: { dataType: ua.DataType.Double, value: 42 } });
  const reread = rereader({
    services: {
      read: async (nodes) => {
        reread.arrived([busy]);
        return nodes.map(() => value);
      },
    },
    runtime: testRuntime({ clock }),
    deliver: async (values) => void read.push(...values.map(([{ address }]) => address)),
  });
  const stop = new AbortController();
  const running = reread.run(stop.signal);
  reread.add([steady, busy]);
  for (const _ of [1, 2, 3]) await clock.advance(1_000);
  expect(read).toEqual(["Temp"]);
  stop.abort(new Error("over"));
  await expect(running).rejects.toThrow("over");
});
