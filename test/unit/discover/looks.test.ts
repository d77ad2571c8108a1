// Connections that the page "Add tags" opens end when no page uses them.
import { expect, test } from "vitest";
import { Looks } from "../../../src/discover/device/looks.ts";
import { simulatorDriver } from "../../../src/source/simulator/driver.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";

test("a connection that no page has used for two minutes is closed, and one in use is not", async () => {
  const clock = new ManualClock();
  await using looks = new Looks(testRuntime({ clock }));
  const closed: string[] = [];
  const driver = {
    ...simulatorDriver,
    explore: async ({ url }: { readonly url: string }) => ({
      tree: false,
      list: async () => ({ nodes: [], total: 0, busy: false, notes: [] }),
      values: async () => new Map(),
      async [Symbol.asyncDispose]() {
        closed.push(url);
      },
    }),
  };
  const open = (url: string) =>
    looks.open({ driver, target: { url }, source: undefined }, new AbortController().signal);
  const left = await open("left");
  const used = await open("used");

  await clock.advance(119_000);
  expect(looks.find(used.id)).toBe(used);
  expect(closed).toEqual([]);
  await clock.advance(2_000);

  expect(closed).toEqual(["left"]);
  expect(looks.find(left.id)).toBeUndefined();
  expect(looks.find(used.id)).toBe(used);
});
