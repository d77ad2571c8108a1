// Which server of a redundant set is used.
import fc from "fast-check";
import { expect, test } from "vitest";
import { chooseServer, holdMs, type ServiceLevel } from "../../../../src/source/opcua/redundancy/redundant-set.ts";
import { runs } from "../../../support/property.ts";

const long = 10 * holdMs;
const choose = (levels: Readonly<Record<string, ServiceLevel>>, inUse: string | undefined, sinceMs = long) =>
  chooseServer(
    Object.entries(levels).map(([url, level]) => ({ url, level })),
    inUse,
    sinceMs,
  );

test.each([
  ["the first healthy one where none is in use", { a: 100, b: 200, c: 255 }, undefined, "b"],
  ["the one in use as long as it is healthy", { a: 255, b: 200 }, "b", "b"],
  ["a healthy one rather than a degraded one", { a: 199, b: 200 }, "a", "b"],
  ["the one in use where all are about equally degraded", { a: 100, b: 110 }, "a", "a"],
  ["one that is clearly less degraded", { a: 100, b: 150 }, "a", "b"],
  ["a degraded one rather than one without data", { a: 1, b: 2 }, "a", "b"],
  ["one in maintenance rather than one that cannot be reached", { a: undefined, b: 0 }, "a", "b"],
  ["the one in use where none can be reached", { a: undefined, b: undefined }, "b", "b"],
] as const)("used is %s", (_, levels, inUse, expected) => {
  expect(choose(levels, inUse)).toBe(expected);
});

test("after a change of server the next one waits, unless the current server fails", () => {
  expect(choose({ a: 255, b: 100 }, "b", holdMs - 1)).toBe("b");
  expect(choose({ a: 255, b: 100 }, "b", holdMs)).toBe("a");
  expect(choose({ a: 255, b: 1 }, "b", 0)).toBe("a");
  expect(choose({ a: 255, b: undefined }, "b", 0)).toBe("a");
});

test("whatever the levels, a chosen server is kept while it works, and never left for a worse one", () => {
  const level = fc.option(fc.integer({ min: 0, max: 255 }), { nil: undefined });
  fc.assert(
    fc.property(
      fc.array(level, { minLength: 1, maxLength: 5 }),
      fc.nat(4),
      fc.nat(2 * holdMs),
      (levels, use, sinceMs) => {
        const named = Object.fromEntries(levels.map((each, i) => [`s${i}`, each]));
        const inUse = `s${use % levels.length}`;
        const chosen = choose(named, inUse, sinceMs);
        if ((named[inUse] ?? 0) >= 2 && sinceMs < holdMs) expect(chosen).toBe(inUse);
        if ((named[inUse] ?? 0) >= 200) expect(chosen).toBe(inUse);
        expect(named[chosen] ?? -1).toBeGreaterThanOrEqual(Math.min(200, named[inUse] ?? -1));
        expect(choose(named, chosen, 0)).toBe(chosen);
      },
    ),
    runs(1_000),
  );
});
