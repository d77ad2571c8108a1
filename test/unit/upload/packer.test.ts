// Packer, window and writer together: every point is sent exactly once, and every frame fits, has the planned size and
// is read by the service as written.
import fc from "fast-check";
import { expect, test } from "vitest";
import { Block, type BlockId } from "../../../src/core/block.ts";
import type { Lane, Settlement } from "../../../src/core/buffer.ts";
import type { InputId } from "../../../src/core/point.ts";
import type { Steps } from "../../../src/lib/flow/in-slices.ts";
import { Envelope, FrameWriter, firstRequestId, type PackedPlan } from "../../../src/upload/packing/frame.ts";
import { Packer } from "../../../src/upload/packing/packer.ts";
import type { Candidates } from "../../../src/upload/packing/shared-times.ts";
import { Window } from "../../../src/upload/window/window.ts";
import { frameWritten } from "../../support/insert-contract.ts";
import { runs } from "../../support/property.ts";
import { seeded } from "../../support/runtime.ts";

const envelope = new Envelope("c8ktonqsahsmemfs7lv0");
const start = Date.parse("2026-01-01T00:00:00Z") * 1_000;

interface Sent {
  readonly bytes: number;
  readonly plan: PackedPlan;
  readonly points: Map<string, number>;
}

function block(id: number, series: Record<string, [time: number, value: number][]>): Block {
  const all = Object.entries(series).map(([input, points]) => ({
    input: input as InputId,
    times: Float64Array.from(points, ([time]) => start + time),
    values: Float64Array.from(points, ([, value]) => value),
  }));
  return Block.of(id as BlockId, all);
}

function finished<T>(work: Steps<T>): T {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}

const candidatesOf = (window: Window, lane: Lane): Candidates => ({
  queues: window.filled(lane),
  since: (queue) => window.since(queue),
});

/** Sends everything in the window frame by frame, the backlog first. */
function drain(window: Window, maxBytes: number, options: { maxSeries?: number; urgentBefore?: number } = {}): Sent[] {
  const packer = new Packer();
  const writer = new FrameWriter(envelope, maxBytes);
  const sent: Sent[] = [];
  for (;;) {
    const candidates = (lane: Lane) => candidatesOf(window, lane);
    const { maxSeries = 1_000, urgentBefore = -1 } = options;
    const limits = { maxBytes, envelopeBytes: envelope.bytes, maxSeries, urgentBefore };
    const plan =
      finished(packer.plan(candidates("backlog"), limits, candidates("live"))) ??
      finished(packer.plan(candidates("live"), limits));
    if (!plan) return sent;
    const body = Buffer.from(finished(writer.write(plan, firstRequestId))).toString("utf8");
    sent.push({ bytes: Buffer.byteLength(body), plan, points: pointsOf(body) });
    for (const { source, count } of plan.parts) window.settle(source, count);
  }
}

function pointsOf(body: string): Map<string, number> {
  const { times, series } = frameWritten(body);
  const points = new Map<string, number>();
  const padded = times.map((time) => `${time.slice(0, -1).padEnd(20, ".").padEnd(26, "0")}`);
  expect(padded).toEqual(padded.toSorted());
  for (const [input, values] of Object.entries(series)) {
    expect(values.length).toBe(times.length);
    expect(values.some((value) => value !== null)).toBe(true);
    for (const [i, value] of values.entries()) if (value !== null) points.set(`${input} ${times[i]}`, value);
  }
  return points;
}

function key(input: string, time: number): string {
  const iso = new Date((start + time) / 1_000).toISOString();
  const micros = String((start + time) % 1_000).padStart(3, "0");
  const fraction = (iso.slice(20, 23) + micros).replace(/0+$/, "");
  return `${input} ${iso.slice(0, 19)}${fraction && `.${fraction}`}Z`;
}

const value = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.integer({ min: -5_000, max: 5_000 }).map((n) => n / 10),
);
const anyTime = fc.oneof(
  fc.integer({ min: 0, max: 5 }).map((n) => n * 1e6),
  fc.integer({ min: 0, max: 5_000_000 }),
);
const blocks = fc.array(
  fc.dictionary(
    fc.constantFrom("a", "b/c", "d.e#f", "g+h", "i_j-k:l"),
    fc.array(fc.tuple(anyTime, value), { minLength: 1, maxLength: 12 }),
    { minKeys: 1 },
  ),
  { minLength: 1, maxLength: 12 },
);

