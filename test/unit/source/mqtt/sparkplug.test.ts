import { deflateSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import { expect, test } from "vitest";
import { epochMicros } from "../../../../src/core/point.ts";
import type { Description, Reading, TagId } from "../../../../src/core/source.ts";
import { tagAddress, tagFilter } from "../../../../src/source/mqtt/config/tag-address.ts";
import { PayloadError } from "../../../../src/source/mqtt/decoders/payload.ts";
import { mqttDriver } from "../../../../src/source/mqtt/driver.ts";
import { MessageCounts } from "../../../../src/source/mqtt/reading/message-counts.ts";
import { EdgeNode, RebirthRequests } from "../../../../src/source/mqtt/sparkplug/edge-node.ts";
import { SparkplugHost } from "../../../../src/source/mqtt/sparkplug/host.ts";
import { qualityOf } from "../../../../src/source/mqtt/sparkplug/metric-readings.ts";
import { decodeSparkplug } from "../../../../src/source/mqtt/sparkplug/payload.ts";
import { scopeCaptures } from "../../../../src/source/mqtt/topics/sparkplug-topic.ts";
import { runs } from "../../../support/property.ts";
import { type MetricText, type PayloadText, sparkplugPayload } from "../../../support/sparkplug.ts";

const arrival = epochMicros(Date.UTC(2026, 0, 1) * 1_000);
const t0 = Date.UTC(2025, 11, 31);

test("data with only aliases get names, types and signedness from the birth", () => {
  const host = sparkplugHost();
  host.send("NBIRTH/E1", { seq: 0, metrics: [bdSeq(0)] });
  host.send("DBIRTH/E1/D1", {
    seq: 1,
    metrics: [
      { name: "Line 1/Speed", alias: 7, datatype: 3, int: 100, timestamp: t0 },
      { name: "Run", alias: 8, datatype: 11, boolean: true, timestamp: t0 },
    ],
  });
  host.clear();

  host.send("DDATA/E1/D1", {
    seq: 2,
    timestamp: t0 + 5,
    metrics: [
      { alias: 7, int: 4_294_967_291 },
      { alias: 8, boolean: false, isHistorical: true, timestamp: t0 - 1_000 },
    ],
  });

  expect(host.readings).toEqual([
    {
      tag: 0,
      captures: { group: "G1", node: "E1", device: "D1", metric: "Line 1/Speed" },
      address: "spBv1.0/G1/+/E1/D1 Line 1/Speed",
      value: -5,
      time: (t0 + 5) * 1_000,
      clock: "device",
      device: "G1/E1",
      quality: "good",
      historical: false,
    },
    expect.objectContaining({ value: false, time: (t0 - 1_000) * 1_000, historical: true }),
  ]);
  expect(host.asked).toEqual([]);
});

test("devices whose births use the same aliases keep their values apart", () => {
  const host = sparkplugHost();
  host.send("NBIRTH/E1", { seq: 0, metrics: [bdSeq(0), { name: "uptime", alias: 0, datatype: 3, int: 1 }] });
  for (const [i, device] of ["D1", "D2"].entries())
    host.send(`DBIRTH/E1/${device}`, {
      seq: i + 1,
      metrics: [{ name: `of ${device}`, alias: 0, datatype: 3, int: 1 }],
    });
  host.clear();
  for (const [i, place] of ["NDATA/E1", "DDATA/E1/D1", "DDATA/E1/D2"].entries())
    host.send(place, { seq: i + 3, metrics: [{ alias: 0, int: 10 + i }] });
  expect(host.readings.map(({ captures, value }) => [captures["metric"], value])).toEqual([
    ["uptime", 10],
    ["of D1", 11],
    ["of D2", 12],
  ]);
});

test("a birth queued by the broker defines the metrics of later data", () => {
  const host = sparkplugHost();
  const metrics = [bdSeq(0), { name: "Speed", alias: 7, datatype: 3, int: 1 }];
  host.receive("$sparkplug/certificates/spBv1.0/G1/NBIRTH/E1", sparkplugPayload({ seq: 0, metrics }));
  host.send("NDATA/E1", { seq: 1, metrics: [{ alias: 7, int: 2 }] });
  expect(host.values()).toEqual([1, 2]);
});

test("a metric has one address in births, in data with its name or its alias, and in deaths", () => {
  const host = sparkplugHost();
  const metric = { name: "Speed", alias: 7, datatype: 3, int: 1 };
  host.send("NBIRTH/E1", { seq: 0, metrics: [bdSeq(0)] });
  host.send("DBIRTH/E1/D1", { seq: 1, metrics: [metric] });
  host.send("DDATA/E1/D1", { seq: 2, metrics: [{ alias: 7, int: 2 }] });
  host.send("DDATA/E1/D1", { seq: 3, metrics: [{ name: "Speed", int: 3 }] });
  host.send("DDEATH/E1/D1", { seq: 4, metrics: [] });
  host.send("DBIRTH/E1/D1", { seq: 5, metrics: [{ ...metric, alias: 9 }] });
  host.send("DDATA/E1/D1", { seq: 6, metrics: [{ alias: 9, int: 4 }] });
  expect(host.values()).toEqual([1, 2, 3, undefined, 1, 4]);
  expect(new Set(host.readings.map(({ address }) => address))).toEqual(new Set(["spBv1.0/G1/+/E1/D1 Speed"]));
});

test.each([
  [1, { int: 251 }, -5],
  [2, { int: 65_531 }, -5],
  [2, { int: 4_294_967_291 }, -5],
  [3, { int: 4_294_967_291 }, -5],
  [4, { long: -5n }, -5],
  [4, { long: -9_007_199_254_740_993n }, -9_007_199_254_740_993n],
  [7, { int: 4_294_967_291 }, 4_294_967_291],
  [8, { long: 18_446_744_073_709_551_615n }, 18_446_744_073_709_551_615n],
  [9, { float: 0.5 }, 0.5],
  // The intended decimal, not the nearest float.
  [9, { float: 0.1 }, 0.1],
  [9, { float: 123.456789 }, 123.45679],
  [10, { double: -1e300 }, -1e300],
  [13, { long: t0 }, t0],
] as const)("the sign of datatype %i is found: %#", (datatype, value, expected) => {
  const host = sparkplugHost();
  host.send("NBIRTH/E1", { seq: 0, metrics: [{ name: "m", datatype, ...value }] });
  expect(host.readings).toMatchObject([{ value: expected, quality: "good" }]);
});

test("null, bad and stale are bad; transient values, texts and what has no number, null or not, are left out", () => {
  const host = sparkplugHost();
  host.send("NBIRTH/E1", {
    seq: 0,
    metrics: [
      bdSeq(0),
      { name: "Node Control/Rebirth", datatype: 11, boolean: false },
      { name: "null", datatype: 10, isNull: true },
      { name: "null time", datatype: 13, isNull: true },
      { name: "null text", datatype: 12, isNull: true },
      { name: "null bytes", datatype: 17, isNull: true },
      { name: "null template", datatype: 19, isNull: true },
      { name: "null array", datatype: 24, isNull: true },
      { name: "bad", datatype: 10, double: 1, properties: { Quality: 0 } },
      { name: "stale", datatype: 10, double: 2, properties: { Quality: 500 } },
      { name: "good", datatype: 10, double: 3, properties: { Quality: 192 } },
      { name: "transient", datatype: 10, double: 4, isTransient: true },
      { name: "text", datatype: 12, string: "x" },
      { name: "file", datatype: 18, bytes: Buffer.from("x") },
      { name: "table", datatype: 16, dataset: Buffer.from([0x08, 0x01]) },
    ],
  });
  expect(host.readings.map(({ captures, value, reason }) => [captures["metric"], value, reason])).toEqual([
    ["null", undefined, "value is null"],
    ["null time", undefined, "value is null"],
    ["bad", 1, "quality is 0"],
    ["stale", 2, "quality is 500"],
    ["good", 3, undefined],
  ]);
  expect(host.counts.unsupported).toBe(2);
});

test("a metric with an implausible time is stored with the time of arrival, marked in the reading", () => {
  const host = sparkplugHost();
  const time = t0 + 86_400_000 * 30;
  host.send("NBIRTH/E1", { seq: 0, metrics: [bdSeq(0), { name: "a", datatype: 3, int: 1, timestamp: time }] });
  expect(host.readings).toMatchObject([
    {
      value: 1,
      time: arrival,
      clock: "agent",
      quality: "good",
      reason: "the time in the payload, 2026-01-30T00:00:00.000Z, is more than 5m ahead; the time of arrival is taken",
    },
  ]);
  expect(host.counts.untimed).toMatchObject({ future: 1 });
});

test("arrays are read by index and instances of templates by member", () => {
  const host = sparkplugHost();
  host.send("NBIRTH/E1", {
    seq: 0,
    metrics: [
      { name: "a", datatype: 23, bytes: Buffer.from([0x01, 0x00, 0xff, 0xff]) },
      { name: "b", datatype: 32, bytes: Buffer.from([3, 0, 0, 0, 0b1010_0000]) },
      { name: "motor", datatype: 19, template: [{ name: "rpm", datatype: 3, int: 1_450 }] },
    ],
  });
  expect(host.readings.map(({ captures, value }) => [captures["metric"], value])).toEqual([
    ["a/0", 1],
    ["a/1", -1],
    ["b/0", true],
    ["b/1", false],
    ["b/2", true],
    ["motor/rpm", 1_450],
  ]);
});

test("members of a template keep their type without it in the data, and have quality, history and time of the whole", () => {
  const host = sparkplugHost();
  const instance = (rpm: MetricText) => ({ name: "motor", datatype: 19, template: [{ name: "rpm", ...rpm }] });
  host.send("NBIRTH/E1", { seq: 0, metrics: [bdSeq(0), instance({ datatype: 3, int: 1_450 })] });
  host.clear();
  const metrics = [
    instance({ int: 4_294_967_291 }),
    { ...instance({ int: 1 }), properties: { Quality: 0 } },
    { ...instance({ int: 2 }), isHistorical: true, timestamp: t0 },
  ];
  host.send("NDATA/E1", { seq: 1, metrics });
  expect(host.readings).toMatchObject([
    { value: -5, quality: "good", historical: false },
    { value: 1, quality: "bad", historical: false },
    { value: 2, quality: "good", historical: true, time: t0 * 1_000 },
  ]);
});

test("properties of a birth describe the signal", () => {
  const host = sparkplugHost();
  const properties = { engUnit: "°C", Documentation: "oil temperature", engLow: -10, engHigh: 120 };
  host.send("NBIRTH/E1", { seq: 0, metrics: [{ name: "t", datatype: 10, double: 1, properties }] });
  expect(host.descriptions).toEqual([
    {
      tag: 0,
      address: "spBv1.0/G1/+/E1 t",
      captures: host.readings[0]?.captures,
      signal: { engUnit: "°C", description: "oil temperature" },
      range: { min: -10, max: 120 },
    },
  ]);
});

test("properties of a member of a template describe its signal", () => {
  const host = sparkplugHost();
  const template = [{ name: "rpm", datatype: 3, int: 1, properties: { engUnit: "1/min" } }];
  host.send("NBIRTH/E1", { seq: 0, metrics: [{ name: "motor", datatype: 19, template }] });
  expect(host.descriptions).toMatchObject([{ captures: { metric: "motor/rpm" }, signal: { engUnit: "1/min" } }]);
});

test("a tag that names a metric gets that one, texts included", () => {
  const host = sparkplugHost([{ metric: "state" }, { metric: "Line 1/*" }]);
  host.send("NBIRTH/E1", {
    seq: 0,
    metrics: [
      { name: "state", datatype: 12, string: "RUN" },
      { name: "Line 1/Speed", datatype: 10, double: 1 },
      { name: "Line 2/Speed", datatype: 10, double: 2 },
    ],
  });
  expect(host.readings.map(({ tag, value }) => [tag, value])).toEqual([
    [0, "RUN"],
    [1, 1],
  ]);
});

test.each([
  ["spBv1.0/#", "spBv1.0/#", ["n", "d1", "d2"]],
  ["spBv1.0/G1/#", "spBv1.0/G1/#", ["n", "d1", "d2"]],
  ["spBv1.0/+/DDATA/#", "spBv1.0/+/+/#", ["n", "d1", "d2"]],
  ["spBv1.0/G1/NDATA/E1", "spBv1.0/G1/+/E1/#", ["n"]],
  ["spBv1.0/G1/+/E1/#", "spBv1.0/G1/+/E1/#", ["n", "d1", "d2"]],
  ["spBv1.0/{g}/+/{n}/{d}", "spBv1.0/+/+/+/#", ["d1", "d2"]],
  ["spBv1.0/G1/DDATA/E1/D2", "spBv1.0/G1/+/E1/#", ["d2"]],
  ["$sparkplug/certificates/spBv1.0/G1/NBIRTH/E1", "$sparkplug/certificates/spBv1.0/G1/+/E1/#", ["n"]],
])("topic %s hears %s, so that births and counts are known, and means the metrics %j", (topic, filter, metrics) => {
  const host = sparkplugHost([{ topic }]);
  expect(tagFilter(mqttDriver.tag.parse({ topic, format: "sparkplugB" }))).toBe(filter);
  host.send("NBIRTH/E1", { seq: 0, metrics: [bdSeq(0), { name: "n", alias: 1, datatype: 3, int: 1 }] });
  for (const [i, device] of ["D1", "D2"].entries())
    host.send(`DBIRTH/E1/${device}`, {
      seq: i + 1,
      metrics: [{ name: `d${i + 1}`, alias: i + 2, datatype: 3, int: 1 }],
    });
  const names = () => host.readings.map(({ captures }) => captures["metric"]);
  expect(names()).toEqual(metrics);
  host.clear();
  for (const [i, device] of ["D1", "D2"].entries())
    host.send(`DDATA/E1/${device}`, { seq: i + 3, metrics: [{ alias: i + 2, int: 2 }] });
  host.send("NDATA/E1", { seq: 5, metrics: [{ alias: 1, int: 2 }] });
  expect(new Set(names())).toEqual(new Set(metrics));
  host.clear();
  host.send("NDEATH/E1", { metrics: [bdSeq(0)] });
  expect(new Set(names())).toEqual(new Set(metrics));
  expect(host.asked).toEqual([]);
});

test("captures of group, node and device apply to every metric, by the same object", () => {
  const host = sparkplugHost([{ topic: "spBv1.0/{plant|lower}/+/{node}/{line}" }]);
  host.send("NBIRTH/E1", { seq: 0, metrics: [bdSeq(0)] });
  host.send("DBIRTH/E1/D1", { seq: 1, metrics: [{ name: "a", alias: 7, datatype: 3, int: 1 }] });
  host.send("DDATA/E1/D1", { seq: 2, metrics: [{ alias: 7, int: 2 }] });
  const [first, second] = host.readings;
  expect(first?.captures).toEqual({ group: "G1", node: "E1", device: "D1", metric: "a", plant: "g1", line: "D1" });
  expect(second?.captures).toBe(first?.captures);
});

test.each([
  ["$share/agents/spBv1.0/#", /must not be a shared subscription/],
  ["spBv1.0/G1/{type}/E1/#", /must capture group, node and device only.*not \{type\}/],
  ["spBv1.0/{rest...}", /not \{rest\}/],
])("topic %s of a Sparkplug tag is refused", (topic, message) => {
  const { error } = mqttDriver.tag.safeParse({ topic, format: "sparkplugB" });
  expect(error?.issues[0]).toMatchObject({ path: ["topic"], message: expect.stringMatching(message) });
});

test("data before any birth causes one rebirth request within a minute", () => {
  const host = sparkplugHost();
  const data: PayloadText = { seq: 9, metrics: [{ alias: 1, double: 1 }] };
  host.send("NDATA/E1", data);
  host.pass(30_000);
  host.send("NDATA/E1", data);
  expect(host.asked).toEqual(["spBv1.0/G1/NCMD/E1"]);
  expect(host.readings).toEqual([]);
  expect(host.counts.unknownMetrics).toBe(2);
  host.pass(31_000);
  host.send("NDATA/E1", data);
  expect(host.asked).toHaveLength(2);
});

test("nodes without a birth are counted", () => {
  const host = sparkplugHost();
  host.send("NDATA/E1", { seq: 5, metrics: [{ alias: 1, int: 1 }] });
  host.send("NBIRTH/E2", { seq: 0, metrics: [bdSeq(0)] });
  expect(host.known()).toEqual({ nodes: 2, unborn: 1 });
  host.send("NBIRTH/E1", { seq: 0, metrics: [bdSeq(0)] });
  host.send("NDEATH/E2", { metrics: [bdSeq(0)] });
  expect(host.known()).toEqual({ nodes: 2, unborn: 1 });
});

test("a lost message causes a rebirth request, an overtaken one does not", () => {
  const host = sparkplugHost();
  host.send("NBIRTH/E1", { seq: 254, metrics: [{ name: "m", alias: 1, datatype: 10, double: 0 }] });
  const data = (seq: number) => host.send("NDATA/E1", { seq, metrics: [{ alias: 1, double: seq }] });
  data(0);
  host.pass(100);
  data(255);
  host.pass(3_000);
  data(1);
  expect(host.asked).toEqual([]);
  data(3);
  host.pass(3_000);
  data(4);
  expect(host.asked).toEqual(["spBv1.0/G1/NCMD/E1"]);
  expect(host.readings.map(({ value }) => value)).toEqual([0, 255, 0, 1, 3, 4]);
});

test("a device birth that overtakes that of its node is kept", () => {
  const host = sparkplugHost();
  host.send("DBIRTH/E1/D1", { seq: 1, metrics: [{ name: "m", alias: 1, datatype: 10, double: 1 }] });
  host.send("NBIRTH/E1", { seq: 0, metrics: [bdSeq(3)] });
  host.clear();
  host.send("DDATA/E1/D1", { seq: 2, metrics: [{ alias: 1, double: 2 }] });
  host.pass(3_000);
  host.send("DDATA/E1/D1", { seq: 3, metrics: [{ alias: 1, double: 3 }] });
  expect(host.readings.map(({ value }) => value)).toEqual([2, 3]);
  expect(host.asked).toEqual([]);
});

const metric = (value: number): MetricText => ({ name: "m", alias: 1, datatype: 10, double: value });
const aliased = (value: number): MetricText => ({ alias: 1, double: value });

test("data that overtook other messages waits for them", () => {
  const host = sparkplugHost();
  host.send("NBIRTH/E1", { seq: 0, metrics: [metric(0)] });
  for (const seq of [3, 2, 4]) host.send("NDATA/E1", { seq, metrics: [aliased(seq)] });
  expect(host.values()).toEqual([0]);
  host.send("NDATA/E1", { seq: 1, metrics: [aliased(1)] });
  expect(host.values()).toEqual([0, 1, 2, 3, 4]);
  expect(host.asked).toEqual([]);
});

test("when the gap does not close within 2 s waiting data is read in sequence order, and a rebirth requested", () => {
  const host = sparkplugHost();
  host.send("NBIRTH/E1", { seq: 0, metrics: [metric(0)] });
  for (const seq of [3, 2]) host.send("NDATA/E1", { seq, metrics: [aliased(seq)] });
  host.pass(1_999);
  expect(host.release()).toBe(false);
  host.pass(1);
  expect(host.release()).toBe(true);
  expect(host.values()).toEqual([0, 2, 3]);
  expect(host.asked).toEqual(["spBv1.0/G1/NCMD/E1"]);
  host.send("NDATA/E1", { seq: 1, metrics: [aliased(1)] });
  host.send("NDATA/E1", { seq: 4, metrics: [aliased(4)] });
  expect(host.values()).toEqual([0, 2, 3, 1, 4]);
});

test("a new session whose messages overtake its birth is read with the aliases of the new birth", () => {
  const host = sparkplugHost();
  host.send("NBIRTH/E1", { seq: 250, metrics: [metric(0)] });
  host.send("NDATA/E1", { seq: 252, metrics: [aliased(252)] });
  host.send("DBIRTH/E1/D1", { seq: 1, metrics: [{ name: "d", alias: 1, datatype: 10, double: 1 }] });
  host.send("DDATA/E1/D1", { seq: 2, metrics: [aliased(2)] });
  expect(host.values()).toEqual([0]);
  host.send("NBIRTH/E1", { seq: 0, metrics: [{ name: "n", alias: 2, datatype: 10, double: 7 }] });
  expect(host.readings.map(({ captures, value }) => [captures["metric"], value])).toEqual([
    ["m", 0],
    ["m", 252],
    ["n", 7],
    ["d", 1],
    ["d", 2],
  ]);
  expect(host.asked).toEqual([]);
});

test("waiting data is read before the death of its node, and data of the next session after it", () => {
  const host = sparkplugHost();
  host.send("NBIRTH/E1", { seq: 0, metrics: [bdSeq(1), metric(0)] });
  host.send("NDATA/E1", { seq: 2, metrics: [aliased(2)] });
  host.send("DBIRTH/E1/D1", { seq: 1 + 200, metrics: [{ name: "d", alias: 9, datatype: 10, double: 9 }] });
  host.send("NDEATH/E1", { metrics: [bdSeq(1)] });
  host.send("NBIRTH/E1", { seq: 200, metrics: [bdSeq(2), metric(5)] });
  expect(host.values()).toEqual([0, 2, undefined, 5, 9]);
});

test("a QoS 1 message does not wait, since it is acknowledged when its values are stored", () => {
  const host = sparkplugHost();
  host.send("NBIRTH/E1", { seq: 0, metrics: [metric(0)] });
  host.receive("spBv1.0/G1/NDATA/E1", sparkplugPayload({ seq: 2, metrics: [aliased(2)] }), 17);
  expect(host.values()).toEqual([0, 2]);
  host.send("NDATA/E1", { seq: 3, metrics: [aliased(3)] });
  host.send("NDATA/E1", { seq: 1, metrics: [aliased(1)] });
  expect(host.values()).toEqual([0, 2, 1, 3]);
});

test("waiting data is bounded: beyond 16 MiB messages are read on arrival", () => {
  const host = sparkplugHost([{}], 2 ** 20);
  const filler = { name: "f", datatype: 12, string: "x".repeat(2 ** 20 - 100) };
  host.send("NBIRTH/E1", { seq: 0, metrics: [metric(0)] });
  for (let seq = 2; seq < 22; seq++) host.send("NDATA/E1", { seq, metrics: [aliased(seq), filler] });
  expect(host.values()).toEqual([0, 18, 19, 20, 21]);
  host.send("NDATA/E1", { seq: 1, metrics: [aliased(1)] });
  expect(host.values()).toHaveLength(22);
});

test("in whatever order a node's session arrives within 2 s, its data are read once and in sequence order", () => {
  const count = 30;
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 255 }),
      fc.shuffledSubarray(
        Array.from({ length: count }, (_, i) => i),
        { minLength: count },
      ),
      (first, order) => {
        const host = sparkplugHost();
        host.send("NBIRTH/E1", { seq: first, metrics: [metric(-1)] });
        for (const i of order) host.send("NDATA/E1", { seq: (first + 1 + i) % 256, metrics: [aliased(i)] });
        expect(host.values()).toEqual([-1, ...Array.from({ length: count }, (_, i) => i)]);
        expect(host.asked).toEqual([]);
      },
    ),
    runs(100),
  );
});

