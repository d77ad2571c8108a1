// Refused points stay in memory while the bad ones among them are searched for.
import { expect, test } from "vitest";
import type { InputId } from "../../../src/core/point.ts";
import { type LoaderParts, loader } from "../../../src/upload/delivery/loader.ts";
import { SubBatch } from "../../../src/upload/window/sub-batch.ts";
import { extractedColumn } from "../../support/packing.ts";
import { testRuntime } from "../../support/runtime.ts";

async function kindsWhile(searched: number): Promise<(string | undefined)[]> {
  const one = Float64Array.of(1);
  const subBatch = new SubBatch([extractedColumn("a" as InputId, one, one, one)]);
  const parts = {
    bisection: { empty: false, points: searched, next: () => subBatch, inputs: () => new Set() },
    window: { points: () => 1, filled: () => [] },
    search: { next: () => undefined, isOn: false },
    limit: { most: 10_000, maxBytes: 10_000 },
    clock: testRuntime().clock,
    integration: "c8ktonqsahsmemfs7lv0",
    maxLagMs: 30_000,
    hasAll: () => true,
    holds: () => false,
  } as unknown as LoaderParts; // the only parts that are used
  const loads = loader(parts);
  return [(await loads.next())?.kind, (await loads.next())?.kind];
}

test("points in search and others take turns, until a million are searched", async () => {
  expect(await kindsWhile(1_000)).toEqual(["suspect", undefined]);
  expect(await kindsWhile(1_000_000)).toEqual(["suspect", "suspect"]);
});
