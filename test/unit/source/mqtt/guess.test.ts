import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { epochMicros } from "../../../../src/core/point.ts";
import { guessTags } from "../../../../src/source/mqtt/discovery/guess.ts";

const now = epochMicros(Date.UTC(2026, 5, 1) * 1_000);
const guess = (payload: string | Buffer) =>
  guessTags("a/b", Buffer.from(payload), now).map(({ value, tag: { topic: _topic, ...tag } }) => ({
    ...tag,
    found: value,
  }));

test.each([
  ["21.5", [{ input: "a.b", found: 21.5 }]],
  ["ON", [{ input: "a.b", found: "ON" }]],
  ["21.5 °C", [{ input: "a.b", format: "number", found: 21.5 }]],
  ["12,5", [{ input: "a.b", format: "number", decimal: ",", found: 12.5 }]],
  ["door opened, light on", [{ input: "a.b", found: "door opened, light on" }]],
  [
    "2026-01-02 03:04:05.250;12,5;0;;TRUE",
    [1, 2].map((column) => ({
      input: `a.b.${column}`,
      format: "csv",
      csv: { separator: ";" },
      decimal: ",",
      value: `$[0][${column}]`,
      time: { at: "$[0][0]" },
      found: [12.5, 0][column - 1],
    })),
  ],
  [
    "ts,flow rate\n1767225600,3.5\n1767225601,3.6",
    [
      {
        input: "a.b.flow_rate",
        format: "csv",
        csv: { separator: ",", header: true },
        value: '$[0]["flow rate"]',
        time: { at: '$[0]["ts"]' },
        found: 3.5,
      },
    ],
  ],
  ['[{"bn":"dev:","bt":1767225600,"n":"t","v":23.1}]', [{ input: "a.b.{name}", format: "senml", found: 23.1 }]],
  ['[{"n":5,"v":1},{"n":"t","v":23.1}]', [{ input: "a.b.{name}", format: "senml", found: 23.1 }]],
  [
    '{"vals":[{"id":"101","ts":"2026-05-06T07:08:09Z","val":1.5},{"id":"102","ts":"2026-05-06T07:08:09Z","val":2}]}',
    [
      {
        input: "a.b.vals.{id}",
        value: "$.vals[*].val",
        capture: { id: "$.vals[*].id" },
        time: { at: "$.vals[*].ts" },
        found: 1.5,
      },
    ],
  ],
  ['[{"n":5,"v":1}]', expect.arrayContaining([expect.objectContaining({ value: "$[0].v", found: 1 })])],
  [
    "weather\nweather,room=hall t=21.5,rh=40i 1767225600000000000",
    [{ input: "a.b.{measurement}.{field}", format: "lineProtocol", found: 21.5 }],
  ],
  [
    '{"ts":1767225600,"v":1}\n{"ts":1767225601,"v":2}\n',
    [{ input: "a.b.v", format: "ndjson", value: "$[*].v", each: "sample", time: { at: "$[*].ts" }, found: 1 }],
  ],
])("%j", (payload, tags) => {
  expect(guess(payload)).toEqual(tags);
});

test("a block of samples is one signal, and braces in a topic capture nothing", () => {
  const x = Array.from({ length: 20 }, (_, i) => i);
  const payload = Buffer.from(JSON.stringify({ t0: 1_767_225_600_000, dt_us: 2_500, x }));
  expect(guessTags("a/{b}/c", payload, now).map(({ tag }) => tag)).toContainEqual({
    input: "a._b_.c.x",
    topic: "a/+/c",
    value: "$.x[*]",
    each: "sample",
    time: { at: "$.t0", step: { at: "$.dt_us", unit: "us" } },
  });
});

test("compressed payloads are decompressed, and marked as such", () => {
  expect(guess(gzipSync('{"t":21.5}'))).toEqual([{ input: "a.b.t", compression: "auto", value: "$.t", found: 21.5 }]);
});

test.each([
  ["cbor", "a2617419083661737839"],
  ["msgpack", "82a174cd0836a17385a0"],
])("a map in %s is one of values", (format, payload) => {
  expect(guess(Buffer.from(format === "cbor" ? "a161741908cd" : "81a174cd08cd", "hex"))).toEqual([
    { input: "a.b.t", format, value: "$.t", found: 2_253 },
  ]);
  // Truncated, it is neither CBOR nor MessagePack.
  expect(guess(Buffer.from(payload, "hex"))).toMatchObject([{ format: "binary" }]);
});

test("binary payloads are shown in hexadecimal", () => {
  expect(guess(Buffer.from("010041A80000FF8505", "hex"))).toEqual([
    { input: "a.b", format: "binary", bytes: { at: 0, type: "u8", length: 9 }, found: "bytes 010041A80000FF8505" },
  ]);
});