test.each([
  [0, "bad"],
  [2, "good"],
  [64, "uncertain"],
  [192, "good"],
  [203, "good"],
  [257, "uncertain"],
  [310, "bad"],
  [500, "bad"],
  [516, "bad"],
  [770, "bad"],
  [150, "good"],
  [5_000, "good"],
  [1_073_742_080, "uncertain"],
  [-2_147_483_132, "bad"],
  [-1_073_741_055n, "bad"],
  ["Good", "good"],
  [undefined, "good"],
] as const)("a metric whose quality is %s is %s", (code, quality) => {
  expect(qualityOf(code)).toBe(quality);
});

test("a death makes what has a number stale, but no text, template or array, whose inputs would never recover", () => {
  const host = sparkplugHost([{}, { metric: "make" }, { metric: "motor*" }]);
  host.send("NBIRTH/E1", {
    seq: 0,
    metrics: [
      bdSeq(0),
      { name: "make", datatype: 12, string: "x" },
      { name: "since", datatype: 13, long: t0 },
      { name: "run", datatype: 11, boolean: true },
      { name: "bits", datatype: 32, bytes: Buffer.from([1, 0, 0, 0, 0b1000_0000]) },
      { name: "words", datatype: 27, bytes: Buffer.from([1, 0]) },
      { name: "motor", datatype: 19, template: [{ name: "rpm", datatype: 3, int: 1 }] },
    ],
  });
  const named = () => host.readings.map(({ tag, captures }) => `${tag} ${captures["metric"]}`).toSorted();
  const expected = ["0 bits/0", "0 motor/rpm", "0 run", "0 since", "0 words/0", "1 make", "2 motor/rpm"];
  expect(named()).toEqual(expected);
  host.clear();
  host.send("NDEATH/E1", { metrics: [bdSeq(0)] });
  expect(named()).toEqual(expected);
});