test("every point is sent exactly once, in frames within the limit and of the planned size", {
  timeout: 120_000,
}, () => {
  fc.assert(
    fc.property(
      blocks,
      fc.integer({ min: 260, max: 3_000 }),
      fc.integer({ min: 1, max: 5 }),
      fc.boolean(),
      fc.constantFrom("none", "later", "between"),
      (many, maxBytes, maxSeries, urgent, backlog) => {
        const window = new Window(64);
        const expected = new Map<string, number>();
        let count = 0;
        for (const [id, each] of many.entries()) {
          // No time is in both lanes, because the stored value would then depend on which lane is sent last.
          const lane = backlog !== "none" && id % 2 === 0 ? "backlog" : "live";
          const shift = lane === "live" ? (backlog === "later" ? 20_000_000 : 1) : 0;
          const shifted = Object.fromEntries(
            Object.entries(each).map(([input, points]) => [
              input,
              points.map(([time, of]): [number, number] => [time * 2 + shift, of]),
            ]),
          );
          expect(window.add(lane, block(id, shifted), id)).toEqual([]);
          for (const [input, points] of Object.entries(shifted))
            for (const [time, of] of points) {
              expected.set(key(input, time), of + 0 === 0 ? 0 : of);
              count++;
            }
        }
        expect(window.points("live") + window.points("backlog")).toBe(count);
        const sent = drain(window, maxBytes, { maxSeries, urgentBefore: urgent ? Infinity : -1 });
        const seen = new Map<string, number>();
        let points = 0;
        for (const frame of sent) {
          expect(frame.bytes).toBeLessThanOrEqual(maxBytes);
          expect(frame.bytes).toBe(frame.plan.bytes);
          expect(frame.plan.columns.length).toBeLessThanOrEqual(maxSeries);
          expect(frame.plan.times.length * frame.plan.columns.length - frame.plan.nulls).toBe(frame.points.size);
          // As the service stores them: of two values for one time the later one remains.
          for (const [name, of] of frame.points) seen.set(name, of);
          points += frame.plan.points;
        }
        expect(points).toBe(count);
        expect(seen).toEqual(expected);
        expect([window.points("live"), window.points("backlog")]).toEqual([0, 0]);
        const settled = window.takeSettled();
        expect(settled.map((each) => each.block).toSorted((a, b) => a - b)).toEqual(many.map((_, id) => id));
      },
    ),
    runs(200),
  );
});

/** Poll groups, devices and single tags, some with an odd point; and tags that are stored on change. */
const mixed = fc
  .record({
    groups: fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 6 }),
    depth: fc.integer({ min: 1, max: 60 }),
    changing: fc.array(fc.integer({ min: 1, max: 80 }), { maxLength: 10 }),
    seed: fc.integer({ min: 1, max: 1_000 }),
  })
  .map(({ groups, depth, changing, seed }) => {
    const random = seeded(seed);
    const series: Record<string, [number, number][]> = {};
    const put = (times: readonly number[]) => {
      const name = `line${Object.keys(series).length % 3}.t${Object.keys(series).length}`;
      series[name] = times.map((time) => [
        time,
        Math.round((random() - 0.3) * 10_000) / 10 ** Math.floor(random() * 4),
      ]);
    };
    for (const members of groups) {
      const phase = Math.floor(random() * 1_000) * 1_000;
      const times = Array.from({ length: depth }, (_, i) => i * 1e6 + phase);
      for (let i = 0; i < members; i++) put(random() < 0.1 ? times.slice(1) : times);
    }
    for (const count of changing) {
      const times = Array.from({ length: count }, () => Math.floor(random() * 6e4) * 1_000);
      put([...new Set(times)].toSorted((x, y) => x - y));
    }
    return series;
  });

