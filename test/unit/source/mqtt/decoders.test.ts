import { deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import fc from "fast-check";
import { expect, test } from "vitest";
import { epochMicros } from "../../../../src/core/point.ts";
import { type DecoderName, DecoderTable } from "../../../../src/source/mqtt/decoders/decoder.ts";
import {
  bareValue,
  type Compression,
  jsonDocument,
  numberDecoder,
  PayloadError,
} from "../../../../src/source/mqtt/decoders/payload.ts";
import { runs } from "../../../support/property.ts";

const now = epochMicros(Date.UTC(2026, 0, 1, 12) * 1_000);

test.each([
  ["21.5", 21.5],
  ["  -3e2\r\n", -300],
  ["\uFEFF+7", 7],
  ["42\0\0", 42],
  [".5", 0.5],
  ["9007199254740993", 9_007_199_254_740_993n],
  ["true", true],
  ["false", false],
  ["ON", "ON"],
  ['"OFF"', "OFF"],
  ["TRUE", "TRUE"],
  ["0x1F", "0x1F"],
  ["", ""],
])("the bare payload %j is %s", (payload, value) => {
  expect(bareValue(Buffer.from(payload))).toBe(value);
});

test.each([
  ["21.5 °C", ".", 21.5],
  ["1.013,25 hPa", ",", undefined],
  ["12,5", ",", 12.5],
  ["1,5e-3", ",", 0.0015],
  ["1.5", ",", 1.5],
  ["1.234", ",", undefined],
  ["-12.345", ",", undefined],
  ["1.234", ".", 1.234],
  ["-7%", ".", -7],
  ["0x1F", ".", 31],
  ["0xFFFFFFFFFFFFFFFF", ".", 18_446_744_073_709_551_615n],
  ["3e2 W", ".", 300],
  ["ON", ".", undefined],
  ["", ".", undefined],
  ["1,5", ".", undefined],
  ["1 2", ".", undefined],
  ["2026-01-01", ".", undefined],
  ["NaN", ".", undefined],
  ["Infinity", ".", undefined],
] as const)("as a number %j with decimal sign %s is %s", (payload, decimal, value) => {
  const read = () => numberDecoder(decimal)(Buffer.from(payload));
  if (value === undefined) expect(read).toThrow(PayloadError);
  else expect(read()).toBe(value);
});

test("in CSV with decimal commas a number with a point and three digits is an error of its field alone", () => {
  const [row] = decode("csv", Buffer.from("1.234;1,5E-3;0.125;1767225600.25"), { separator: ";", decimal: "," }) as [
    unknown[],
  ];
  expect(row).toEqual([expect.any(PayloadError), "1.5E-3", "0.125", "1767225600.25"]);
});

test("lines of CSV are rows, or objects by the names in the first line", () => {
  const text = '2026-01-02 03:04:05.250;12,5;0;;TRUE\r\n"a;""b""";-1,25;x\n';
  expect(decode("csv", Buffer.from(text), { separator: ";", decimal: "," })).toEqual([
    ["2026-01-02 03:04:05.250", "12.5", "0", undefined, "TRUE"],
    ['a;"b"', "-1.25", "x"],
  ]);
  expect(decode("csv", Buffer.from("ts,temp\n1,21.5\n2,22"), { header: true })).toEqual([
    { ts: "1", temp: "21.5" },
    { ts: "2", temp: "22" },
  ]);
  expect(() => decode("csv", Buffer.from('"open'))).toThrow(PayloadError);
  expect(decode("csv", Buffer.from('1,2\n"3"4,5\n6,7'))).toEqual([["1", "2"], expect.any(PayloadError), ["6", "7"]]);
  expect(() => decode("csv", Buffer.from('"ts"x,temp\n1,2'), { header: true })).toThrow(PayloadError);
});

test("SenML base names, base times and relative times are resolved", () => {
  const pack =
    '[{"bn":"dev:","bt":1767225600,"n":"temp","v":23.1},{"n":"temp","t":-60,"v":22.9},{"n":"lid","vb":true}]';
  expect(decode("senml", Buffer.from(pack))).toEqual([
    { name: "dev:temp", value: 23.1, time: 1_767_225_600 },
    { name: "dev:temp", value: 22.9, time: 1_767_225_540 },
    { name: "dev:lid", value: true, time: 1_767_225_600 },
  ]);
  expect(decode("senml", Buffer.from('[{"n":"t","t":-5,"v":1}]'))).toEqual([
    { name: "t", value: 1, time: now / 1e6 - 5 },
  ]);
  expect(() => decode("senml", Buffer.from('{"n":"t"}'))).toThrow(PayloadError);
});

test("quotes enclose the text of a field in line protocol, with all its lines, and nothing else", () => {
  const size = '\\ 12"';
  const payload = `disk,size=3.5${size} log="line 1\nline, 2 \\" x=1",used=5i 1\r\n# it is 3.5"\nnext v=2 3`;
  expect(decode("lineProtocol", Buffer.from(payload))).toEqual([
    { measurement: "disk", tags: { size: '3.5 12"' }, field: "log", value: 'line 1\nline, 2 " x=1', time: "1" },
    { measurement: "disk", tags: { size: '3.5 12"' }, field: "used", value: 5, time: "1" },
    { measurement: "next", tags: {}, field: "v", value: 2, time: "3" },
  ]);
  const next = { measurement: "b", tags: {}, field: "v", value: 1 };
  for (const broken of ['a s="open 1\nb v=1', "a\nb v=1", 'a s="1\n2",v=x 1\nb v=1'])
    expect(decode("lineProtocol", Buffer.from(broken))).toEqual([expect.any(PayloadError), next]);
  expect(() => decode("lineProtocol", Buffer.from("a\nv=1"))).toThrow(PayloadError);
});

test("a base value of SenML adds no binary rounding error", () => {
  const sums = [
    [0.2, 0.1, 0.3],
    [1.1, 0.1, 1.2],
    [-5, 0.25, -4.75],
    [23.10000038146973, 20, 43.10000038146973],
    [9_007_199_254_740_991, 1, 9_007_199_254_740_992],
    [1e-7, 1, 1.0000001],
  ];
  const pack = sums.map(([v, bv]) => ({ n: "a", bv, v }));
  expect(decode("senml", Buffer.from(JSON.stringify(pack)))).toMatchObject(sums.map(([, , value]) => ({ value })));
});

test("a SenML value that is no number costs its record only, and a large integer keeps its digits", () => {
  const pack =
    '[{"bt":1767225600,"n":"a","v":9007199254740993},{"n":"b","v":null},{"n":"c","v":1e400},{"n":"d","bv":2,"v":1}]';
  expect(decode("senml", Buffer.from(pack))).toMatchObject([
    { name: "a", value: 9_007_199_254_740_993n },
    { name: "b", value: null },
    { name: "c", value: Number.POSITIVE_INFINITY },
    { name: "d", value: 3 },
  ]);
});

test("a malformed SenML record costs itself only, unless it may name the others or give them their time", () => {
  const of = (pack: string) => decode("senml", Buffer.from(pack));
  expect(of('[{"bt":1767225600,"n":"a","v":1},{"n":5,"v":2},"x",{"n":"c","v":3}]')).toEqual([
    { name: "a", value: 1, time: 1_767_225_600 },
    expect.any(PayloadError),
    expect.any(PayloadError),
    { name: "c", value: 3, time: 1_767_225_600 },
  ]);
  for (const base of ['"bn":5', '"bt":"now"', '"bv":null'])
    expect(() => of(`[{"n":"a","v":1},{${base},"v":2},{"n":"c","v":3}]`)).toThrow(PayloadError);
});

test("line protocol gives a record for each field", () => {
  const text =
    'weather\\ x,site=north\\,1 temp=21.5,n=3i,on=t,note="a b,c=d" 1767225600123456789\n# comment\ncpu load=0.5\n';
  expect(decode("lineProtocol", Buffer.from(text))).toEqual([
    { measurement: "weather x", tags: { site: "north,1" }, field: "temp", value: 21.5, time: "1767225600123456789" },
    { measurement: "weather x", tags: { site: "north,1" }, field: "n", value: 3, time: "1767225600123456789" },
    { measurement: "weather x", tags: { site: "north,1" }, field: "on", value: true, time: "1767225600123456789" },
    {
      measurement: "weather x",
      tags: { site: "north,1" },
      field: "note",
      value: "a b,c=d",
      time: "1767225600123456789",
    },
    { measurement: "cpu", tags: {}, field: "load", value: 0.5 },
  ]);
  expect(() => decode("lineProtocol", Buffer.from("cpu"))).toThrow(PayloadError);
});

test.each([
  ["gzip", gzipSync],
  ["zlib", deflateSync],
  ["deflate", deflateRawSync],
  ["zstd", zstdCompressSync],
] as const)(
  "a payload compressed by %s is read, and one that swells beyond the limit is refused",
  (compression, pack) => {
    expect(decode("json", pack(Buffer.from('{"v":1}')), { compression })).toEqual({ v: 1 });
    if (compression !== "deflate")
      expect(decode("json", pack(Buffer.from('{"v":1}')), { compression: "auto" })).toEqual({ v: 1 });
    expect(() => decode("json", pack(Buffer.alloc(10_000_000, 32)), { compression })).toThrow(
      new PayloadError("is larger than 1000000 bytes when inflated"),
    );
    expect(() => decode("json", Buffer.from("hello"), { compression })).toThrow(PayloadError);
  },
);

test("an integer beyond the precision of a double is decoded exactly, anywhere in the payload", () => {
  const integer = fc.bigInt({ min: 2n ** 53n, max: 2n ** 64n }).chain((n) => fc.constantFrom(n, -n));
  fc.assert(
    fc.property(fc.string({ maxLength: 40 }), integer, fc.string({ maxLength: 20 }), (before, n, after) => {
      const unsafe = !Number.isSafeInteger(Number(n));
      const text = `{${JSON.stringify(`b${before}`)}:${n},"z":${JSON.stringify(after)}}`;
      const document = jsonDocument(Buffer.from(text));
      expect(document).toEqual({ [`b${before}`]: unsafe ? n : Number(n), z: after });
    }),
    runs(300),
  );
});

test("JSON keeps integers beyond the precision of a double, and does not change texts and fractions", () => {
  const text = '{"a":9007199254740993,"b":"9007199254740993","c":0.1234567890123456,"d":[-18446744073709551615]}';
  expect(jsonDocument(Buffer.from(text))).toEqual({
    a: 9_007_199_254_740_993n,
    b: "9007199254740993",
    c: 0.1234567890123456,
    d: [-18_446_744_073_709_551_615n],
  });
});

test.each([
  ['{"a":', 'is not JSON: {"a":'],
  ["NaN", "is not JSON: NaN"],
  ["", "is not JSON: "],
  ["\u0001{", "is not JSON: ·{"],
])("%j is malformed, with its beginning in the reason", (payload, reason) => {
  expect(() => jsonDocument(Buffer.from(payload))).toThrow(new PayloadError(reason));
});

test("10,000 nested levels with a long number are decoded or refused without a crash", () => {
  const payload = Buffer.from(`${"[".repeat(10_000)}12345678901234567${"]".repeat(10_000)}`);
  try {
    jsonDocument(payload);
  } catch (error) {
    expect(error).toBeInstanceOf(PayloadError);
  }
});

test.each([
  ['{"v":1}\n{"v":2}\n', [{ v: 1 }, { v: 2 }]],
  ['\uFEFF{"v":1}\r\n\r\n[2]\r\n3\0', [{ v: 1 }, [2], 3]],
  ['{"v":1}{"v":[{"w":2}]}[3]4', [{ v: 1 }, { v: [{ w: 2 }] }, [3], 4]],
  ['{\n "v": "}{\\"\n"\n}'.replace('\n"', '"'), [{ v: '}{"' }]],
  ['{"v":1}\n{"v":', [{ v: 1 }, malformed('{"v":')]],
  ["}\n{}", [malformed("}"), {}]],
  ['{"v":1}\nnone\n{"v":3}', [{ v: 1 }, malformed("\nnone"), { v: 3 }]],
  ['{"v":\n{\n "v":2\n}\n{"v":3}', [malformed('{"v":', true), { v: 2 }, { v: 3 }]],
  ['{"v":"1}\n{"v":"{"}', [malformed('{"v":"1}'), { v: "{" }]],
  ["1,\n}", undefined],
  ["\n\n", undefined],
])("documents one after the other, %j", (payload, documents) => {
  const read = () => decode("ndjson", Buffer.from(payload));
  if (documents) expect(read()).toEqual(documents);
  else expect(read).toThrow(PayloadError);
});

test("more than 1,000 malformed lines make the payload malformed", () => {
  const read = (lines: number) => decode("ndjson", Buffer.from(`1\n${"x\n".repeat(lines)}`));
  expect(read(1_000)).toHaveLength(1_001);
  expect(() => read(1_001)).toThrow(PayloadError);
});

const names: readonly DecoderName[] = [
  "bare",
  "json",
  "ndjson",
  "number",
  "text",
  "csv",
  "binary",
  "cbor",
  "msgpack",
  "senml",
  "lineProtocol",
];

test("whatever the bytes are, a decoder returns a value or throws a PayloadError", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
      for (const name of names) {
        try {
          decode(name, Buffer.from(bytes));
        } catch (error) {
          expect(error).toBeInstanceOf(PayloadError);
        }
      }
    }),
    runs(500),
  );
});

