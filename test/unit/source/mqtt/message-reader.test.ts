import { expect, test, vi } from "vitest";
import { epochMicros } from "../../../../src/core/point.ts";
import type { Reading } from "../../../../src/core/source.ts";
import { tagAddress } from "../../../../src/source/mqtt/config/tag-address.ts";
import type { Message } from "../../../../src/source/mqtt/connection/packet-reader.ts";
import { jsonDocument, jsonLines } from "../../../../src/source/mqtt/decoders/payload.ts";
import { lineProtocolRecords } from "../../../../src/source/mqtt/decoders/records.ts";
import { mqttDriver } from "../../../../src/source/mqtt/driver.ts";
import { MessageCounts, UnknownTopics } from "../../../../src/source/mqtt/reading/message-counts.ts";
import { type KnownNames, NameTables } from "../../../../src/source/mqtt/reading/name-tables.ts";
import { TopicRouter } from "../../../../src/source/mqtt/reading/topic-router.ts";
import { messageReader } from "../../../../src/source/mqtt/receiver/message-reader.ts";
import { RebirthRequests } from "../../../../src/source/mqtt/sparkplug/edge-node.ts";
import { SparkplugHost } from "../../../../src/source/mqtt/sparkplug/host.ts";
import { TopicTrie } from "../../../../src/source/mqtt/topics/topic-trie.ts";

const arrival = epochMicros(Date.UTC(2026, 0, 1) * 1_000);

test("one message serves every tag with a value in it, and is parsed once", () => {
  const reader = jsonReader([
    { topic: "sensors/{room}/env", value: "$.t" },
    { topic: "sensors/{room}/env", value: "$.co2" },
    { topic: "sensors/+/env", value: "$.h" },
  ]);
  const readings = reader.read("sensors/hall/env", '{"t":21.5,"co2":400}');
  expect(readings).toEqual([
    {
      tag: 0,
      captures: { room: "hall" },
      address: "sensors/hall/env",
      value: 21.5,
      time: arrival,
      clock: "agent",
      quality: "good",
      historical: false,
    },
    expect.objectContaining({ tag: 1, captures: { room: "hall" }, value: 400 }),
  ]);
  expect(reader.parsed()).toBe(1);
  expect(reader.counts.missing).toBe(1);
});

test("an address is the topic with the captures that distinguish parts of a payload, and the same string object", () => {
  const addresses = (text: Record<string, unknown>, topic: string, ...payloads: readonly string[]) => {
    const reader = jsonReader([text]);
    return payloads.flatMap((payload) => reader.read(topic, payload)).map(({ address }) => address);
  };
  const list = { topic: "a", value: "$[*].v", capture: { id: "$[*].id" } };
  const [first, second] = ['[{"id":"x","v":1},{"id":"y","v":2}]', '[{"id":"y","v":1},{"id":"x","v":2}]'];
  expect(addresses(list, "a", first, second)).toEqual(["a x", "a y", "a y", "a x"]);
  expect(addresses({ topic: "a", value: "$.v" }, "a", '{"v":1}', "{", '{"v":2}')).toEqual(["a", "a", "a"]);
  expect(addresses({ ...list, topic: "+" }, "b", first)).toEqual(["b x", "b y"]);
});

test("captures for metadata, and topic levels that are times, are not part of an address", () => {
  const unit = { topic: "a", value: "$.v", capture: { unit: "$.u" } };
  const reader = jsonReader([unit, { topic: "log/{at}/t", value: "$.v", time: { capture: "at", format: "unixS" } }], {
    descriptive: ["unit"],
  });
  expect(reader.read("a", '{"v":1,"u":"C"}')[0]?.address).toBe("a");
  expect(reader.read("a", '{"v":1,"u":"F"}')[0]?.address).toBe("a");
  expect(reader.read("log/1767225600/t", '{"v":1}')[0]?.address).toBe("log/{at}/t");
});