test("windows of groups, devices and single tags are sent once, within the limit, with the planned bytes and nulls", {
  timeout: 120_000,
}, () => {
  fc.assert(
    fc.property(mixed, fc.integer({ min: 400, max: 20_000 }), fc.boolean(), (series, maxBytes, urgent) => {
      const window = new Window(10_000);
      window.add("live", block(1, series), 0);
      const seen = new Map<string, number>();
      let sentPoints = 0;
      for (const { bytes, plan, points } of drain(window, maxBytes, { urgentBefore: urgent ? Infinity : -1 })) {
        expect(bytes).toBe(plan.bytes);
        expect(bytes).toBeLessThanOrEqual(maxBytes);
        expect(plan.times.length * plan.columns.length - plan.nulls).toBe(points.size);
        expect(plan.points).toBe(points.size);
        for (const [name, of] of points) seen.set(name, of);
        sentPoints += points.size;
      }
      const expected = new Map(
        Object.entries(series).flatMap(([input, of]) => of.map(([time, v]) => [key(input, time), v + 0] as const)),
      );
      expect(sentPoints).toBe(expected.size);
      expect(seen).toEqual(expected);
    }),
    runs(100),
  );
});

test("series that share their times are sent without a null, as many rows as fit", () => {
  const window = new Window(100_000);
  for (let tick = 0; tick < 300; tick++) {
    const series: Record<string, [number, number][]> = {};
    for (let tag = 0; tag < 100; tag++) series[`line1.machine2.t${tag}`] = [[tick * 1e6, (tag * 7 + tick) / 10]];
    window.add("live", block(tick, series), tick);
  }
  const sent = drain(window, 65_536);
  expect(sent.map((frame) => frame.plan.nulls)).toEqual(sent.map(() => 0));
  for (const { bytes } of sent.slice(0, -1)) expect(bytes).toBeGreaterThan(65_536 * 0.98);
});

test("fresh points of polled tags are included in every frame of the backlog, at the cost of their text only", () => {
  const window = new Window(200_000);
  const tags = Array.from({ length: 100 }, (_, tag) => `line1.machine2.t${tag}`);
  const row = (tick: number) =>
    Object.fromEntries(tags.map((tag, k) => [tag, [[tick * 1e6, (k + tick) / 10]] as [number, number][]]));
  for (let tick = 0; tick < 500; tick++) window.add("backlog", block(tick, row(tick)), tick);
  window.add("live", block(1_000, row(10_000)), 0);
  window.add("live", block(1_001, row(10_001)), 0);
  const [first, ...others] = drain(window, 65_536);
  expect([...(first?.points.keys() ?? [])]).toContain(key("line1.machine2.t7", 10_001e6));
  expect([first, ...others].map((frame) => frame?.plan.nulls)).toEqual([first, ...others].map(() => 0));
  expect(first?.bytes).toBeGreaterThan(65_536 * 0.98);
});

test("fresh points of unrelated series do not enlarge a frame of the backlog", () => {
  const window = new Window(200_000);
  window.add("backlog", block(1, { a: Array.from({ length: 500 }, (_, i) => [i * 1e6, 1] as [number, number]) }), 0);
  window.add(
    "live",
    block(2, Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`b${i}`, [[1e9 + i, 1]] as [number, number][]]))),
    0,
  );
  const [first, second] = drain(window, 65_536);
  expect([first?.points.size, first?.plan.nulls, second?.points.size]).toEqual([500, 0, 50]);
});

test("fresh points between those of the backlog are sent in a frame of their own", () => {
  const window = new Window(1_000);
  window.add(
    "backlog",
    block(1, {
      a: [
        [0, 1],
        [10, 2],
        [20, 3],
      ],
    }),
    0,
  );
  window.add(
    "live",
    block(2, {
      a: [
        [5, 4],
        [15, 5],
      ],
    }),
    0,
  );
  const sent = drain(window, 10_000);
  expect(sent.map(({ points }) => [...points.values()])).toEqual([
    [1, 2, 3],
    [4, 5],
  ]);
});