test("a death makes all metrics of the node stale at its arrival, unless it belongs to an earlier session", () => {
  const host = sparkplugHost();
  const metrics = [bdSeq(5), { name: "m", alias: 1, datatype: 10, double: 1 }];
  host.send("NBIRTH/E1", { seq: 0, metrics });
  host.send("DBIRTH/E1/D1", { seq: 1, metrics: [{ name: "d", alias: 2, datatype: 10, double: 2 }] });
  host.clear();

  host.send("NDEATH/E1", { timestamp: 1, metrics: [bdSeq(4)] });
  expect(host.readings).toEqual([]);
  host.send("DDEATH/E1/D1", { seq: 2 });
  host.send("NDEATH/E1", { timestamp: 1, metrics: [bdSeq(5)] });

  expect(
    host.readings.map(({ captures, quality, reason, time }) => [captures["metric"], quality, reason, time]),
  ).toEqual([
    ["d", "bad", "device D1 is offline", arrival],
    ["m", "bad", "edge node E1 is offline", arrival],
    ["d", "bad", "edge node E1 is offline", arrival],
  ]);
});

test.each([
  ["DEFLATE", deflateSync],
  ["GZIP", gzipSync],
] as const)("a payload compressed by %s is read", (algorithm, pack) => {
  const body = pack(sparkplugPayload({ seq: 3, metrics: [{ name: "m", datatype: 10, double: 1.5 }] }));
  const metrics: MetricText[] = [{ name: "algorithm", datatype: 12, string: algorithm }];
  const payload = sparkplugPayload({ uuid: "SPBV1.0_COMPRESSED", body, metrics });
  expect(decodeSparkplug(payload, 1_000)).toMatchObject({ seq: 3, metrics: [{ name: "m", value: 1.5 }] });
  const bomb = sparkplugPayload({ uuid: "SPBV1.0_COMPRESSED", body: pack(Buffer.alloc(100_000)), metrics });
  expect(() => decodeSparkplug(bomb, 1_000)).toThrow(PayloadError);
});