test("the same topic gives the same captures object again", () => {
  const reader = jsonReader([{ topic: "a/{x}", value: "$[*].v" }]);
  const [first, second] = reader.read("a/1", '[{"v":1},{"v":2}]');
  const [again] = reader.read("a/1", '[{"v":3}]');
  expect(again?.captures).toBe(first?.captures);
  expect(first?.captures).toMatchObject({ x: "1", i: "0", i1: "0" });
  expect(second?.captures).toMatchObject({ x: "1", i: "1", i1: "1" });
});

test("[*] in value and time iterate over the elements together", () => {
  const reader = jsonReader([{ topic: "a", value: "$.vals[*].val", time: { at: "$.vals[*].ts", format: "unixS" } }]);
  const readings = reader.read("a", '{"vals":[{"ts":1767225601,"val":"1"},{"val":2},{"ts":1767225603}]}');
  expect(readings.map(({ value, clock, time, captures }) => [value, clock, time - arrival, captures])).toEqual([
    ["1", "device", 1_000_000 - 0, { i: "", i1: "0", key: "" }],
    [2, "agent", 0, { i: "", i1: "1", key: "" }],
  ]);
});

test("the time may be in the topic or in a user property, and the first of several places with one is used", () => {
  const reader = jsonReader([
    { topic: "a/{ts}", value: "$.v", time: { capture: "ts", format: "unixS" } },
    { topic: "a/+", value: "$.v", time: { property: "sampled" } },
    { topic: "a/+", value: "$.v", time: { at: ["$.exact", "$.coarse"] } },
  ]);
  const properties = { sampled: "2026-01-01T00:00:02Z" };
  const readings = reader.read("a/1767225601", '{"v":1,"coarse":1767225603}', { properties });
  expect(readings.map(({ time, clock }) => [(time - arrival) / 1e6, clock])).toEqual([
    [1, "device"],
    [2, "device"],
    [3, "device"],
  ]);
});

test("an implausible time is replaced by the time of arrival, marked in the reading and counted by its fault", () => {
  const reader = jsonReader([{ topic: "a", value: "$.v", time: { at: "$.ts" } }]);
  const readings = ["0", "1767999999", '"never"', "null"].flatMap((ts) => reader.read("a", `{"v":1,"ts":${ts}}`));
  expect(readings.map(({ time, clock, quality }) => [time, clock, quality])).toEqual(
    Array(4).fill([arrival, "agent", "good"]),
  );
  expect(readings.map(({ reason }) => reason?.replace("; the time of arrival is taken", ""))).toEqual([
    "the time in the payload, 1970-01-01T00:00:00.000Z, is before 2000",
    "the time in the payload, 2026-01-09T23:06:39.000Z, is more than 5m ahead",
    "the time in the payload, never, is none of format auto",
    "the payload has no time",
  ]);
  expect(reader.counts).toMatchObject({
    untimed: { past: 1, future: 1, unreadable: 1, missing: 1 },
    lastTimeFault: "a: the payload has no time",
  });
});

test("of several places without a plausible time the first with a value is reported", () => {
  const reader = jsonReader([{ topic: "a", value: "$.v", time: { at: ["$.exact", "$.coarse"] } }]);
  const [reading] = reader.read("a", '{"v":1,"coarse":"soon"}');
  expect(reading?.reason).toMatch(/^the time in the payload, soon, is none of format auto;/);
});

test("a value with an implausible time is dropped if the tag is configured so, and counted", () => {
  const reader = jsonReader([{ topic: "a", value: "$.v", time: { at: "$.ts", unusable: "drop" } }]);
  expect(reader.read("a", '{"v":1,"ts":0}')).toEqual([]);
  expect(reader.read("a", '{"v":2,"ts":1767225599}')).toMatchObject([{ value: 2, clock: "device" }]);
  expect(reader.counts.untimed).toMatchObject({ past: 1 });
});

