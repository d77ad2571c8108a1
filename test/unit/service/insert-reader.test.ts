import fc from "fast-check";
import { expect, test } from "vitest";
import { atOnce } from "../../../src/lib/flow/in-slices.ts";
import { checkFrame, EncodedFrame } from "../../../src/service/call/check-frame.ts";
import { readInsert as readInsertInSteps } from "../../../src/service/call/insert-reader.ts";
import { Faults, type RpcFault } from "../../../src/service/call/rpc-fault.ts";
import { columnsOf } from "../../support/insert-contract.ts";
import { runs } from "../../support/property.ts";

interface Params {
  readonly data?: unknown;
}

const readInsert = (body: Buffer) => atOnce(readInsertInSteps(body));

/** The result of reading a request: times and values by key, or the error. */
function outcomeOf(request: unknown): unknown {
  const faults = new Faults();
  const frame = checkFrame((request as { params?: Params }).params?.data, "data", faults);
  try {
    faults.throwIfAny();
    return [...frame].map(([key, points]) => [key, columnsOf(points())]);
  } catch (error) {
    return (error as RpcFault).details;
  }
}

const number = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  fc.integer().map(String),
  fc.tuple(fc.bigInt({ min: 0n, max: 10n ** 20n }), fc.nat(24)).map(([digits, scale]) => {
    const text = String(digits).padStart(scale + 1, "0");
    return scale === 0 ? text : `${text.slice(0, -scale)}.${text.slice(-scale)}`;
  }),
  fc.constantFrom(
    "-0",
    "0.0",
    "1E5",
    "1e-7",
    "-1.5e+3",
    "9007199254740993",
    "0.1",
    "123456789.123456789",
    "5e-324",
    "null",
  ),
);
const space = fc.constantFrom("", "", "", " ", "\n\t");

/** A valid insert as any client might write it. */
const insertText = fc
  .record({ length: fc.nat(6), series: fc.nat(4), space, swapped: fc.boolean(), extra: fc.boolean() })
  .chain(({ length, series, space: s, swapped, extra }) =>
    fc
      .tuple(
        fc.array(fc.integer({ min: 0, max: 1e6 }), { minLength: length, maxLength: length }),
        fc.array(fc.array(number, { minLength: length, maxLength: length }), { minLength: series, maxLength: series }),
      )
      .map(([seconds, columns]) => {
        const times = `"times":${s}[${seconds.map((second) => `"${new Date(second * 1_000).toISOString()}"`).join(`,${s}`)}]`;
        const cells = columns.map((values, i) => `"line.${i}"${s}:[${s}${values.join(`${s},`)}]`).join(",");
        const members = [times, `"series":{${cells}${s}}`];
        const data = `"data":${s}{${(swapped ? members.toReversed() : members).join(",")}}`;
        const other = extra ? `,"more":{"a":[1,"ä\\n"]}` : "";
        return `{"jsonrpc":"2.0","id":1,"method":"integration.insert",${s}"params":{"integration":"x",${data}${other}}}${s}`;
      }),
  );

test("the reader gives bit for bit the result of JSON.parse and the checks", () => {
  fc.assert(
    fc.property(insertText, (text) => {
      const read = readInsert(Buffer.from(text));
      const parsed: unknown = JSON.parse(text);
      expect((read?.["params"] as Params | undefined)?.data).toBeInstanceOf(EncodedFrame);
      expect(outcomeOf(read)).toEqual(outcomeOf(parsed));
      expect({ ...read, params: { ...(read?.["params"] as object), data: 0 } }).toEqual({
        ...(parsed as object),
        params: { ...(parsed as { params: object }).params, data: 0 },
      });
    }),
    runs(1_000),
  );
});

test("the reader accepts only valid JSON without faults, however the bytes were changed", () => {
  let understood = 0;
  const change = fc.tuple(
    fc.nat(600),
    fc.constantFrom('"', ",", "0", "1", ".", "-", "[", "]", "{", "}", ":", "e", "n", " ", "\\", "ä", "\u0000", ""),
  );
  fc.assert(
    fc.property(insertText, change, fc.boolean(), (text, [place, char], replace) => {
      const at = place % text.length;
      const changed = text.slice(0, at) + char + text.slice(at + (replace ? 1 : 0));
      const read = readInsert(Buffer.from(changed));
      if (read === undefined) return;
      understood++;
      expect(outcomeOf(read)).toEqual(outcomeOf(JSON.parse(changed)));
    }),
    runs(4_000),
  );
  expect(understood).toBeGreaterThan(400);
});

test.each([
  '{"params":{"data":{"times":["2026-01-01T00:00:00Z"],"series":{"a":[1],"a":[2]}}}}',
  '{"params":{"data":{"times":["2026-01-01T00:00:00Z"],"series":{"a":[01]}}}}',
  '{"params":{"data":{"times":["2026-01-01T00:00:00Z"],"series":{"a":[1.]}}}}',
  '{"params":{"data":{"times":["2026-01-01T00:00:00Z"],"series":{"a":[1e]}}}}',
  '{"params":{"data":{"times":["2026-01-01T00:00:00Z"],"series":{"a":[1e999]}}}}',
  '{"params":{"data":{"times":["2026-01-01T00:00:00Z"],"series":{"a":[1,2]}}}}',
  '{"params":{"data":{"times":["9999-01-01T00:00:00Z"],"series":{"a":[1]}}}}',
  '{"params":{"data":{"times":["now"],"series":{}}}}',
  '{"params":{"data":{"times":[],"series":{}}}} x',
  '{"params":{"data":{"times":[],"series":{}}},"params":{}}',
  '{"params":{"data":{"times":[],"series":{}}},"id":tru}',
])("%s is left to JSON.parse and the checks", (text) => {
  const read = readInsert(Buffer.from(text));
  expect(read).toBeUndefined();
});

test.each([
  [30_000, 4],
  [70_000, 2],
  [200_000, 1],
])("%i rows of %i series, more than one piece of memory holds, keep their values", (rows, count) => {
  const times = Float64Array.from({ length: rows }, (_, i) => (Date.UTC(2026) + i) * 1_000);
  const texts = Array.from(times, (micros) => `"${new Date(micros / 1_000).toISOString()}"`);
  // Doubles, because they take the most memory when encoded.
  const columns = Array.from({ length: count }, (_, s) => times.map((__, i) => Math.sin(i * 7 + s)));
  const series = columns.map((values, s) => `"s${s}":[${values.join(",")}]`).join(",");
  const data = `{"times":[${texts.join(",")}],"series":{${series}}}`;
  // The second time in memory that is reused.
  for (let n = 0; n < 2; n++) {
    const read = readInsert(Buffer.from(`{"params":{"data":${data}}}`));
    const frame = (read?.["params"] as Params | undefined)?.data as EncodedFrame;
    for (const [s, values] of columns.entries()) {
      const stored = columnsOf(frame.series.get(`s${s}`) ?? []);
      expect(Buffer.from(stored.times.buffer).equals(Buffer.from(times.buffer))).toBe(true);
      expect(Buffer.from(stored.values.buffer).equals(Buffer.from(values.buffer))).toBe(true);
    }
  }
});