test("STATE and commands are skipped, other namespaces and invalid topics are reported as foreign", () => {
  const host = sparkplugHost();
  const take = (topic: string) => host.receive(topic, Buffer.from("{}"));
  expect(["spBv1.0/STATE/h", "spBv1.0/G1/NCMD/E1", "spBv1.0/G1/DCMD/E1/D1"].map(take)).toEqual([true, true, true]);
  expect(["spBv2.0/G1/NDATA/E1", "spAv1.0/G1/NDATA/E1", "spBv1.0/G1/DDATA/E1", "x"].map(take)).toEqual(
    Array(4).fill(false),
  );
  expect(host.readings).toEqual([]);
});

test("a payload compressed twice is refused: one that contains itself would inflate for ever", () => {
  const once = (inner: Buffer) => sparkplugPayload({ uuid: "SPBV1.0_COMPRESSED", body: deflateSync(inner) });
  const plain = sparkplugPayload({ seq: 7 });
  expect(decodeSparkplug(once(plain), 1_000).seq).toBe(7);
  expect(() => decodeSparkplug(once(once(plain)), 1_000)).toThrow(PayloadError);
});

test("an array of more than 10,000 elements, even of single bits, is counted and left out; the rest is read", () => {
  const host = sparkplugHost();
  const bits = Buffer.alloc(4 + 1_251, 0xff);
  bits.writeUInt32LE(10_001);
  host.send("NBIRTH/E1", {
    seq: 0,
    metrics: [
      { name: "bits", datatype: 32, bytes: bits },
      { name: "bytes", datatype: 26, bytes: Buffer.alloc(10_001) },
      { name: "x", datatype: 3, int: 1 },
    ],
  });
  expect(host.values()).toEqual([1]);
  expect(host.counts.unsupported).toBe(2);
});