test("a value omitted by its device for bad quality is a bad reading, not a missing one", () => {
  const reader = jsonReader([{ topic: "a", value: "$.v", quality: { at: "$.q", good: [0] } }]);
  expect(reader.read("a", '{"q":5}')).toMatchObject([{ value: undefined, quality: "bad", reason: "quality is 5" }]);
  expect(reader.read("a", '{"q":0}')).toEqual([]);
  expect(reader.counts.missing).toBe(1);
});

test("a malformed line is a bad reading of the tag that reads it, or is counted if it would name the tag", () => {
  const tags = [
    { topic: "a", value: "$[0].v" },
    { topic: "a", value: "$[1].v" },
    { topic: "a", value: "$[*].v", capture: { id: "$[*].id" } },
    { topic: "a", value: "$.**" },
  ];
  const reader = jsonReader(tags, { decoder: jsonLines });
  const readings = reader.read("a", '{"id":"x","v":1}\n{"v":\n{"id":"y","v":3}');
  expect(readings.map(({ tag, value, reason }) => [tag, value, reason])).toEqual([
    [0, 1, undefined],
    [1, undefined, 'payload is not JSON: {"v":'],
    [2, 1, undefined],
    [2, 3, undefined],
    [3, 1, undefined],
    [3, 3, undefined],
  ]);
  expect(reader.counts).toMatchObject({ malformed: 1, missing: 0, lastMalformed: 'a: payload is not JSON: {"v":' });
});

test("a malformed element gives no tag the value or time of another one, and is never merely missing", () => {
  const read = (tag: Record<string, unknown>, payload: string, decoder: (from: Buffer) => unknown = jsonLines) => {
    const reader = jsonReader([{ topic: "a", ...tag }], { decoder });
    const readings = reader.read("a", payload);
    expect(reader.counts).toMatchObject({ malformed: 1, missing: 0 });
    return readings.map(({ value, reason }) => value ?? reason);
  };
  const garbage = '{"v":1}\n{"v":2}x\n{"v":3}\n{"v":4}';
  expect(read({ value: "$[3].v" }, garbage)).toEqual(["payload is not JSON: x"]);
  expect(read({ value: "$[-3].v" }, garbage)).toEqual(["payload is not JSON: x"]);
  expect(read({ value: "$[*].v" }, garbage)).toEqual([1, 2]);
  const block = {
    value: "$[*].v",
    each: "sample",
    time: { at: "$[0].t", format: "unixS", step: "10s", anchor: "last" },
  };
  expect(read(block, garbage.replace("{", '{"t":1767225600,'))).toEqual(["payload is not JSON: x"]);
  expect(read({ value: "$[?@.id=='7'].v" }, '{"id":6,"v":1}\n{"id":7,"v":')).toEqual([
    'payload is not JSON: {"id":7,"v":',
  ]);
  const timed = { value: "$[1].v", time: { at: "$[0].t", format: "unixS" } };
  expect(read(timed, '{"t":\n{"v":1}')).toEqual(['payload is not JSON: {"t":']);
  const lines = "w t=1,h=x 1\np v=5 2\nq v=6 3";
  expect(read({ value: "$[1].value" }, lines, lineProtocolRecords)).toEqual([expect.stringContaining("line protocol")]);
});

test("texts below .** that are not numbers are counted", () => {
  const reader = jsonReader([{ topic: "a", value: "$.**" }]);
  expect(reader.read("a", '{"a":"1.5","b":"on","id":"0042","c":{"d":"x"}}').map(({ value }) => value)).toEqual(["1.5"]);
  expect(reader.counts.texts).toBe(3);
});