test("a series of a block is settled with the last of its points and lists its refused points", () => {
  const window = new Window(100);
  window.add(
    "live",
    block(1, {
      a: [[0, 1]],
      b: [
        [0, 2],
        [1, 3],
      ],
    }),
    0,
  );
  const [a, b] = [...window.queues("live")];
  window.settle(a!, 1);
  window.settle(b!, 1);
  expect(window.takeSettled()).toEqual([{ block: 1, inputs: ["a"] }]);
  const taken = window.extract(b!, 1);
  expect(window.takeSettled()).toEqual([]);
  window.settleExtracted(taken, true);
  expect(window.takeSettled()).toEqual([
    { block: 1, inputs: ["b"], refused: 1 } satisfies Partial<Settlement> | object,
  ]);
});

test("points that JSON or RFC 3339 cannot express are reported, and count as refused afterwards", () => {
  const window = new Window(100);
  const bad = window.add(
    "live",
    block(1, {
      a: [
        [0, Number.NaN],
        [1e18, 1],
        [2, 1],
      ],
    }),
    0,
  );
  expect(bad.map(({ input, reason }) => `${input}: ${reason}`)).toEqual([
    "a: value is not a finite number",
    "a: time is outside the years 1 to 9999",
  ]);
  const [a] = [...window.queues("live")];
  window.settle(a!, 1);
  expect(window.takeSettled()).toEqual([]);
  window.settleUnsendable(bad);
  expect(window.takeSettled()).toEqual([{ block: 1, inputs: ["a"], refused: 2 }]);
});

test("a block with dropped points is released, never settled", () => {
  const window = new Window(100);
  window.add(
    "live",
    block(1, {
      a: [
        [0, 1],
        [1, 2],
      ],
    }),
    0,
  );
  window.add("live", block(2, { a: [[2, 3]] }), 0);
  const [a] = [...window.queues("live")];
  const taken = window.extract(a!, 1);
  finished(window.forget("live"));
  expect(window.takeReleased()).toEqual([2]);
  window.settleExtracted(taken, false);
  expect([window.takeReleased(), window.takeSettled()]).toEqual([[1], []]);
});

test("the memory of the window is reused", () => {
  const window = new Window(1_000);
  for (let round = 0; round < 50; round++) {
    const room = window.room;
    window.add(
      "live",
      block(round, { a: Array.from({ length: 500 }, (_, i) => [round * 1_000 + i, i] as [number, number]) }),
      0,
    );
    drain(window, 10_000);
    expect(window.room).toBe(room);
  }
});

/** 100 tags with the same times, `everySeconds` apart, from tick `from` to tick `to`. */
function poll(machine: string, from: number, to: number, everySeconds = 1): Record<string, [number, number][]> {
  return Object.fromEntries(
    Array.from({ length: 100 }, (_, tag) => [
      `line1.${machine}.t${tag}`,
      Array.from({ length: to - from }, (__, i): [number, number] => [(from + i) * everySeconds * 1e6, (tag + i) / 10]),
    ]),
  );
}

test("a poll whose series arrive in parts is sent in frames of all of them", () => {
  const window = new Window(200_000);
  for (let i = 0; i < 38; i++) window.add("backlog", block(i, poll("machine2", i * 10, (i + 1) * 10)), 0);
  const some = Object.entries(poll("machine2", 380, 390)).slice(0, 40);
  window.add("backlog", block(38, Object.fromEntries(some)), 0);
  const sent = drain(window, 65_536);
  const before = sent.slice(0, -1);
  expect(before.length).toBeGreaterThan(1);
  expect(before.map(({ plan }) => plan.columns.length)).toEqual(before.map(() => 100));
  expect(before.map(({ plan }) => plan.nulls)).toEqual(before.map(() => 0));
});

test("of a poll behind a deep series, each frame takes the rows that all of its series have", () => {
  const window = new Window(10_000);
  const row = (from: number, to: number, phase: number) =>
    Array.from({ length: to - from }, (_, i): [number, number] => [(from + i) * 1e6 + phase, i / 10]);
  window.add("backlog", block(1, { deep: row(0, 60, 0) }), 0);
  window.add("backlog", block(2, { deep: row(60, 2_000, 0) }), 0);
  window.add("backlog", block(3, { first: row(0, 3, 7), second: row(0, 2, 7) }), 0);
  const [frame] = drain(window, 8_192);
  expect([...frame!.plan.parts].map(({ source, count }) => [source.input, count])).toEqual([
    ["deep", 60],
    ["first", 2],
    ["second", 2],
  ]);
  expect(frame!.bytes).toBe(frame!.plan.bytes);
});

