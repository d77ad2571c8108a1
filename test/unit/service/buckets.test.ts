import fc from "fast-check";
import { expect, test } from "vitest";
import { epochMicros } from "../../../src/core/point.ts";
import { timeZone, utc } from "../../../src/lib/time/time-zone.ts";
import { bucketsOf } from "../../../src/service/query/data-query.ts";
import { rollUp, stateTimes } from "../../../src/service/query/rollup.ts";
import { savedAttributes } from "../../../src/service/store/resource-store.ts";
import { ServiceStore } from "../../../src/service/store/store.ts";
import { parseRfcDuration } from "../../../src/wire/rfc-duration.ts";
import { signalSaveView } from "../../../src/wire/signal-view.ts";
import { formatTimestamp, parseTimestamp } from "../../../src/wire/timestamp.ts";
import { runs } from "../../support/property.ts";

const at = (text: string) => parseTimestamp(text) ?? Number.NaN;

function bucket(
  width: string,
  time: string,
  options: { zone?: string; firstDayOfWeek?: number; origin?: string } = {},
) {
  const { from: start, before: end } = bucketsOf(parseRfcDuration(width) ?? { months: 0, micros: 0 }, {
    zone: timeZone(options.zone ?? "UTC") ?? utc,
    firstDayOfWeek: options.firstDayOfWeek ?? 1,
    origin: options.origin === undefined ? undefined : at(options.origin),
  })(at(time));
  return [formatTimestamp(epochMicros(start)), formatTimestamp(epochMicros(end))];
}

test.each([
  ["PT1H", "2026-01-01T10:59:59.999999Z", {}, "2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z"],
  ["PT7M", "2000-01-03T00:06:00Z", {}, "2000-01-03T00:00:00Z", "2000-01-03T00:07:00Z"],
  ["PT7M", "2000-01-02T23:59:00Z", {}, "2000-01-02T23:53:00Z", "2000-01-03T00:00:00Z"],
  ["P1W", "2026-01-01T00:00:00Z", {}, "2025-12-29T00:00:00Z", "2026-01-05T00:00:00Z"],
  ["P1W", "2026-01-01T00:00:00Z", { firstDayOfWeek: 7 }, "2025-12-28T00:00:00Z", "2026-01-04T00:00:00Z"],
  ["P1D", "2026-01-01T00:00:00Z", { origin: "2020-05-05T06:00:00Z" }, "2025-12-31T06:00:00Z", "2026-01-01T06:00:00Z"],
  ["P1M", "2026-02-15T00:00:00Z", {}, "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"],
  ["P1Y", "1999-12-31T23:59:59Z", {}, "1999-01-01T00:00:00Z", "2000-01-01T00:00:00Z"],
  ["P1Y3M", "2026-01-01T00:00:00Z", {}, "2025-01-01T00:00:00Z", "2026-04-01T00:00:00Z"],
  ["P1M", "2026-02-28T13:00:00Z", { origin: "2026-01-31T12:00:00Z" }, "2026-02-28T12:00:00Z", "2026-03-31T12:00:00Z"],
  ["P1D", "2026-01-01T22:59:59Z", { zone: "Europe/Berlin" }, "2025-12-31T23:00:00Z", "2026-01-01T23:00:00Z"],
  // The days of a clock change have 23 and 25 hours.
  ["P1D", "2026-03-29T12:00:00Z", { zone: "Europe/Berlin" }, "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"],
  ["P1D", "2026-10-25T12:00:00Z", { zone: "Europe/Berlin" }, "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"],
  ["P1M", "2026-03-31T22:30:00Z", { zone: "Europe/Berlin" }, "2026-03-31T22:00:00Z", "2026-04-30T22:00:00Z"],
  // Buckets of an hour and less ignore clock changes.
  ["PT1H", "2026-10-25T01:30:00Z", { zone: "Europe/Berlin" }, "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"],
  ["PT1H", "2026-10-25T01:40:00Z", { zone: "Asia/Kolkata" }, "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"],
])("with width %s the time %s (%j) is in the bucket from %s to %s", (width, time, options, start, end) => {
  expect(bucket(width, time, options)).toEqual([start, end]);
});

test("every time is in its bucket, and buckets are contiguous in every zone and over every clock change", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(
        "PT0.000001S",
        "PT0.000007S",
        "PT7M",
        "PT61M",
        "PT75M",
        "PT90M",
        "PT2H",
        "PT5H",
        "P1D",
        "P1W",
        "P1M",
        "P5M",
        "PT13M",
      ),
      fc.constantFrom("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"),
      fc.oneof(
        fc.integer({ min: at("1995-01-01T00:00:00Z"), max: at("2030-01-01T00:00:00Z") }),
        fc.integer({ min: at("2026-10-25T00:00:00Z"), max: at("2026-10-25T02:00:00Z") }),
        fc.integer({ min: at("2026-03-28T20:00:00Z"), max: at("2026-03-29T06:00:00Z") }),
      ),
      fc.constantFrom(undefined, "0001-01-02T00:00:00Z", "1970-01-01T00:00:00.000003Z", "9999-12-31T23:59:59.999Z"),
      (width, zone, time, origin) => {
        const bucketOf = bucketsOf(parseRfcDuration(width) ?? { months: 0, micros: 0 }, {
          zone: timeZone(zone) ?? utc,
          firstDayOfWeek: 1,
          origin: origin === undefined ? undefined : at(origin),
        });
        const { from: start, before: end } = bucketOf(time);
        expect(start <= time && time < end).toBe(true);
        expect(bucketOf(start)).toEqual({ from: start, before: end });
        expect(bucketOf(end).from).toBe(end);
      },
    ),
    runs(400),
  );
});

