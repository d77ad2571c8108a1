// Compares the log with a simple model over random sequences of events, power cuts above all.
import fc from "fast-check";
import { expect } from "vitest";
import {
  append,
  moment,
  type OpenedStore,
  openStore,
  settle,
  type TakenBlock,
  type Triple,
  take,
} from "./disk-store.ts";
import { type Fault, MemoryDisk } from "./memory-disk.ts";
import "./property.ts";
import { seeded } from "./runtime.ts";

const t0 = 1_767_225_600_000_000;
const keyOf = ([input, time, value]: Triple) => `${input} ${time} ${value}`;

export type Step =
  | { readonly kind: "append"; readonly points: number; readonly inputs: number }
  | {
      readonly kind: "take";
      readonly lane: "live" | "backlog";
      readonly max: number;
      readonly input: number | undefined;
      /** The index of an input to leave in the buffer. */
      readonly except?: number | undefined;
    }
  | { readonly kind: "settle"; readonly block: number; readonly inputs: number | undefined }
  | { readonly kind: "release"; readonly block: number }
  | { readonly kind: "tick" }
  | { readonly kind: "compact"; readonly steps: number }
  | { readonly kind: "close" }
  | { readonly kind: "cut"; readonly seed: number }
  | { readonly kind: "cutDuring"; readonly call: number; readonly seed: number }
  /** Only the process dies during an append. The next process starts with the same append. */
  | { readonly kind: "killDuring"; readonly call: number }
  /** The process dies during an append, and the power fails while the next process opens the buffer. */
  | { readonly kind: "cutOpening"; readonly call: number; readonly opening: number; readonly seed: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("append" as const),
      points: fc.integer({ min: 1, max: 40 }),
      inputs: fc.integer({ min: 1, max: 5 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("take" as const),
      lane: fc.constantFrom("live" as const, "backlog" as const),
      max: fc.integer({ min: 1, max: 60 }),
      input: fc.option(fc.nat(4), { nil: undefined }),
      except: fc.option(fc.nat(4), { nil: undefined }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("settle" as const),
      block: fc.nat(3),
      inputs: fc.option(fc.nat(4), { nil: undefined }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("release" as const), block: fc.nat(3) }) },
  { weight: 2, arbitrary: fc.constant({ kind: "tick" as const }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("compact" as const), steps: fc.integer({ min: 1, max: 12 }) }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: "close" as const }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("cut" as const), seed: fc.nat() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("cutDuring" as const), call: fc.nat(12), seed: fc.nat() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("killDuring" as const), call: fc.nat(12) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("cutOpening" as const),
      call: fc.nat(12),
      opening: fc.nat(30),
      seed: fc.nat(),
    }),
  },
);

class PowerCut extends Error {}

/** Any events, in any order. */
export const steps = fc.array(step, { minLength: 1, maxLength: 30 });

