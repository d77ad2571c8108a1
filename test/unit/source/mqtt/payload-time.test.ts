import fc from "fast-check";
import { expect, test } from "vitest";
import { epochMicros } from "../../../../src/core/point.ts";
import { defaultTimeRule, type TimeRule } from "../../../../src/lib/readings/device-time.ts";
import { timeZone } from "../../../../src/lib/time/time-zone.ts";
import { payloadTime } from "../../../../src/source/mqtt/decoders/payload-time.ts";
import { brief, mapMessages } from "../../../support/mqtt-points.ts";
import { runs } from "../../../support/property.ts";

const now = epochMicros(Date.UTC(2026, 6, 1) * 1_000);
const iso = (micros: ReturnType<typeof payloadTime>) =>
  typeof micros !== "number" ? undefined : `${new Date(Math.floor(micros / 1_000)).toISOString()}+${micros % 1_000}`;

test.each([
  [1_767_225_600, "auto", "2026-01-01T00:00:00.000Z+0"],
  [1_767_225_600.62, "auto", "2026-01-01T00:00:00.620Z+0"],
  [1_767_225_600_123, "auto", "2026-01-01T00:00:00.123Z+0"],
  [1_767_225_600_123_456, "auto", "2026-01-01T00:00:00.123Z+456"],
  [1_767_225_600_123_456_789n, "auto", "2026-01-01T00:00:00.123Z+456"],
  ["1767225600", "auto", "2026-01-01T00:00:00.000Z+0"],
  ["1767225600123456789", "auto", "2026-01-01T00:00:00.123Z+456"],
  ["1767225600123", "unixMs", "2026-01-01T00:00:00.123Z+0"],
  [1_767_225_600, "unixS", "2026-01-01T00:00:00.000Z+0"],
  [1_767_225_600_123_456, "unixUs", "2026-01-01T00:00:00.123Z+456"],
  [1_767_225_600_123_456_789n, "unixNs", "2026-01-01T00:00:00.123Z+456"],
  ["2026-03-04T05:06:07.089+01:00", "iso", "2026-03-04T04:06:07.089Z+0"],
  ["2026-02-03T04:05:06.789012345+00:00", "iso", "2026-02-03T04:05:06.789Z+12"],
  ["2026-05-06T07:08:09.0109999Z", "auto", "2026-05-06T07:08:09.010Z+999"],
  ["2026-01-02 03:04:05", "iso", "2026-01-02T03:04:05.000Z+0"],
  ["20260102T030405Z", "iso", "2026-01-02T03:04:05.000Z+0"],
  ["2026-01-02T03:04Z", "iso", "2026-01-02T03:04:00.000Z+0"],
  ["2026-01-02T03:04:05-0530", "iso", "2026-01-02T08:34:05.000Z+0"],
  ["2026-01-02", "iso", "2026-01-02T00:00:00.000Z+0"],
] as const)("%s as %s is %s", (value, format, expected) => {
  expect(iso(payloadTime(value, format, undefined, now))).toBe(expected);
});

