// The result of a query does not depend on where its window begins and ends: the state before the window is carried in.
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { runs } from "../support/property.ts";
import { ManualClock, testRuntime } from "../support/runtime.ts";
import { testService } from "../support/service.ts";
import { resultOf, storeItems } from "../support/service-items.ts";

const clock = new ManualClock("2026-03-01T20:00:00Z");
const service = await testService({}, testRuntime({ clock }));
afterAll(() => service[Symbol.asyncDispose]());
const at = (hour: number, minute = 0) =>
  `2026-03-01T${String(hour).padStart(2, "0")}:${String(minute).padStart(2, "0")}:00Z`;
const enumOf = (gapDetection: string | null) => ({ valueType: "enum", gapDetection });
const item = await storeItems(
  service,
  {
    mode: [
      [at(5, 20), 1],
      [at(7, 30), 0],
    ],
    short: [
      [at(5, 20), 1],
      [at(7, 30), 0],
    ],
    setpoint: [
      [at(1), 40],
      [at(2), 45],
      [at(15), 50],
    ],
  },
  { mode: enumOf(null), short: enumOf("PT1H") },
);
const frame = async (name: string, from: string, before: string, data: object = {}) => {
  const filter = { times: { $gte: from, $lt: before } };
  return (await resultOf(service, "platform.dataFrame", { query: { filter: { name } }, data: { filter, ...data } }))
    .data;
};

test("a state that began before the window continues into it, up to gapDetection", async () => {
  const mode = `${item("mode")}_1`;
  expect((await frame("mode", at(5), at(6), { rollup: "PT1H" })).series[mode]).toEqual([2_400]);
  expect((await frame("mode", at(6), at(8), { rollup: "PT1H" })).series[mode]).toEqual([3_600, 1_800]);
  expect((await frame("mode", at(6), at(8), { rollup: "window" })).series[mode]).toEqual([5_400]);
  const short = await frame("short", at(6), at(8), { rollup: "PT1H" });
  expect(short).toEqual({
    times: [at(6), at(7)],
    series: { [`${item("short")}_1`]: [1_200, null], [`${item("short")}_0`]: [null, 1_800] },
  });
  const { data } = await resultOf(service, "platform.evaluate", {
    items: [
      { id: item("mode"), aggregation: "state-seconds", state: 1, alias: "now" },
      { id: item("mode"), aggregation: "state-seconds", state: 1, alias: "before", lag: 1 },
    ],
    data: { filter: { times: { $gte: at(6), $lt: at(7) } }, rollup: "PT1H" },
  });
  expect(data).toEqual({ times: [at(6)], series: { now: [3_600], before: [2_400] } });
});

test("outsidePoints adds the nearest point on either side of the window", async () => {
  const id = item("setpoint");
  expect(await frame("setpoint", at(4), at(6), { outsidePoints: true })).toEqual({
    times: [at(2), at(15)],
    series: { [id]: [45, 50] },
  });
  expect(await frame("setpoint", at(4), at(6))).toEqual({ times: [], series: { [id]: [] } });
  const rolled = await frame("setpoint", at(4), at(6), { outsidePoints: true, rollup: "PT1H" });
  expect([rolled.times, rolled.series[`${id}_avg`]]).toEqual([
    [at(2), at(15)],
    [45, 50],
  ]);
  const evaluated = await resultOf(service, "platform.evaluate", {
    items: [
      { id, aggregation: "last", alias: "sp" },
      { id, aggregation: "last", alias: "earlier", lag: 1 },
    ],
    calculations: [{ formula: "gapfill(sp) * 2", alias: "twice" }],
    data: { filter: { times: { $gte: at(4), $lt: at(6) } }, rollup: "PT1H", outsidePoints: true },
  });
  expect(evaluated.data).toEqual({
    times: [2, 4, 5, 15].map((hour) => at(hour)),
    series: { sp: [45, null, null, 50], earlier: [40, null, null, null], twice: [90, 90, 90, 100] },
  });
});