test("every JSON document is decoded as by JSON.parse, except for long integers", () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      const rounded = JSON.stringify(jsonDocument(Buffer.from(text)), (_key, value: unknown) =>
        typeof value === "bigint" ? Number(value) : value,
      );
      expect(rounded).toBe(JSON.stringify(JSON.parse(text)));
    }),
    runs(300),
  );
});

test.each([
  ['{"a":NaN,"b":[-Infinity,Infinity,1]}', { a: null, b: [null, null, 1] }],
  ['{"a":"NaN \\"NaN\\" NaN","b":NaN}', { a: 'NaN "NaN" NaN', b: null }],
  ["NaN", null],
  ['{"NaN":1}', { NaN: 1 }],
])("lenient JSON takes %s", (text, document) => {
  expect(decode("json", Buffer.from(text), { lenient: true })).toEqual(document);
  if (text !== '{"NaN":1}') expect(() => decode("json", Buffer.from(text))).toThrow(PayloadError);
});

test.each(['{"a":NaN', '{"a":NaNs}', `"${'\\"'.repeat(200_000)}NaN`])(
  "what is no JSON otherwise stays refused: %#",
  (text) => {
    expect(() => decode("json", Buffer.from(text), { lenient: true })).toThrow(PayloadError);
  },
);

function malformed(beginning: string, displaces = false): PayloadError {
  return Object.assign(new PayloadError(`is not JSON: ${beginning.replaceAll("\n", "·")}`), { displaces });
}

function decode(
  name: DecoderName,
  payload: Buffer,
  options: {
    separator?: string;
    header?: boolean;
    decimal?: "." | ",";
    compression?: Compression;
    lenient?: boolean;
  } = {},
): unknown {
  const { separator = ",", header = false, decimal = ".", compression = "none", lenient = false } = options;
  const chosen = { csv: { separator, header }, decimal, compression, lenient };
  return new DecoderTable().get(name, chosen, 1_000_000)(payload, now);
}