test.each([
  ["Sun, 04 Jan 2026 05:06:07 GMT", "rfc1123", undefined, "2026-01-04T05:06:07.000Z+0"],
  ["Sun, 04 Jan 2026 05:06:07 +0100", "rfc1123", "Europe/Madrid", "2026-01-04T04:06:07.000Z+0"],
  ["Sun, 04 Jan 2026 05:06:07 GMT", "rfc1123", "Europe/Madrid", "2026-01-04T05:06:07.000Z+0"],
  ["Sun, 04 Jan 2026 05:06:07", "rfc1123", "Europe/Madrid", "2026-01-04T04:06:07.000Z+0"],
  ["Sun Jan  4 05:06:07 2026", "rfc1123", "+05:30", "2026-01-03T23:36:07.000Z+0"],
  ["Jan 4 2026 5:06 PM", "rfc1123", "+05:30", "2026-01-04T11:36:00.000Z+0"],
  ["2026-01-02T03:04:05+14:00", "iso", undefined, "2026-01-01T13:04:05.000Z+0"],
  [46_023.5, "excel", undefined, "2026-01-01T12:00:00.000Z+0"],
  [46_023.5, "excel", "Europe/Madrid", "2026-01-01T11:00:00.000Z+0"],
  [639_028_224_001_234_567n, "dotnet", undefined, "2026-01-01T00:00:00.123Z+456"],
  ["134116992001234567", "filetime", undefined, "2026-01-01T00:00:00.123Z+456"],
  ["2026-06-30T14:30:00", "iso", "Europe/Madrid", "2026-06-30T12:30:00.000Z+0"],
  ["2026-01-01T14:30:00", "auto", "Europe/Madrid", "2026-01-01T13:30:00.000Z+0"],
  ["2026-01-01T14:30:00Z", "auto", "Europe/Madrid", "2026-01-01T14:30:00.000Z+0"],
  ["2026-01-01 14:30:00.5", "iso", "+05:30", "2026-01-01T09:00:00.500Z+0"],
] as const)("%s as %s in zone %s is %s", (value, format, zone, expected) => {
  expect(iso(payloadTime(value, format, zone === undefined ? undefined : timeZone(zone), now))).toBe(expected);
});

test("a time to the microsecond, written in any format that can express it, is read exactly", () => {
  const written = {
    unixUs: (micros: number) => micros,
    unixNs: (micros: number) => BigInt(micros) * 1_000n + 999n,
    dotnet: (micros: number) => (BigInt(micros) + 62_135_596_800_000_000n) * 10n + 9n,
    filetime: (micros: number) => `${(BigInt(micros) + 11_644_473_600_000_000n) * 10n}`,
    iso: (micros: number) => new Date(micros / 1_000).toISOString().replace("Z", `${micros % 1_000}`.padStart(3, "0")),
  } as const;
  fc.assert(
    fc.property(fc.integer({ min: Date.UTC(2000, 0, 1) * 1_000, max: now }), (micros) => {
      for (const format of Object.keys(written) as (keyof typeof written)[]) // its own keys
        expect([format, payloadTime(written[format](micros), format, undefined, now)]).toEqual([format, micros]);
    }),
    runs(200),
  );
});

test("an ambiguous local time is the first of the two, a skipped one is shifted forward", () => {
  const madrid = timeZone("Europe/Madrid");
  const utc = (wall: string) =>
    new Date((madrid?.fromLocal(Date.parse(`${wall}Z`) * 1_000) ?? Number.NaN) / 1_000).toISOString();
  expect(utc("2025-10-26T02:30:00")).toBe("2025-10-26T00:30:00.000Z");
  expect(utc("2025-10-26T03:30:00")).toBe("2025-10-26T02:30:00.000Z");
  expect(utc("2026-03-29T02:30:00")).toBe("2026-03-29T01:30:00.000Z");
  expect(timeZone("Mars/Olympus")).toBeUndefined();
});

test("as the clocks go back, live values of the hour that occurs twice keep their order and their times", () => {
  const madrid = timeZone("Europe/Madrid");
  const first = Date.UTC(2025, 9, 25, 23, 0);
  const times = Array.from({ length: 4 * 60 }, (_, minute) => first + minute * 60_000);
  const read = (ms: number, delayMs: number) => {
    const local = new Date((madrid?.toLocal(ms * 1_000) ?? 0) / 1_000).toISOString().slice(0, -1);
    return payloadTime(local, "iso", madrid, epochMicros((ms + delayMs) * 1_000));
  };
  for (const delayMs of [-30_000, 0, 1_500, 600_000])
    expect(times.map((ms) => read(ms, delayMs))).toEqual(times.map((ms) => ms * 1_000));
});