test("the first and the last time that can be stored are found as well", async () => {
  const ends = ["1684-07-28T00:12:25.259009Z", "2255-06-05T23:47:34.740991Z"] as const;
  const found = (await storeItems(service, { ends: ends.map((time, i) => [time, i] as const) }))("ends");
  expect(await frame("ends", at(4), at(6), { outsidePoints: true })).toEqual({
    times: ends,
    series: { [found]: [0, 1] },
  });
});

test("an empty window has no rows, whatever is shifted into it", async () => {
  for (const shift of [{ lead: 1_000 }, { lag: 1_000 }]) {
    const items = [{ id: item("setpoint"), aggregation: "sum", alias: "x", ...shift }];
    const data = { filter: { times: { $gte: at(6), $lt: at(5) } }, rollup: "P1Y" };
    const { data: none } = await resultOf(service, "platform.evaluate", { items, data });
    expect(none).toEqual({ times: [], series: { x: [] } });
  }
});

test("gapfill uses a value from before the window", async () => {
  const filled = async (from: string, before: string, rollup: string) => {
    const { data } = await resultOf(service, "platform.evaluate", {
      items: [{ id: item("setpoint"), aggregation: "last", alias: "sp" }],
      calculations: [{ formula: "gapfill(sp)", alias: "filled" }],
      data: { filter: { times: { $gte: from, $lt: before }, series: { $in: ["filled"] } }, rollup },
    });
    return data;
  };
  expect(await filled(at(4), at(6), "PT1H")).toEqual({ times: [at(4), at(5)], series: { filled: [45, 45] } });
  // The value falls into the first bucket, but before the beginning of the window.
  expect(await filled(at(3), at(8), "PT4H")).toEqual({ times: [at(0), at(4)], series: { filled: [45, 45] } });
});

test("the last rows of a window equal the end of all its rows", async () => {
  for (const rollup of [null, "PT2H", "window"])
    for (const last of [1, 2, 9]) {
      const all = await frame("setpoint", at(0), at(18), { rollup });
      const some = await frame("setpoint", at(0), at(18), { rollup, last });
      expect(some.times).toEqual(all.times.slice(-last));
      for (const key of Object.keys(all.series)) expect(some.series[key]).toEqual(all.series[key].slice(-last));
    }
});

test("the last rows of an evaluation equal the end of all its rows, whatever is shifted, counted or grouped", async () => {
  const ids = ["setpoint", "mode", "short"].map(item);
  const shifts = [{}, { lag: 1 }, { lead: 1 }, { lag: 3 }, { lead: 4 }];
  const aggregations = [{ aggregation: "last" }, { aggregation: "count" }, { aggregation: "state-seconds", state: 1 }];
  const group = { query: { filter: { id: { $in: ids } } }, timeAggregation: "max", groupAggregation: "count" };
  const series = ids.flatMap((id) =>
    shifts.flatMap((shift) => aggregations.map((each) => ({ id, ...shift, ...each }))),
  );
  for (const [i, of] of [...series, undefined].entries())
    for (const rollup of ["PT1H", "PT3H"]) {
      const asked = of ? { items: [{ ...of, alias: "x" }] } : { groups: [{ ...group, alias: "x" }] };
      const read = async (last: number) => {
        const data = { filter: { times: { $gte: at(0, 30), $lt: at(23) } }, rollup, last };
        return (await resultOf(service, "platform.evaluate", { ...asked, data })).data;
      };
      const all = await read(-1);
      const last = 1 + (i % 3);
      expect(await read(last)).toEqual({ times: all.times.slice(-last), series: { x: all.series.x.slice(-last) } });
    }
});