test("a block of samples without a time ends at its arrival", () => {
  const reader = jsonReader([{ topic: "a", value: "$[*]", each: "sample", time: { at: "$.t0", step: "2.5ms" } }]);
  const readings = reader.read("a", "[1,2,3]");
  expect(readings.map(({ value, time, captures, clock }) => [value, time - arrival, captures, clock])).toEqual([
    [1, -5_000, {}, "agent"],
    [2, -2_500, {}, "agent"],
    [3, 0, {}, "agent"],
  ]);
});

test("samples of a block with implausible times get the time of arrival, with the reason", () => {
  const time = { at: "$.t0", step: { at: "$.dt", unit: "s" } };
  const reader = jsonReader([{ topic: "a", value: "$.x[*]", each: "sample", time }]);
  const t0 = arrival / 1e6 - 1;
  const read = (payload: string) =>
    reader.read("a", payload).map((reading) => [reading.time - arrival, reading.clock, reading.reason]);
  expect(read(`{"t0":${t0},"dt":1,"x":[1,2]}`)).toEqual([
    [-1e6, "device", undefined],
    [0, "device", undefined],
  ]);
  expect(read(`{"t0":${t0},"dt":86400,"x":[1,2]}`)).toEqual([
    [-1e6, "device", undefined],
    [0, "agent", expect.stringContaining("more than 5m ahead")],
  ]);
  expect(read(`{"t0":${t0},"dt":1e290,"x":[1,2]}`)[1]).toEqual([0, "agent", expect.stringContaining("ahead")]);
  expect(read('{"dt":1e290,"x":[1,2]}')[0]).toEqual([0, "agent", expect.stringContaining("before 2000")]);
  expect(read(`{"t0":${t0},"dt":"Infinity","x":[1,2]}`)).toMatchObject([[0, "agent", expect.any(String)]]);
  expect(reader.counts.untimed).toMatchObject({ future: 2, past: 1 });
});

test("JSON in a text of JSON is parsed once for a tag, however many elements, times and qualities it reads there", () => {
  const reader = jsonReader([
    {
      topic: "a",
      value: "$.body.list[*].v",
      time: { at: "$.body.list[*].t", format: "unixS" },
      quality: { at: "$.body.list[*].q", good: [1] },
      capture: { id: "$.body.list[*].id" },
    },
  ]);
  const list = Array.from({ length: 200 }, (_, id) => ({ v: id, t: 1_767_225_600, q: 1, id: `n${id}` }));
  const parse = vi.spyOn(JSON, "parse");
  const readings = reader.read("a", JSON.stringify({ body: JSON.stringify({ list }) }));
  const parsed = parse.mock.calls.length;
  parse.mockRestore();
  expect(readings).toHaveLength(200);
  expect(readings[7]).toMatchObject({ value: 7, quality: "good", clock: "device", captures: { id: "n7" } });
  expect(parsed).toBeLessThanOrEqual(3);
});

const named = {
  topic: "d/{c}/r",
  value: "$[*].v",
  capture: { id: "$[*].id" },
  names: { of: "id", topic: "m/{c}", id: "$.points[*].id", name: "$.points[*].name" },
};

test("names from a device's own messages replace the IDs in its data, which are used until then", () => {
  const reader = jsonReader([named]);
  const data = () => reader.read("d/one/r", '[{"id":"101","v":1},{"id":"102","v":2}]').map(({ captures }) => captures);
  expect(data()).toMatchObject([
    { c: "one", id: "101", name: "101" },
    { c: "one", id: "102", name: "102" },
  ]);
  expect(reader.read("m/one", '{"points":[{"id":101,"name":"speed"},{"id":"103","name":"level"},{"id":"9"}]}')).toEqual(
    [],
  );
  const [first, second] = data();
  expect(first).toMatchObject({ c: "one", id: "101", name: "speed" });
  expect(second).toMatchObject({ c: "one", id: "102", name: "102" });
  expect(data()[0]).toBe(first);
  expect(reader.read("d/two/r", '[{"id":"101","v":1}]')[0]?.captures).toMatchObject({
    c: "two",
    id: "101",
    name: "101",
  });

  reader.read("m/one", '{"points":[{"id":"101","name":"torque"}]}');
  expect(data()[0]).toMatchObject({ c: "one", id: "101", name: "torque" });
  expect(reader.saved).toHaveLength(2);
  expect(reader.counts).toMatchObject({ unmatched: 0, malformed: 0 });
});