test.each([
  [0, "auto", "past", "1970-01-01T00:00:00.000Z, is before 2000"],
  [946_684_799, "unixS", "past", "1999-12-31T23:59:59.000Z, is before 2000"],
  [1_767_225_600, "unixMs", "past", "1970-01-21T10:53:45.600Z, is before 2000"],
  [1_867_225_600, "unixS", "future", "2029-03-03T09:46:40.000Z, is more than 5m ahead"],
  [1e300, "unixS", "future", `${1e300} s, is more than 5m ahead`],
  ["yesterday", "auto", "unreadable", "yesterday, is none of format auto"],
  ["2026-02-30T00:00:00Z", "iso", "unreadable", "2026-02-30T00:00:00Z, is none of format iso"],
  ["2026-13-01T00:00:00Z", "iso", "unreadable", "2026-13-01T00:00:00Z, is none of format iso"],
  ["2026-00-15T00:00:00Z", "iso", "unreadable", "2026-00-15T00:00:00Z, is none of format iso"],
  ["2026-01-01T25:00:00Z", "iso", "unreadable", "2026-01-01T25:00:00Z, is none of format iso"],
  ["2026-01-01T00:00:00+15:00", "iso", "unreadable", "2026-01-01T00:00:00+15:00, is none of format iso"],
  [1_767_225_600, "iso", "unreadable", "1767225600, is none of format iso"],
  ["tomorrow", "rfc1123", "unreadable", "tomorrow, is none of format rfc1123"],
  [Number.NaN, "auto", "unreadable", "NaN, is none of format auto"],
  [true, "auto", "unreadable", "true, is none of format auto"],
  [{}, "auto", "unreadable", "an object, is none of format auto"],
  ["", "auto", "unreadable", ", is none of format auto"],
  ["x".repeat(1_000), "auto", "unreadable", `${"x".repeat(40)}, is none of format auto`],
] as const)("%s as %s is no time that can be right: %s", (value, format, kind, text) => {
  const expectedFault = { kind, text: `the time in the payload, ${text}` };
  expect(payloadTime(value, format, undefined, now)).toMatchObject(expectedFault);
});

test("a time in the future is reported with the fault, and stored if the rule permits it", () => {
  const read = (value: number, rule: Partial<TimeRule> = {}) =>
    payloadTime(value, "unixS", undefined, now, { ...defaultTimeRule, ...rule });
  const hour = now / 1e6 + 3_600;
  expect(read(hour)).toMatchObject({ ahead: { time: hour * 1e6, maxAhead: 300_000, otherwise: "arrival" } });
  expect(read(hour, { unusable: "drop" })).toMatchObject({ ahead: { otherwise: "drop" } });
  expect(read(hour, { maxAhead: 3_600_000 })).toBe(hour * 1e6);
  expect(read(hour, { unusable: "keep" })).toBe(hour * 1e6);
  expect(read(5, { unusable: "keep" })).toBe(5e6);
  expect(read(-5, { unusable: "keep" })).toMatchObject({ kind: "past" });
  // No clock shows such a time.
  expect(read(1e300, { unusable: "keep" })).not.toHaveProperty("ahead");
});

test.each([null, undefined])("%s is not a time", (value) => {
  expect(payloadTime(value, "auto", undefined, now)).toEqual({ kind: "missing", text: "the payload has no time" });
});

test("times of line protocol have any precision, and `time.format` applies to formats with times of their own", async () => {
  const tag = (more: string) => `- { input: "{t}", topic: "{t}", format: ${more} }`;
  const at = "2026-07-01T12:00:00.";
  const lines = ["1782907200", "1782907200123", "1782907200123456", "1782907200123456789"].map((time, i) => ({
    topic: `a${i}`,
    payload: `m f=1 ${time}`,
  }));
  const { points } = await mapMessages(tag("lineProtocol"), lines);
  expect(points.map(brief)).toEqual(
    ["000000", "123000", "123456", "123456"].map((us, i) => [`a${i}`, `${at}${us}Z`, 1]),
  );
  const senml = { topic: "a", payload: '[{"n":"a","t":1782907200123,"v":1}]' };
  const { points: inMs } = await mapMessages(tag("senml, time: { format: unixMs }"), [senml]);
  expect(inMs.map(brief)).toEqual([["a", `${at}123000Z`, 1]]);
});