test.each([
  ["Europe/Berlin", "2026-10-24T23:00:00Z"],
  ["Europe/Berlin", "2026-03-29T00:00:00Z"],
  ["America/New_York", "2026-11-01T04:00:00Z"],
  ["Australia/Lord_Howe", "2026-04-04T13:00:00Z"],
  ["Australia/Lord_Howe", "2026-10-03T13:00:00Z"],
])("while clocks change in %s after %s every minute has one bucket", (zone, from) => {
  for (const minutes of [61, 75]) {
    const width = { months: 0, micros: minutes * 60e6 };
    const bucketOf = bucketsOf(width, { zone: timeZone(zone) ?? utc, firstDayOfWeek: 1, origin: undefined });
    for (let time = at(from), last = bucketOf(time); time < at(from) + 4 * 3_600e6; time += 60e6) {
      const { from: start, before: end } = bucketOf(time);
      expect(start <= time && time < end).toBe(true);
      expect(start === last.from || start === last.before).toBe(true);
      last = { from: start, before: end };
    }
  }
});

test("an unknown zone is refused", () => {
  expect(timeZone("Mars/Olympus")).toBeUndefined();
});

test("a rollup equals the calculation of each bucket by hand, wherever blocks begin and end", () => {
  const points = fc.array(fc.tuple(fc.integer({ min: 1, max: 400 }), fc.integer({ min: -1_000, max: 1_000 })), {
    maxLength: 200,
  });
  fc.assert(
    fc.property(points, fc.integer({ min: 1, max: 50 }), fc.integer({ min: 10, max: 5_000 }), (steps, cut, width) => {
      let time = 0;
      const all = steps.map(([step, value]) => [(time += step), value] as const);
      const blocks = Array.from({ length: Math.ceil(all.length / cut) }, (_, i) =>
        all.slice(i * cut, (i + 1) * cut),
      ).map((part) => ({
        times: Float64Array.from(part, ([t]) => t),
        values: Float64Array.from(part, ([, v]) => v),
      }));
      const bucketOf = (t: number) => ({
        from: Math.floor(t / width) * width,
        before: (Math.floor(t / width) + 1) * width,
      });
      const groups = Map.groupBy(all, ([t]) => bucketOf(t).from);
      const values = [...groups.values()].map((group) => group.map(([, v]) => v));
      const sums = values.map((group) => group.reduce((a, b) => a + b, 0));
      expect(rollUp(blocks, bucketOf)).toEqual({
        times: [...groups.keys()],
        count: values.map(({ length }) => length),
        min: values.map((group) => Math.min(...group)),
        max: values.map((group) => Math.max(...group)),
        sum: sums,
        avg: values.map(({ length }, i) => (sums[i] ?? 0) / length),
        first: values.map((group) => group[0]),
        last: values.map((group) => group.at(-1)),
      });
    }),
    runs(200),
  );
});

test("a state holds until the next point, at most for its gap limit, and is divided at the buckets", () => {
  using store = ServiceStore.open(":memory:");
  const attributes = savedAttributes(signalSaveView.parse({ gapDetection: "PT0.000015S" }), "mode", undefined);
  const signal = store.resources.createSignal("c8ktonqsahsmemfs7lv0", "mode", attributes, 0);
  const item = store.resources.createItem(attributes, true, 0);
  store.resources.updateSignal({ ...signal, item: item.id });
  store.points.write(signal.number, { times: Float64Array.of(5, 12, 40), values: Float64Array.of(1, 2.2, 1) });
  const tens = (time: number) => ({ from: Math.floor(time / 10) * 10, before: Math.floor(time / 10) * 10 + 10 });
  const seen = (from: number, before: number) => {
    const states = stateTimes(store, item, [{ from, before }], { bucketOf: tens, now: 45, budget: { left: 100 } });
    return Object.fromEntries([...states].map(([state, times]) => [state, Object.fromEntries(times)]));
  };
  expect(seen(0, 100)).toEqual({ 1: { 0: 5, 10: 2, 40: 5 }, 2: { 10: 8, 20: 7 } });
  // The state before a window is carried into it.
  expect(seen(16, 26)).toEqual({ 2: { 10: 4, 20: 6 } });
  expect(seen(28, 41)).toEqual({ 1: { 40: 1 } });
});
