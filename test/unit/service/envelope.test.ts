import fc from "fast-check";
import { expect, test } from "vitest";
import { scanEnvelope } from "../../../src/service/call/json-bytes.ts";
import { runs } from "../../support/property.ts";

const scan = (text: string) => scanEnvelope(Buffer.from(text));

test.each([
  ['{"jsonrpc":"2.0","id":0,"method":"a.b","params":{"method":"c","id":9}}', "a.b", "0"],
  [' { "params" : [ "}", {"id":1}, "\\"method\\"" ] , "id" : "x\\"y" , "method" : "m" } ', "m", '"x\\"y"'],
  ['{"\\u006dethod":"m","id":1,"id":{"a":[1]}}', "m", '{"a":[1]}'],
  ['{"method":"m","id":null}', "m", "null"],
  ['{"id":12345678901234567890,"method":5}', undefined, "12345678901234567890"],
  ["[1]", undefined, undefined],
  ["", undefined, undefined],
  ['{"method":"m"', "m", undefined],
  ['{"params":{"a":[[[', undefined, undefined],
  ['{"method":"m', undefined, undefined],
])("%s has method %s and id %s", (text, method, id) => {
  expect(scan(text)).toEqual({ method, id });
});

test("the reader stops at params once it has method and ID", () => {
  expect(scan('{"id":1,"method":"a","params":[],"method":"b","id":2}')).toEqual({ method: "a", id: "1" });
  expect(scan('{"method":"a","params":[],"method":"b","id":2}')).toEqual({ method: "b", id: "2" });
});

test("for every JSON object the reader finds what JSON.parse finds", () => {
  const key = fc.oneof(fc.constantFrom("method", "id", "params"), fc.string());
  const value = fc.oneof(fc.string({ unit: "binary" }), fc.jsonValue({ maxDepth: 4 }));
  fc.assert(
    fc.property(fc.dictionary(key, value), fc.nat(3), (object, spaces) => {
      const text = JSON.stringify(object, undefined, spaces);
      const { method, id } = scan(text);
      const parsed = JSON.parse(text) as Record<string, unknown>;
      expect(method).toBe(typeof parsed["method"] === "string" ? parsed["method"] : undefined);
      expect(id === undefined ? undefined : JSON.parse(id)).toEqual(parsed["id"]);
    }),
    runs(300),
  );
});