test("unreadable names change nothing and are counted, repeated ones are not new, and a deletion removes none", () => {
  const reader = jsonReader([named]);
  const names = '{"points":[{"id":"101","name":"speed"}]}';
  for (const payload of [names, names, "", '{"points":', '{"points":[]}', '{"other":1}', "[".repeat(10_000)])
    reader.read("m/one", payload);
  expect(reader.read("d/one/r", '[{"id":"101","v":1}]')[0]?.captures).toMatchObject({ name: "speed" });
  expect(reader.saved).toHaveLength(1);
  expect(reader.counts).toMatchObject({ malformed: 4 });
});

test("names may arrive on a topic that a tag reads as well", () => {
  const reader = jsonReader([named, { topic: "m/{c}", value: "$.points[*].min" }]);
  expect(reader.read("m/one", '{"points":[{"id":"101","name":"speed","min":3}]}')).toMatchObject([
    { tag: 1, value: 3 },
  ]);
  expect(reader.read("d/one/r", '[{"id":"101","v":1}]')[0]?.captures).toMatchObject({ name: "speed" });
});

test("known names can be saved and restored", () => {
  const reader = jsonReader([named]);
  reader.read("m/one", '{"points":[{"id":"101","name":"speed"}]}');
  const { names } = mqttDriver.tag.parse(named);
  const again = new NameTables([{ names }], JSON.parse(JSON.stringify(reader.saved[0])));
  expect(names && again.of(names, { c: "one" }).get("101")).toBe("speed");
});

test("whether a topic carries names is found once, since each message of the connection is looked up", () => {
  const reader = jsonReader([named]);
  reader.read("other/topic", "{}");
  using match = vi.spyOn(TopicTrie.prototype, "match");
  reader.read("other/topic", "{}");
  expect(match).not.toHaveBeenCalled();
});

test.each([
  [{ ...named.names, of: "key" }, "must be a name in capture, which has id"],
  [{ ...named.names, topic: "m/{x}" }, "must capture single levels that topic captures too, not {x}"],
  [{ ...named.names, topic: "$share/g/m" }, "must not be a shared subscription, which brings no retained messages"],
])("names %j are refused", (names, message) => {
  const { error } = mqttDriver.tag.safeParse({ ...named, names });
  expect(error?.issues.map((issue) => issue.message)).toEqual([message]);
});

test("null, objects and arrays are bad readings that name the found type", () => {
  const reader = jsonReader([{ topic: "a", value: "$.v" }]);
  const reasons = ["null", "{}", "[1]"].map((v) => reader.read("a", `{"v":${v}}`)[0]);
  expect(reasons).toMatchObject([
    { value: undefined, quality: "bad", reason: "value is null" },
    { value: undefined, quality: "bad", reason: "value is an object" },
    { value: undefined, quality: "bad", reason: "value is an array" },
  ]);
});

test("a payload larger than allowed is a bad reading and is not parsed", () => {
  const reader = jsonReader([{ topic: "a", value: "$.v" }], { maxPayload: 10 });
  expect(reader.read("a", '{"v":123456789}')).toMatchObject([
    { quality: "bad", reason: "payload of 15 bytes is larger than maxPayload, 10 bytes" },
  ]);
  expect(reader.parsed()).toBe(0);
});

test("an array with more elements than a delivery is refused as a whole", () => {
  const reader = jsonReader([{ topic: "a", value: "$[*]" }]);
  expect(reader.read("a", `[${"1,".repeat(10_000)}1]`)).toEqual([]);
  expect(reader.counts).toMatchObject({ malformed: 1, lastMalformed: "a: payload has more than 10000 values at $[*]" });
  expect(reader.read("a", `[${"1,".repeat(9_999)}1]`)).toHaveLength(10_000);
});

