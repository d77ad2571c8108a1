// A full buffer drops its oldest points and reports exactly which. The oracle knows every appended and every settled
// point.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Loss } from "../../../../src/core/buffer.ts";
import {
  append,
  moment,
  openStore,
  settle,
  type TakenBlock,
  type Triple,
  take,
  takeAll,
} from "../../../support/disk-store.ts";
import { MemoryDisk } from "../../../support/memory-disk.ts";
import { runs } from "../../../support/property.ts";

const t0 = 1_767_225_600_000_000;
const setup = { segmentBytes: 5_000, maxSize: 20_000 };
/** Every point has its own time, in the order of the log. */
const timeOf = (number: number) => t0 + number * 1_000;
const pointOf = (number: number, inputs: number): Triple => [`i${number % inputs}`, timeOf(number), number / 8];
const numberOf = ([, time]: Triple) => (time - t0) / 1_000;

type Step =
  | { readonly kind: "append"; readonly points: number; readonly inputs: number }
  | { readonly kind: "take"; readonly lane: "live" | "backlog"; readonly max: number; readonly input?: number }
  | { readonly kind: "settle"; readonly block: number; readonly input?: number }
  | { readonly kind: "release"; readonly block: number }
  | { readonly kind: "tick" | "compact" | "close" | "kill" };

const maybeInput = fc.option(fc.nat(3), { nil: undefined, freq: 2 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("append" as const),
      points: fc.integer({ min: 20, max: 300 }),
      inputs: fc.integer({ min: 1, max: 4 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("take" as const),
      lane: fc.constantFrom("live" as const, "backlog" as const),
      max: fc.integer({ min: 5, max: 400 }),
      input: maybeInput,
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("settle" as const), block: fc.nat(5), input: maybeInput }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("release" as const), block: fc.nat(5) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom("tick" as const, "tick" as const, "compact" as const, "close" as const, "kill" as const),
    }),
  },
) as fc.Arbitrary<Step>;

interface Verdict {
  /** Numbers of the points that were neither settled nor stored at the end. */
  readonly missing: readonly number[];
  readonly left: readonly number[];
  readonly losses: readonly Loss[];
  readonly settled: ReadonlySet<number>;
  readonly bySeries: boolean;
}

function run(steps: readonly Step[]): Verdict {
  const disk = new MemoryDisk();
  let seconds = 0;
  let opens = 1;
  let count = 0;
  let bySeries = false;
  let { store } = openStore(disk, setup);
  let out: TakenBlock[] = [];
  const settled = new Set<number>();
  const reopen = () => {
    ({ store } = openStore(disk, { ...setup, seed: ++opens, at: seconds }));
    out = [];
  };
  for (const each of steps) {
    seconds += 3;
    if (each.kind === "append") {
      const points = Array.from({ length: each.points }, (_, i) => pointOf(count + i, each.inputs));
      count += each.points;
      append(store, points, seconds);
    } else if (each.kind === "take") {
      const block = take(store, each.lane, each.max, each.input === undefined ? undefined : [`i${each.input}`]);
      const numbers = (block?.points ?? []).map(numberOf);
      bySeries ||= Math.max(...numbers) - Math.min(...numbers) >= numbers.length;
      if (block) out.push(block);
    } else if (each.kind === "settle" && out.length > 0) {
      const block = out[each.block % out.length]!;
      const inputs = each.input === undefined ? undefined : [`i${each.input}`];
      bySeries ||= each.input !== undefined;
      const points = block.points.filter(([input]) => !inputs || inputs.includes(input));
      settle(store, block, inputs);
      for (const point of points) settled.add(numberOf(point));
      const left = block.points.filter((point) => !settled.has(numberOf(point)));
      out = out.map((other) => (other === block ? { id: block.id, points: left } : other));
      out = out.filter(({ points: rest }) => rest.length > 0);
    } else if (each.kind === "release" && out.length > 0) {
      const block = out[each.block % out.length]!;
      store.release([block.id]);
      out = out.filter((other) => other !== block);
    } else if (each.kind === "tick") store.tick(moment(seconds));
    else if (each.kind === "compact") {
      seconds += 61;
      for (let i = 0; i < 12; i++) store.work(moment(seconds));
    } else if (each.kind === "close") {
      store.close(moment(seconds));
      reopen();
    } else if (each.kind === "kill") reopen();
    const stats = store.stats();
    const lost = stats.losses.reduce((sum, loss) => sum + loss.points, 0);
    expect(stats.settledPoints).toBe(settled.size);
    expect(stats.appendedPoints).toBe(count);
    expect(stats.unsettledPoints).toBe(count - settled.size - lost);
    // Allows for the totals at the end of the newest segment.
    expect(stats.bytes).toBeLessThanOrEqual(setup.maxSize + 500);
  }
  store.close(moment(seconds + 3));
  reopen();
  const left = takeAll(store).map(numberOf);
  const there = new Set(left);
  expect(there.size).toBe(left.length);
  const all = Array.from({ length: count }, (_, number) => number);
  const missing = all.filter((number) => !there.has(number) && !settled.has(number));
  return { missing, left, settled, losses: store.stats().losses, bySeries };
}

function judge({ missing, left, settled, losses, bySeries }: Verdict): void {
  expect(losses.map(({ reason }) => reason)).toEqual(missing.length > 0 ? ["maxSize"] : []);
  expect(losses.reduce((sum, loss) => sum + loss.points, 0)).toBe(missing.length);
  // Only the oldest points were dropped.
  if (missing.length > 0 && left.length > 0) expect(missing.at(-1)).toBeLessThan(Math.min(...left));
  const intervals = losses.flatMap((loss) => loss.intervals);
  expect(intervals.reduce((sum, { points }) => sum + points, 0)).toBe(missing.length);
  const isMissing = new Set(missing);
  const isTold = (number: number) => intervals.some(({ from, to }) => from! <= timeOf(number) && timeOf(number) <= to!);
  expect(missing.filter((number) => !isTold(number))).toEqual([]);
  for (const { from, to, points } of intervals) {
    const [first, last] = [numberOf(["", from!, 0]), numberOf(["", to!, 0])];
    // The interval begins and ends with a lost point.
    expect({ first: isMissing.has(first), last: isMissing.has(last) }).toEqual({ first: true, last: true });
    const within = missing.filter((number) => number >= first && number <= last);
    if (bySeries) continue;
    // No point within the interval was delivered.
    expect(within).toHaveLength(points);
    for (let number = first; number <= last; number++) expect(settled.has(number)).toBe(false);
  }
}

test("after any overflow the newest points are stored, and the counted losses are exactly the missing points", () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 5, maxLength: 40 }), (steps) => judge(run(steps))),
    runs(150),
  );
});

test("a segment with leased blocks is dropped like any other, and points accepted later are not lost", () => {
  const steps: Step[] = [
    { kind: "append", points: 300, inputs: 1 },
    { kind: "append", points: 300, inputs: 1 },
    { kind: "take", lane: "backlog", max: 100 },
    { kind: "take", lane: "backlog", max: 100 },
    ...Array.from({ length: 40 }, (): Step => ({ kind: "append", points: 300, inputs: 1 })),
    { kind: "settle", block: 0 },
    { kind: "release", block: 0 },
  ];
  const verdict = run(steps);

  judge(verdict);
  expect(verdict.settled.size).toBeGreaterThan(0);
  expect(Math.max(...verdict.left)).toBe(42 * 300 - 1);
  expect(verdict.missing.length).toBeGreaterThan(1_000);
});
