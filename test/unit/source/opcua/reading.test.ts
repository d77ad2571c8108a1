import { expect, test } from "vitest";
import { epochMicros } from "../../../../src/core/point.ts";
import type { TagId } from "../../../../src/core/source.ts";
import { defaultTimeRule } from "../../../../src/lib/readings/device-time.ts";
import { ClockCheck, type DataValueLike, overflowed, toReading } from "../../../../src/source/opcua/types/reading.ts";

const arrival = epochMicros(Date.parse("2026-03-01T12:00:00Z") * 1_000);
const good = { value: 0, name: "Good" };

function dataValue(value: number, over: Partial<DataValueLike> = {}): DataValueLike {
  return {
    value: { dataType: 11, arrayType: 0, value },
    statusCode: good,
    sourceTimestamp: new Date("2026-03-01T11:59:59.123Z"),
    sourcePicoseconds: 456_000_000,
    serverTimestamp: new Date("2026-03-01T11:59:59.500Z"),
    serverPicoseconds: 0,
    ...over,
  };
}

function item() {
  return { tag: 3 as TagId, captures: {}, address: "ns=2;s=T", clockCheck: new ClockCheck() };
}
const read = (data: DataValueLike, prefer: "source" | "server" | "arrival" = "source", of = item()) =>
  taken(toReading(data, of, arrival, { ...defaultTimeRule, clock: prefer }));
const taken = (reading: ReturnType<typeof toReading>) => (reading === "untimed" ? undefined : reading);

test("the source timestamp is used, to the microsecond", () => {
  expect(read(dataValue(1))).toEqual({
    tag: 3,
    captures: {},
    address: "ns=2;s=T",
    value: 1,
    time: Date.parse("2026-03-01T11:59:59.123Z") * 1_000 + 456,
    clock: "device",
    quality: "good",
    historical: false,
  });
});

test.each([
  ["missing", null],
  ["from before any clock was set", new Date("1970-01-01T00:00:05Z")],
  ["more than five minutes ahead", new Date("2026-03-01T12:05:01Z")],
])("a source time that is %s gives way to the server's, and that to the arrival", (_case, wrong) => {
  const serverTime = Date.parse("2026-03-01T11:59:59.500Z") * 1_000;
  expect(read(dataValue(1, { sourceTimestamp: wrong }))).toMatchObject({ time: serverTime, clock: "device" });
  const both = { sourceTimestamp: wrong, serverTimestamp: wrong };
  expect(read(dataValue(1, both))).toMatchObject({ time: arrival, clock: "agent" });
});

test("the configuration may prefer the server's clock or the agent's", () => {
  expect(read(dataValue(1), "server")).toMatchObject({ time: Date.parse("2026-03-01T11:59:59.500Z") * 1_000 });
  expect(read(dataValue(1), "arrival")).toMatchObject({ time: arrival, clock: "agent" });
});

test("a source timestamp that does not change with the value is ignored after three changes", () => {
  const of = item();
  const times = [1, 2, 2, 3, 4, 5].map((value) => read(dataValue(value), "source", of)?.time);
  expect(times.slice(0, 4)).toEqual(Array(4).fill(times[0]));
  expect(times.slice(4)).toEqual(Array(2).fill(Date.parse("2026-03-01T11:59:59.500Z") * 1_000));
  const later = new Date("2026-03-01T11:59:59.999Z");
  expect(read(dataValue(6, { sourceTimestamp: later }), "source", of)?.time).toBe(later.getTime() * 1_000 + 456);
});

test.each([
  [0x8031_0000, "BadNoCommunication", "bad", "the server reports BadNoCommunication"],
  [0x4090_0000, "UncertainLastUsableValue", "uncertain", "the server reports UncertainLastUsableValue"],
  [0x0096_0000, "GoodLocalOverride", "good", undefined],
])("status %i is %s", (value, name, quality, reason) => {
  const reading = read(dataValue(7, { statusCode: { value, name } }));
  expect(reading).toMatchObject({ value: 7, quality });
  expect(reading?.reason).toBe(reason);
});

test("a status without a name shows its number", () => {
  expect(read(dataValue(7, { statusCode: { value: 0x8abc_0000, name: "" } }))?.reason).toBe(
    "the server reports 0x8abc0000",
  );
});

test("while the server waits for its first value no reading is reported", () => {
  expect(read(dataValue(0, { statusCode: { value: 0x8032_0000, name: "BadWaitingForInitialData" } }))).toBeUndefined();
});

test("a good status without a value is bad, with its reason", () => {
  expect(read(dataValue(0, { value: null }))).toMatchObject({ value: undefined, quality: "bad", reason: "no value" });
});

test("only the overflow bit of a data value's info bits is an overflow", () => {
  expect(overflowed(0x480)).toBe(true);
  expect(overflowed(0x4000_0480)).toBe(true);
  expect(overflowed(0x080)).toBe(false);
  expect(overflowed(0x400)).toBe(false);
});