test("at most 100,000 array elements of one message are read, even of single bits", () => {
  const host = sparkplugHost();
  const bits = Buffer.alloc(4 + 1_250, 0xff);
  bits.writeUInt32LE(10_000);
  const array = { datatype: 32, bytes: bits };
  const arrays = Array.from({ length: 12 }, (_, i) => ({ name: `a${i}`, ...array }));
  host.send("NBIRTH/E1", { seq: 0, metrics: [...arrays, { name: "x", datatype: 3, int: 7 }] });
  expect(host.readings).toHaveLength(100_001);
  expect(host.values().at(-1)).toBe(7);
  expect(host.counts.unsupported).toBe(2);
  // Many small messages count together: the 17th is read at once.
  host.clear();
  for (let seq = 2; seq < 22; seq++) host.send("NDATA/E1", { seq, metrics: [{ name: "a0", ...array }] });
  expect(host.readings).toHaveLength(40_000);
});

test("whatever the bytes are, they are decoded or refused with a PayloadError", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      try {
        decodeSparkplug(bytes, 1_000);
      } catch (error) {
        expect(error).toBeInstanceOf(PayloadError);
      }
    }),
    runs(2_000),
  );
});

test("metrics of all nodes together are cached within a bound; uncached ones are read as far as they describe themselves", () => {
  const room = { characters: 1_000 };
  const nodes = ["E1", "E2"].map((name) => new EdgeNode("G1", name, room));
  const names = Array.from({ length: 10 }, (_, i) => `metric ${i}`);
  for (const node of nodes) for (const [alias, name] of names.entries()) node.declare("", name, alias, 3);
  const known = nodes.flatMap((node) => node.metrics(""));
  expect(known.length).toBeGreaterThan(3);
  expect(known.length).toBeLessThan(10);
  expect(nodes[1]?.find("", undefined, 0)).toBeUndefined();
  expect(nodes[1]?.declare("", "metric 0", 0, 3)).toMatchObject({ name: "metric 0", captures: { node: "E2" } });
  // A cached metric stays as it is, although the new birth describes it differently.
  expect(nodes[0]?.declare("", "metric 0", 99, 4)).toBe(nodes[0]?.find("", undefined, 99));
});