test("hostile payloads do not affect the good ones between them", () => {
  const reader = jsonReader([{ topic: "#", value: "$.v" }]);
  const hostile = [
    '{"v":',
    "NaN",
    '{"v":"',
    "[".repeat(10_000),
    `${"[".repeat(10_000)}${"]".repeat(10_000)}`,
    '{"__proto__":{"v":1}}',
    "\0\0\0",
    "",
  ];
  const values: unknown[] = [];
  for (let i = 0; i < 1_000; i++) {
    reader.read("a".repeat(300), hostile[i % hostile.length] ?? "");
    for (const { value } of reader.read("a", `{"v":${i}}`)) values.push(value);
  }
  expect(values).toEqual(Array.from({ length: 1_000 }, (_, i) => i));
  expect(reader.counts.malformed).toBeGreaterThan(0);
});

test("topics without a tag are listed by frequency, each with its first payload", () => {
  const reader = jsonReader([{ topic: "a" }]);
  reader.read("other", '{"v":1}');
  for (let i = 0; i < 3; i++) reader.read("often", String.fromCharCode(i));
  reader.read("long", "é".repeat(5_000));
  for (let i = 0; i < 2_000; i++) reader.read(`many/${i}`, "x");
  const top = reader.unknown.top();
  expect(top.slice(0, 3)).toEqual([
    { address: "often", count: 3, sample: "00" },
    { address: "other", count: 1, sample: '{"v":1}' },
    { address: "long", count: 1, sample: "é".repeat(100) },
  ]);
  expect(top).toHaveLength(50);
});

test("date and time of day may be in separate fields", () => {
  const time = { date: "$.d", at: "$.t", zone: "+02:00" };
  const reader = jsonReader([{ topic: "a", value: "$.v", time }]);
  const times = [
    '{"d":"2025-12-31","t":"09:30:15.5","v":1}',
    '{"d":20251231,"t":93015,"v":1}',
    '{"d":20251231,"v":1}',
  ].map((payload) => reader.read("a", payload)[0]);
  expect(times.map((reading) => [reading?.clock, new Date((reading?.time ?? 0) / 1_000).toISOString()])).toEqual([
    ["device", "2025-12-31T07:30:15.500Z"],
    ["device", "2025-12-31T07:30:15.000Z"],
    ["agent", expect.anything()],
  ]);
});

test("a defect of the program affects only its message: it is reported, the tag turns bad, and the next one is read", () => {
  const reader = jsonReader([{ topic: "a", value: "$.v" }]);
  expect(reader.read("a", defective)).toMatchObject([{ quality: "bad", reason: "payload cannot be read: of ours" }]);
  expect(reader.read("a", '{"v":1}')).toMatchObject([{ value: 1 }]);
  expect(reader.counts).toMatchObject({ malformed: 1, lastMalformed: "a: payload cannot be read: of ours" });
  expect(reader.defects).toEqual([new TypeError("of ours")]);
});

test("one message gives at most 100,000 readings, whatever the number of its tags", () => {
  const tags = Array.from({ length: 12 }, () => ({ topic: "a/{x}", value: "$[*]" }));
  const reader = jsonReader([...tags, { topic: "a/{x}", value: "$[0]" }]);
  const readings = reader.read("a/1", JSON.stringify(Array.from({ length: 10_000 }, () => 1)));
  expect(readings).toHaveLength(100_001);
  expect(readings.at(-1)).toMatchObject({ tag: 12, quality: "bad", reason: /more than 100000 values for all tags/ });
  expect(reader.counts.malformed).toBe(1);
});

