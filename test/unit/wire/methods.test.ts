import { expect, test } from "vitest";
import { rpcErrors, rpcResponse } from "../../../src/wire/json-rpc.ts";
import { grantOf, methods, requestLimits, wireName } from "../../../src/wire/method.ts";
import { insertParams } from "../../support/insert-contract.ts";

const integration = "c8ktonqsahsmemfs7lv0";
const MiB = 2 ** 20;

test.each([
  ["integration.insert", "1.0", 8, 1],
  ["integration.insert", "1.1beta1", 8, 1],
  ["integration.insert", "1.1", 8, 1],
  ["integration.saveSignals", "1.0", 8, 1],
  ["integration.saveSignals", "1.1beta1", 9, 1],
  ["integration.saveSignals", "1.1", 8, 1],
  ["admin.publishSignals", "1.1beta1", 9, 10],
  ["admin.publishSignals", "1.1", 8, 5],
  ["admin.selectSignals", "1.1beta1", 8, 10],
  ["platform.selectItems", "1.1beta1", 8, 10],
  ["platform.evaluate", "1.1", 8, 1],
] as const)("%s at %s takes %i MiB and %i a second", (method, version, mib, rate) => {
  expect(requestLimits(method, version)).toEqual({ maxRequestBytes: mib * MiB, requestsPerSecond: rate });
});

test("only the platform methods are renamed, and each namespace but integration needs its grant", () => {
  expect(methods.map((method) => wireName(method, "acme"))).toContain("acme.selectItems");
  expect(wireName("admin.selectSignals", "acme")).toBe("admin.selectSignals");
  expect(methods.map(grantOf)).toEqual([
    undefined,
    undefined,
    "admin",
    "admin",
    "admin",
    "admin",
    "platform",
    "platform",
    "platform",
  ]);
});

test("every error number has one name", () => {
  const codes = Object.values(rpcErrors).map(({ code }) => code);
  expect(new Set(codes).size).toBe(codes.length);
});

test("insert params name the faulty key, length and time by path", () => {
  const result = insertParams.safeParse({
    integration,
    data: { times: ["2026-01-01T00:00:00Z"], series: { "a b": [1], ok: [null], long: [1, 2] } },
  });
  expect(result.error?.issues.map(({ path }) => path.join("."))).toEqual(["data.series.long", "data.series.a b"]);
  expect(insertParams.safeParse({ integration, data: { times: ["now"], series: {} } }).error?.issues[0]?.path).toEqual([
    "data",
    "times",
    0,
  ]);
});

test("a response is read whether it is a result or an error, with or without data", () => {
  const success = { jsonrpc: "2.0", id: 1, result: { signalsByInput: {} }, error: null };
  expect(rpcResponse.parse(success)).toMatchObject({ result: { signalsByInput: {} } });
  const params = { "data.series.a": ["not same length as times"] };
  expect(
    rpcResponse.parse({ jsonrpc: "2.0", id: 1, error: { code: -32602, message: "Invalid params", data: { params } } }),
  ).toMatchObject({ error: { data: { params } } });
  expect(
    rpcResponse.parse({ jsonrpc: "2.0", id: null, error: { code: -32000, message: "no", data: "text" } }),
  ).toMatchObject({
    error: { code: -32000 },
  });
  expect(rpcResponse.safeParse({ jsonrpc: "2.0", id: 1 }).success).toBe(false);
});