function bdSeq(value: number): MetricText {
  return { name: "bdSeq", datatype: 8, long: value };
}

function sparkplugHost(texts: readonly object[] = [{}], maxPayload = 100_000) {
  let now = 0;
  const asked: string[] = [];
  const readings: Reading[] = [];
  const descriptions: Description[] = [];
  const counts = new MessageCounts();
  const rebirths = new RebirthRequests((topic) => asked.push(topic));
  const host = new SparkplugHost({ maxPayload, rebirths, counts, monotonic: () => now });
  const routes = texts.map((text, index) => {
    const tag = mqttDriver.tag.parse({ topic: "spBv1.0/#", format: "sparkplugB", ...text });
    const id = index as TagId; // a TagId is the index of its tag
    const address = tagAddress(tag);
    const way = { address, decode: () => undefined, scoped: address.scope && scopeCaptures(address.scope) };
    return { id, tag, way, captures: {}, from: "", device: undefined };
  });
  const receive = (topic: string, payload: Buffer, held?: number) => {
    const message = { topic, payload, retained: false, held };
    return host.read(routes, message, arrival, { readings, descriptions });
  };
  return {
    asked,
    readings,
    descriptions,
    counts,
    receive,
    /** `what` is the type, node and device of the topic. */
    send: (what: string, payload: PayloadText) => receive(`spBv1.0/G1/${what}`, sparkplugPayload(payload)),
    known: () => ({ nodes: host.nodes, unborn: host.unborn }),
    values: () => readings.map(({ value }) => value),
    /** Calls what the driver calls periodically. Returns whether there was something to release. */
    release: () => {
      const { length } = readings;
      host.releaseOverdue(arrival, { readings, descriptions });
      return readings.length > length;
    },
    clear: () => readings.splice(0),
    pass: (ms: number) => (now += ms),
  };
}