test("series that begin together and diverge do not count as one poll", () => {
  const window = new Window(200_000);
  for (let i = 0; i < 30; i++)
    window.add(
      "backlog",
      block(i, { ...poll("fast", i * 10, (i + 1) * 10), ...poll("slow", i * 8, (i + 1) * 8, 1.5) }),
      0,
    );
  const [first] = drain(window, 65_536);
  expect([first?.plan.columns.length, first?.plan.nulls]).toEqual([100, 0]);
});

test("a frame does not divide a block: points that a kill would repeat are settled with the request that delivers them", () => {
  const window = new Window(200_000);
  for (let i = 0; i < 20; i++) window.add("backlog", block(i, poll("dense", i * 15, (i + 1) * 15)), 0);
  for (let i = 0; i < 20; i++) {
    const unrelated = Array.from({ length: 30 }, (_, tag): [string, [number, number][]] => [
      `line2.t${tag}`,
      Array.from({ length: 20 }, (__, k): [number, number] => [(i * 20 + k) * 1e6 + tag * 7 + 1, k]),
    ]);
    window.add("backlog", block(100 + i, Object.fromEntries(unrelated)), 0);
  }
  const packer = new Packer();
  const left = () => window.filled("backlog");
  let frames = 0;
  let settled = 0;
  for (;;) {
    const candidates = { queues: left(), since: () => 0 };
    const limits = { maxBytes: 65_536, envelopeBytes: envelope.bytes, maxSeries: 1_000, urgentBefore: -1 };
    const plan = finished(packer.plan(candidates, limits));
    if (!plan) break;
    frames++;
    for (const { source, count } of plan.parts) window.settle(source, count);
    // A frame settles each series of every block that it begins.
    settled += plan.points;
    const series = window.takeSettled().flatMap(({ block: id, inputs }) => inputs.map(() => (id < 100 ? 15 : 20)));
    expect(series.reduce((sum, points) => sum + points, 0)).toBe(plan.points);
  }
  expect([frames > 3, settled]).toEqual([true, 20 * 1_500 + 20 * 600]);
});

test("when a block is larger than a frame, each frame settles the series that it has", () => {
  const rows = 65;
  const inputs = Array.from({ length: 300 }, (_, i) => `line1.tag${i}`);
  const window = new Window(100_000);
  const points = (from: number) => Array.from({ length: rows }, (_, i): [number, number] => [(from + i) * 1e6, i / 10]);
  for (const id of [0, 1])
    window.add("backlog", block(id, Object.fromEntries(inputs.map((input) => [input, points(id * rows)]))), id);
  const packer = new Packer();
  const limits = { maxBytes: 32_768, envelopeBytes: envelope.bytes, maxSeries: 1_000, urgentBefore: -1 };
  for (let left = 2 * rows * inputs.length; left > 0; ) {
    const candidates = candidatesOf(window, "backlog");
    const plan = finished(packer.plan(candidates, limits))!;
    for (const { source, count } of plan.parts) window.settle(source, count);
    const settled = window.takeSettled().reduce((sum, { inputs: of }) => sum + of.length * rows, 0);
    // After a kill, no sent point would be sent again.
    expect(settled).toBe(plan.points);
    left -= plan.points;
    if (left > 0) expect(plan.bytes).toBeGreaterThan(limits.maxBytes * 0.5);
  }
});

test("a frame of all points names the series in one order, however many points each has, so that answers repeat", () => {
  const window = new Window(200_000);
  const names = Array.from({ length: 60 }, (_, i) => `line${i}`);
  for (let request = 0; request < 3; request++) {
    for (let late = 0; late < 2; late++) {
      const some = names.filter((_, i) => late === 0 || i % 5 === request);
      const points = (): [number, number][] => [[request * 2 + late, 1.5]];
      window.add("live", block(request * 2 + late, Object.fromEntries(some.map((name) => [name, points()]))), 0);
    }
    const [frame, ...more] = drain(window, 65_536);
    expect(more).toEqual([]);
    expect(frame?.plan.columns.sources.map(({ input }) => input)).toEqual(names);
  }
});