test("the last row of years of buckets is read without the buckets before it", async () => {
  const year = { $gte: "2025-04-01T00:00:00Z", $lt: "2026-04-01T00:00:00Z" };
  const items = [0, 1, 2, 3].map((n) => ({ id: item("setpoint"), aggregation: "last", alias: `x${n}` }));
  const { data } = await resultOf(service, "platform.evaluate", {
    items,
    data: { filter: { times: year }, rollup: "PT1M", last: 1 },
  });
  expect(data).toEqual({ times: [at(15)], series: { x0: [50], x1: [50], x2: [50], x3: [50] } });
});

// Minutes of a day with values that are states, in a window with arbitrary edges.
const minutes = fc.integer({ min: 0, max: 1_200 });
const points = fc.uniqueArray(fc.tuple(minutes, fc.integer({ min: 0, max: 3 })), {
  selector: ([minute]) => minute,
  maxLength: 12,
});
const gap = fc.constantFrom(null, "PT10M", "PT3H");
const rollups = fc.constantFrom("PT1H", "PT7M", "P1D", "window");
let drawn = 0;

test("any partition of a window gives the same result as the whole", async () => {
  await fc.assert(
    fc.asyncProperty(
      points,
      gap,
      rollups,
      fc.uniqueArray(minutes, { minLength: 2, maxLength: 6 }),
      async (of, gapDetection, rollup, cuts) => {
        const name = `drawn.${drawn++}`;
        const list = of.map(([minute, value]) => [at(Math.floor(minute / 60), minute % 60), value] as const);
        if (list.length === 0) return;
        const id = (await storeItems(service, { [name]: list }, { [name]: enumOf(gapDetection) }))(name);
        const edges = cuts.toSorted((a, b) => a - b).map((minute) => at(Math.floor(minute / 60), minute % 60));
        const read = async (from: string, before: string) => {
          const filter = { times: { $gte: from, $lt: before } };
          const evaluated = await resultOf(service, "platform.evaluate", {
            items: [
              { id, aggregation: "count", alias: "count" },
              { id, aggregation: "sum", alias: "sum" },
              { id, aggregation: "first", alias: "first" },
              { id, aggregation: "last", alias: "last" },
              ...[0, 1, 2, 3].map((state) => ({ id, aggregation: "state-seconds", state, alias: `s${state}` })),
              ...(rollup === "window"
                ? []
                : [
                    { id, aggregation: "max", alias: "lagging", lag: 2 },
                    { id, aggregation: "state-seconds", state: 1, alias: "leading", lead: 1 },
                  ]),
            ],
            data: { filter, rollup },
          });
          return [evaluated.data, await frame(name, from, before, { rollup }), await frame(name, from, before)];
        };
        const whole = await read(edges[0]!, edges.at(-1)!);
        const parts = await Promise.all(edges.slice(1).map((edge, i) => read(edges[i]!, edge)));
        const joined = whole.map((_, i) =>
          cellsOf(
            parts.map((part) => part[i]),
            i < 2 && rollup === "window" ? edges[0]! : "",
          ),
        );
        expect(joined).toEqual(whole.map((each) => cellsOf([each], "")));
      },
    ),
    runs(60),
  );
});

interface Frame {
  readonly times: readonly string[];
  readonly series: Readonly<Record<string, readonly (number | null)[]>>;
}

/** Merges frames of adjoining windows into values by time and series. Two windows may share a bucket. */
function cellsOf(frames: readonly Frame[], stamp: string): ReadonlyMap<string, number> {
  const cells = new Map<string, number>();
  for (const { times, series } of frames)
    for (const [key, values] of Object.entries(series))
      for (const [i, value] of values.entries()) {
        const cell = `${stamp || times[i]} ${key}`;
        const before = cells.get(cell);
        if (value !== null) cells.set(cell, before === undefined ? value : combined(key, before, value));
      }
  // A cell of 0 equals a missing cell: one part of a divided bucket may be outside the data.
  return new Map([...cells].filter(([, value]) => value !== 0).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function combined(key: string, before: number, value: number): number {
  if (/first|lagging|leading/.test(key)) return before;
  return key === "last" ? value : before + value;
}
