// The log compared with a simple model: see `buffer-model.ts`.
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { runSteps, steps } from "../../../support/buffer-model.ts";
import { keptFailures } from "../../../support/buffer-model-failures.ts";
import { append, moment, openStore, settle, take } from "../../../support/disk-store.ts";
import { type Fault, MemoryDisk } from "../../../support/memory-disk.ts";
import { runs } from "../../../support/property.ts";

// Hundreds of short runs. The limit allows for a busy machine.
vi.setConfig({ testTimeout: 180_000 });

const t0 = 1_767_225_600_000_000;

test("after any order of events no acknowledged point is lost and no settled point is counted twice", () => {
  fc.assert(
    fc.property(steps, (all) => runSteps(all)),
    runs(150, { examples: [...keptFailures] }),
  );
});

test("the same holds for a buffer that overflows: missing points are counted exactly", () => {
  fc.assert(
    fc.property(steps, (all) => runSteps(all, undefined, 18_000)),
    runs(150, { examples: [...keptFailures] }),
  );
});

describe("the same test fails without a safeguard", () => {
  const fails = (lie: Fault) =>
    expect(() =>
      fc.assert(
        fc.property(steps, (all) => runSteps(all, lie)),
        runs(400, { endOnFailure: true }),
      ),
    ).toThrow("Property failed");

  test("the sync of points", () =>
    fails((call, path) => (call === "sync" && path.includes("seg-") ? "ignore" : undefined)));

  test("the sync of the folder", () => fails((call) => (call === "syncFolder" ? "ignore" : undefined)));

  test("the sync of the state before settled segments are removed", () => {
    const settledAfter = (lie: Fault) => {
      const disk = new MemoryDisk();
      disk.fault = lie;
      const { store } = openStore(disk, { segmentBytes: 5_000 });
      for (let i = 0; i < 40; i++) append(store, [["a", t0 + i, i]]);
      for (let block = take(store); block; block = take(store)) settle(store, block);
      store.tick(moment(10));
      return openStore(disk.afterPowerCut(() => false)).store.stats().settledPoints;
    };

    expect(settledAfter(() => undefined)).toBe(40);
    const lie: Fault = (call, path) => (call === "sync" && path.includes("state-") ? "ignore" : undefined);
    expect(settledAfter(lie)).not.toBe(40);
  });
});
