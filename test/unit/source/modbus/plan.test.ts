import fc from "fast-check";
import { expect, test } from "vitest";
import { type Limits, plan, type Range, type Span, split } from "../../../../src/source/modbus/config/plan.ts";
import { runs } from "../../../support/property.ts";

const limits: Limits = { maxRegisters: 125, maxBits: 2_000, maxGap: 8 };
const hr = (start: number, count = 1): Span => ({ table: "hr", start, count });
const shape = (items: readonly Span[], extra: Partial<Limits> = {}) =>
  plan(items, { ...limits, ...extra }).map(({ table, start, count }) => `${table}:${start}+${count}`);

test("neighbours share a request, and so do values with a gap that is cheaper to read", () => {
  expect(shape([hr(4, 2), hr(0), hr(2)])).toEqual(["hr:0+6"]);
  expect(shape([hr(0), hr(9)])).toEqual(["hr:0+10"]);
  expect(shape([hr(0), hr(10)])).toEqual(["hr:0+1", "hr:10+1"]);
  expect(shape([hr(0), hr(2)], { maxGap: 0 })).toEqual(["hr:0+1", "hr:2+1"]);
});

test("gaps between bits count an eighth", () => {
  const bit = (start: number): Span => ({ table: "co", start, count: 1 });
  expect(shape([bit(0), bit(65)])).toEqual(["co:0+66"]);
  expect(shape([bit(0), bit(66)])).toEqual(["co:0+1", "co:66+1"]);
});

test("tables are never mixed", () => {
  expect(shape([hr(0), { table: "ir", start: 0, count: 1 }])).toEqual(["hr:0+1", "ir:0+1"]);
});

test("a value at the limit is read whole in the next request", () => {
  expect(shape([...Array(62).keys()].map((i) => hr(i * 2, 2)).concat(hr(124, 2)))).toEqual(["hr:0+124", "hr:124+2"]);
});

test("of plans with equally few requests the one with the fewest registers is used", () => {
  // A greedy plan, which reads 0 to 10 first, would transfer 12.
  expect(shape([hr(0), hr(9), hr(10), hr(18)], { maxRegisters: 11 })).toEqual(["hr:0+1", "hr:9+10"]);
});

test("ten thousand tags are planned quickly, also at the same address", () => {
  const many = (place: (i: number) => Span) => Array.from({ length: 10_000 }, (_, i) => place(i));
  const start = performance.now();
  expect(
    plan(
      many(() => hr(5)),
      limits,
    ),
  ).toMatchObject([{ start: 5, count: 1 }]);
  expect(
    plan(
      many((i) => hr(i >> 4)),
      limits,
    ),
  ).toHaveLength(5);
  expect(
    plan(
      many((i) => ({ table: "co", start: i, count: 1 })),
      limits,
    ),
  ).toHaveLength(5);
  // Hundreds of times what the plan takes, and half of what an algorithm took that compared all pairs of tags.
  expect(performance.now() - start).toBeLessThan(10_000);
});

const spans = fc.record({
  table: fc.constantFrom("hr", "co"),
  start: fc.nat(40),
  count: fc.integer({ min: 1, max: 4 }),
});
const ranges = fc
  .tuple(fc.constantFrom("hr", "co"), fc.nat(40), fc.nat(3))
  .map(([table, from, more]) => ({ table, from, to: from + more }) as const);
const cuts = fc.record({ table: fc.constantFrom("hr", "co"), address: fc.nat(40) });
const smallLimits = fc.record({
  forbid: fc.array(ranges, { maxLength: 2 }),
  cuts: fc.array(cuts, { maxLength: 2 }),
  maxRegisters: fc.integer({ min: 4, max: 12 }),
  maxBits: fc.integer({ min: 4, max: 12 }),
  maxGap: fc.nat(3),
});
const maxOf = ({ table }: Span, { maxRegisters, maxBits }: Limits) => (table === "hr" ? maxRegisters : maxBits);
const gapOf = ({ table }: Span, { maxGap }: Limits) => (table === "hr" ? maxGap : maxGap * 8);

test("forbidden registers are not read, and no request reaches across a boundary learned from the device", () => {
  expect(shape([hr(0), hr(4)], { forbid: [{ table: "hr", from: 2, to: 2 }] })).toEqual(["hr:0+1", "hr:4+1"]);
  expect(shape([hr(0), hr(4)], { forbid: [{ table: "ir", from: 2, to: 2 }] })).toEqual(["hr:0+5"]);
  expect(shape([hr(0), hr(1), hr(2)], { cuts: [{ table: "hr", address: 1 }] })).toEqual(["hr:0+1", "hr:1+2"]);
});

