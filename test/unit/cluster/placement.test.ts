// Which agent reads a source when several could.
import fc from "fast-check";
import { expect, test } from "vitest";
import { keyToken } from "../../../src/cluster/connection/jetstream.ts";
import { type Candidate, holdDownMs, mayDeliver, mayRead } from "../../../src/cluster/members/placement.ts";
import { runs } from "../../support/property.ts";

const none = { drained: new Set<string>(), moves: new Map<string, string>() };
const preferring: Candidate = { node: "gw1", offers: ["line"], prefers: ["line"], aliveMs: holdDownMs };
const others: readonly Candidate[] = ["gw2", "gw3"].map((node) => ({
  node,
  offers: ["line"],
  prefers: [],
  aliveMs: holdDownMs,
}));
const all = [preferring, ...others];
const readers = (candidates: readonly Candidate[], orders = none, holder?: string) =>
  candidates
    .filter(({ node }) => mayRead("line", { node, holds: node === holder }, candidates, orders))
    .map(({ node }) => node);

test("the preferred agent reads a source, and another one while the preferred one is gone", () => {
  expect(readers(all)).toEqual(["gw1"]);
  expect(readers(others)).toEqual(["gw2", "gw3"]);
});

test("a returning agent waits for the hold-down while another one reads its source", () => {
  const back = [{ ...preferring, aliveMs: holdDownMs - 1 }, ...others];
  expect(readers(back, none, "gw2")).toContain("gw2");
  expect(readers(all, none, "gw2")).toEqual(["gw1"]);
  // No agent reads the source, so there is nothing to wait for.
  expect(readers(back)).toEqual(["gw1"]);
});

test("a moved source is read by its target while that agent runs", () => {
  const orders = { ...none, moves: new Map([["line", "gw3"]]) };
  expect(readers(all, orders, "gw1")).toEqual(["gw3"]);
  expect(readers(all.slice(0, 2), orders, "gw1")).toEqual(["gw1"]);
});

test("a drained agent reads no source that another one can read", () => {
  expect(readers(all, { ...none, drained: new Set(["gw1"]) }, "gw1")).toEqual(["gw2", "gw3"]);
  const both = { drained: new Set(["gw1"]), moves: new Map([["line", "gw1"]]) };
  expect(readers(all, both, "gw1")).toEqual(["gw2", "gw3"]);
  expect(readers([preferring], both, "gw1")).toEqual(["gw1"]);
});

test("a drained agent does not deliver, unless all agents are drained", () => {
  const deliverers = (...drained: readonly string[]) =>
    all.map(({ node }) => node).filter((node) => mayDeliver(node, all, { ...none, drained: new Set(drained) }));
  expect(deliverers()).toEqual(["gw1", "gw2", "gw3"]);
  expect(deliverers("gw1", "gw3")).toEqual(["gw2"]);
  expect(deliverers("gw1", "gw2", "gw3")).toEqual(["gw1", "gw2", "gw3"]);
});

test("an agent that cannot reach the service leaves delivery to one that can, and keeps it if there is none", () => {
  const delivering = (reaches: Record<string, boolean>, drained: string[] = []) => {
    const candidates = all.map((one) => ({ ...one, reachesService: reaches[one.node] }));
    const orders = { ...none, drained: new Set(drained) };
    return candidates.map(({ node }) => node).filter((node) => mayDeliver(node, candidates, orders));
  };
  expect(delivering({ gw1: false })).toEqual(["gw1", "gw2", "gw3"]);
  expect(delivering({ gw1: false, gw2: true })).toEqual(["gw2", "gw3"]);
  expect(delivering({ gw1: false, gw2: false })).toEqual(["gw1", "gw2", "gw3"]);
  expect(delivering({ gw1: false, gw2: true }, ["gw2", "gw3"])).toEqual(["gw1"]);
});

test("a readable source always has an agent that may take it", () => {
  const node: fc.Arbitrary<string> = fc.constantFrom("gw1", "gw2", "gw3", "gw4");
  const candidate = fc.record({
    node,
    offers: fc.subarray(["line"]),
    prefers: fc.subarray(["line"]),
    aliveMs: fc.constantFrom(0, holdDownMs),
  });
  fc.assert(
    fc.property(
      fc.uniqueArray(candidate, { selector: (one) => one.node }),
      fc.array(node),
      fc.option(node),
      (candidates, drained, moved) => {
        const orders = { drained: new Set<string>(drained), moves: new Map(moved === null ? [] : [["line", moved]]) };
        const able = candidates.filter((one) => one.offers.length > 0).map((one) => one.node);
        const found = readers(candidates, orders);
        expect(found.length > 0).toBe(able.length > 0);
        expect(found.filter((one) => !able.includes(one))).toEqual([]);
      },
    ),
    runs(300),
  );
});

test("each name has its own token", () => {
  expect(keyToken("north.gw1")).toBe("north=2egw1");
  const names = fc.uniqueArray(
    fc.string({ minLength: 1, unit: fc.constantFrom("a", ".", "=", "2", "e", " ", "ü", "*") }),
  );
  fc.assert(
    fc.property(names, (some) => {
      const tokens = some.map(keyToken);
      expect(new Set(tokens).size).toBe(some.length);
      for (const token of tokens) expect(token).toMatch(/^[A-Za-z0-9_=-]+$/);
    }),
    runs(200),
  );
});