/** Runs the steps. Throws when a promise is broken. `lie`: a permanent fault of the disk. */
export function runSteps(all: readonly Step[], lie: Fault = () => undefined, maxSize = 2 ** 30): void {
  let disk = new MemoryDisk();
  disk.fault = lie;
  let seconds = 0;
  let sequence = 0;
  let opened: OpenedStore = openStore(disk, { segmentBytes: 5_000, maxSize });
  let out: TakenBlock[] = [];
  /** Acknowledged points, and points of an append that a power cut interrupted: those may be stored. */
  const acknowledged = new Map<string, Triple>();
  const unsure = new Set<string>();
  let unsureEver = 0;
  /** Whether there may be late points, which the live lane does not yield. */
  let hasLate = false;
  /** Settled and not delivered again since. After a power cut they may be delivered again, before it they must not. */
  const settled = new Set<string>();
  /** Settled only once other points are. They are delivered again if one of those is released instead. */
  const waiting = new Set<string>();
  let mayRevoke = false;

  /** Without a seed only the process died: its writes can be read, but unsynced ones are still not durable. */
  const reopen = (seed: number | undefined) => {
    const random = seeded(seed ?? 0);
    if (seed !== undefined) disk = disk.afterPowerCut(() => random() < 0.5);
    disk.fault = lie;
    opened = openStore(disk, {
      segmentBytes: 5_000,
      seed: ++sequence,
      at: seconds,
      maxSize,
    });
    out = [];
    // Every acknowledged, unsettled point is delivered, once.
    const seen = new Map<string, number>();
    const blocks: TakenBlock[] = [];
    for (let block = take(opened.store); block; block = take(opened.store)) {
      blocks.push(block);
      for (const point of block.points) seen.set(keyOf(point), (seen.get(keyOf(point)) ?? 0) + 1);
    }
    for (const [key, count] of seen)
      expect({ key, count, known: acknowledged.has(key) || unsure.has(key) }).toEqual({ key, count: 1, known: true });
    for (const key of waiting) if (!seen.has(key)) settled.add(key);
    waiting.clear();
    mayRevoke = false;
    const missing = [...acknowledged.keys()].filter((key) => !settled.has(key) && !seen.has(key));
    // Missing points were dropped, and are counted exactly. An append that a power cut interrupted may be among them.
    const { losses } = opened.store.stats();
    const lost = losses.reduce((sum, loss) => sum + loss.points, 0);
    expect(losses.filter(({ reason }) => reason !== "maxSize" || maxSize === 2 ** 30)).toEqual([]);
    expect({ missing, lost }).toEqual({ missing: missing.slice(0, lost), lost: expect.any(Number) });
    expect(lost).toBeLessThanOrEqual(missing.length + unsureEver);
    for (const key of seen.keys()) settled.delete(key);
    for (const key of seen.keys()) if (unsure.delete(key)) acknowledged.set(key, ["", 0, 0]);
    opened.store.release(blocks.map((block) => block.id));
  };

  const newPoints = (count: number, inputs: number): Triple[] =>
    Array.from({ length: count }, (_, i): Triple => [`i${i % inputs}`, t0 + ++sequence * 1_000, sequence / 8]);

  const untilCall = (calls: number, action: () => void) => {
    const limit = disk.calls + calls;
    disk.fault = (call, path) => {
      if (disk.calls > limit) throw new PowerCut();
      return lie(call, path);
    };
    try {
      action();
    } catch {
      // The process that made the call is gone.
    }
  };

  for (const each of all) {
    seconds += 3;
    switch (each.kind) {
      case "append": {
        const points = newPoints(each.points, each.inputs);
        append(opened.store, points, seconds);
        for (const point of points) acknowledged.set(keyOf(point), point);
        break;
      }
      case "take": {
        const only = each.input === undefined ? undefined : [`i${each.input}`];
        const without = each.except === undefined ? undefined : [`i${each.except}`];
        const block = take(opened.store, each.lane, each.max, only, without);
        if (!block) {
          // In that case all matching points must be leased.
          const leased = new Set(out.flatMap(({ points }) => points.map(keyOf)));
          const { losses } = opened.store.stats();
          const free = [...acknowledged].filter(
            ([key, [input]]) =>
              input !== "" &&
              !settled.has(key) &&
              !waiting.has(key) &&
              !leased.has(key) &&
              (only ?? [input]).includes(input) &&
              !without?.includes(input),
          );
          expect(losses.length > 0 || (hasLate && each.lane === "live") ? [] : free).toEqual([]);
          break;
        }
        expect(block.points.filter(([input]) => without?.includes(input))).toEqual([]);
        for (const point of block.points) {
          const key = keyOf(point);
          if (mayRevoke) waiting.delete(key);
          expect({
            key,
            settled: settled.has(key) || waiting.has(key),
            out: out.some((other) => other.points.some((p) => keyOf(p) === key)),
          }).toEqual({ key, settled: false, out: false });
        }
        out.push(block);
        break;
      }
      case "settle": {
        const block = out[each.block % Math.max(1, out.length)];
        if (!block) break;
        const inputs = each.inputs === undefined ? undefined : [`i${each.inputs}`];
        const before = opened.store.stats().settledPoints;
        settle(opened.store, block, inputs);
        // A late point is not settled before the points that it may replace.
        const isWaiting = opened.store.stats().settledPoints === before;
        const done = block.points.filter(([input]) => !inputs || inputs.includes(input));
        for (const point of done) (isWaiting ? waiting : settled).add(keyOf(point));
        const left = block.points.filter((point) => !done.includes(point));
        out = out
          .map((other) => (other === block ? { id: block.id, points: left } : other))
          .filter(({ points }) => points.length > 0);
        break;
      }
      case "release": {
        const block = out[each.block % Math.max(1, out.length)];
        if (!block) break;
        opened.store.release([block.id]);
        mayRevoke ||= waiting.size > 0;
        out = out.filter((other) => other !== block);
        break;
      }
      case "tick":
        opened.store.tick(moment(seconds));
        break;
      case "compact":
        seconds += 61;
        for (let i = 0; i < each.steps; i++) opened.store.work(moment(seconds));
        break;
      case "close":
        opened.store.close(moment(seconds));
        reopen(1);
        break;
      case "cut":
        reopen(each.seed);
        break;
      case "cutDuring": {
        const points = newPoints(9, 3);
        const limit = disk.calls + each.call;
        disk.fault = (call, path) => {
          if (disk.calls > limit) throw new PowerCut();
          return lie(call, path);
        };
        try {
          opened.store.tick(moment(seconds));
          opened.store.work(moment(seconds));
          append(opened.store, points, seconds);
          for (const point of points) acknowledged.set(keyOf(point), point);
        } catch {
          for (const point of points) unsure.add(keyOf(point));
          unsureEver += points.length;
        }
        reopen(each.seed);
        break;
      }
      case "killDuring":
      case "cutOpening": {
        const points = newPoints(9, 3);
        for (const point of points) unsure.add(keyOf(point));
        unsureEver += points.length;
        untilCall(each.call, () => append(opened.store, points, seconds));
        if (each.kind === "cutOpening")
          untilCall(each.opening, () =>
            openStore(disk, {
              segmentBytes: 5_000,
              seed: ++sequence,
              at: seconds,
              maxSize,
            }),
          );
        // The first attempt may be stored or not. The second append with the same times must be stored.
        reopen(each.kind === "cutOpening" ? each.seed : undefined);
        const again = points.map(([input, time, value]): Triple => [input, time, value + 1 / 16]);
        append(opened.store, again, seconds);
        hasLate = true;
        for (const point of again) acknowledged.set(keyOf(point), point);
        break;
      }
    }
    const { appendedPoints, settledPoints, unsettledPoints, losses } = opened.store.stats();
    expect(settledPoints + unsettledPoints + losses.reduce((sum, loss) => sum + loss.points, 0)).toBe(appendedPoints);
  }
  reopen(5);
}