test("every value is whole in exactly one request; no request exceeds its limit or spans a wider gap", () => {
  fc.assert(
    fc.property(fc.array(spans, { maxLength: 40 }), smallLimits, (items: readonly Span[], limits) => {
      const blocks = plan(items, limits);
      expect(new Set(blocks.flatMap((block) => block.items))).toEqual(new Set(items));
      expect(blocks.flatMap((block) => block.items)).toHaveLength(items.length);
      for (const block of blocks) {
        expect(block.count).toBeLessThanOrEqual(maxOf(block, limits));
        let end = block.start;
        for (const item of block.items) {
          expect(item.table).toBe(block.table);
          expect(item.start).toBeGreaterThanOrEqual(block.start);
          expect(item.start + item.count).toBeLessThanOrEqual(block.start + block.count);
          expect(item.start - end).toBeLessThanOrEqual(gapOf(item, limits));
          end = Math.max(end, item.start + item.count);
        }
        expect(end).toBe(block.start + block.count);
      }
    }),
    runs(1_000),
  );
});

/** All partitions of the items into groups. */
function* groupings<Item>(items: readonly Item[]): Generator<Item[][]> {
  const [first, ...rest] = items;
  if (first === undefined) {
    yield [];
    return;
  }
  for (const groups of groupings(rest)) {
    yield [[first], ...groups];
    for (const [i, group] of groups.entries()) yield groups.with(i, [first, ...group]);
  }
}

function valid(group: readonly Span[], limits: Limits): boolean {
  const sorted = group.toSorted((a, b) => a.start - b.start);
  const start = sorted[0]!.start;
  const last = Math.max(...group.map((item) => item.start + item.count));
  const across = (limits.cuts ?? []).some((c) => c.table === group[0]!.table && start < c.address && c.address < last);
  // A value that crosses a boundary shares its request only with tags of the same value.
  if (across && new Set(group.map((item) => `${item.start}+${item.count}`)).size > 1) return false;
  let end = start;
  for (const item of sorted) {
    const gap = [...Array(Math.max(0, item.start - end)).keys()].map((i) => end + i);
    const forbidden = (r: Range) =>
      r.table === item.table && gap.some((address) => r.from <= address && address <= r.to);
    if ((limits.forbid ?? []).some(forbidden)) return false;
    if (item.table !== group[0]!.table || item.start - end > gapOf(item, limits)) return false;
    end = Math.max(end, item.start + item.count);
  }
  return end - sorted[0]!.start <= maxOf(sorted[0]!, limits);
}

const acrossACut: [Span[], Limits] = [
  Array.from({ length: 2 }, () => ({ table: "co", start: 33, count: 4 })),
  { maxRegisters: 4, maxBits: 4, maxGap: 0, cuts: [{ table: "co", address: 34 }] },
];

test("no other way to group the values needs fewer requests", () => {
  fc.assert(
    fc.property(fc.array(spans, { maxLength: 7 }), smallLimits, (items: Span[], limits: Limits) => {
      let fewest = Number.POSITIVE_INFINITY;
      for (const groups of groupings(items))
        if (groups.length < fewest && groups.every((group) => valid(group, limits))) fewest = groups.length;
      expect(plan(items, limits).length).toBe(fewest);
    }),
    runs(300, { examples: [acrossACut] }),
  );
});

test("splitting keeps every value, makes both halves smaller, and ends with single registers", () => {
  fc.assert(
    fc.property(fc.array(spans, { minLength: 1, maxLength: 20 }), (items: readonly Span[]) => {
      const queue = [...plan(items, { maxRegisters: 125, maxBits: 2_000, maxGap: 40 })];
      const leaves = [];
      for (let block = queue.pop(); block; block = queue.pop()) {
        const halves = split(block);
        if (halves) {
          expect(halves.flatMap((half) => half.items)).toEqual(block.items);
          for (const half of halves) expect(half.items.length).toBeLessThan(block.items.length);
          queue.push(...halves);
        } else leaves.push(block);
      }
      for (const leaf of leaves)
        for (const item of leaf.items) expect(item).toMatchObject({ start: leaf.start, count: leaf.count });
      expect(leaves.flatMap((leaf) => leaf.items)).toHaveLength(items.length);
    }),
    runs(300),
  );
});

test("a block is split at its widest gap", () => {
  const [block] = plan([hr(0), hr(1), hr(7), hr(8)], limits);
  expect(block && split(block)?.map(({ start, count }) => [start, count])).toEqual([
    [0, 2],
    [7, 2],
  ]);
});