test("integers beyond 2^53 are exact in JSON within JSON as well, and endless digits are not a number", () => {
  const reader = jsonReader([{ topic: "a", value: "$.x.n" }]);
  expect(reader.read("a", '{"x":"{\\"n\\":9007199254740993}"}')).toMatchObject([{ value: 9_007_199_254_740_993n }]);
  expect(reader.read("a", `{"x":{"n":${"9".repeat(400)}}}`)).toMatchObject([{ value: Number.POSITIVE_INFINITY }]);
});

test("topics and names too long to cache are read and not cached", () => {
  const reader = jsonReader([{ topic: "a/{x}", value: "$[*].v", capture: { id: "$[*].id" } }]);
  const [short, long] = ["x", "x".repeat(2_000)];
  const again = (topic: string, id: string) => {
    const [first, second] = [1, 2].map((v) => reader.read(topic, JSON.stringify([{ id, v }]))[0]?.captures);
    expect(first).toEqual(second);
    return first === second;
  };
  expect([again(`a/${short}`, short), again(`a/${long}`, short), again(`a/${short}`, long)]).toEqual([
    true,
    false,
    false,
  ]);
});

test("seconds and their fraction may be in separate fields, and a missing fraction is zero", () => {
  const time = { at: "$.sec", format: "unixS", fraction: { at: "$.nsec" } };
  const reader = jsonReader([{ topic: "a", value: "$.v", time }]);
  const read = (payload: string) => reader.read("a", payload)[0];
  expect(read('{"sec":1767225600,"nsec":123456789,"v":1}')).toMatchObject({ time: arrival + 123_456, clock: "device" });
  expect(read('{"sec":1767225600,"v":1}')).toMatchObject({ time: arrival, clock: "device" });
  for (const nsec of ["1000000000", "-1", '"x"'])
    expect(read(`{"sec":1767225600,"nsec":${nsec},"v":1}`)).toMatchObject({
      time: arrival,
      clock: "agent",
      reason: expect.stringContaining("the fraction of the second in the payload"),
    });
});

/** A payload at which the decoder of `jsonReader` throws as a defect would, not with a PayloadError. */
const defective = '"defect"';

/** A reader of JSON payloads for these tags of a configuration. */
function jsonReader(
  texts: readonly Record<string, unknown>[],
  {
    maxPayload = 1_000_000,
    descriptive,
    decoder = jsonDocument,
  }: { maxPayload?: number; descriptive?: readonly string[]; decoder?: (payload: Buffer) => unknown } = {},
) {
  let parsed = 0;
  const decode = (payload: Buffer) => {
    parsed++;
    if (payload.toString() === defective) throw new TypeError("of ours");
    return decoder(payload);
  };
  const tags = texts.map((text) => ({ ...mqttDriver.tag.parse(text), ...(descriptive && { descriptive }) }));
  const wayOf = (tag: (typeof tags)[number]) => ({ address: tagAddress(tag), decode });
  const counts = new MessageCounts();
  const unknown = new UnknownTopics();
  const saved: KnownNames[] = [];
  const names = new NameTables(tags, {}, (known) => saved.push(known));
  const defects: unknown[] = [];
  const onDefect = (error: unknown) => void defects.push(error);
  const rebirths = new RebirthRequests(undefined);
  const sparkplug = new SparkplugHost({ maxPayload, rebirths, counts, monotonic: () => 0 });
  const router = new TopicRouter(tags, wayOf, 100);
  const copies = { isFor: () => true };
  const read = messageReader({ router, copies, maxPayload, sparkplug, names, counts, unknown, onDefect });
  return {
    defects,
    counts,
    unknown,
    parsed: () => parsed,
    saved,
    read(topic: string, payload: string, rest: Partial<Message> = {}): Reading[] {
      const readings: Reading[] = [];
      const message = { topic, payload: Buffer.from(payload), retained: false, held: undefined, ...rest };
      read(message, arrival, { readings, descriptions: [] });
      return readings;
    },
  };
}
