import { expect, test } from "vitest";
import { opcuaOptions, opcuaTag } from "../../../../src/source/opcua/config/options.ts";
import { queueSize, requestedCounts } from "../../../../src/source/opcua/publishing/publishing-group.ts";

const parse = (more: object = {}) => opcuaOptions.parse({ url: "opc.tcp://plc", ...more });
const problems = (schema: typeof opcuaOptions | typeof opcuaTag, value: unknown) =>
  schema.safeParse(value).error?.issues.map(({ path, message }) => `${path.join(".")}: ${message}`) ?? [];

test("the port defaults to 4840, and path and brackets are kept", () => {
  expect(parse().url).toBe("opc.tcp://plc:4840");
  expect(parse({ url: "opc.tcp://[::1]:48010/UA/Server" }).url).toBe("opc.tcp://[::1]:48010/UA/Server");
});

test.each(["http://plc:4840", "opc.tcp://", "opc.tcp://a:99999", "opc.tcp://user:pw@plc"])(
  "%s is no address",
  (url) => {
    expect(problems(opcuaOptions, { url })).toEqual([expect.stringContaining("url: must be an address")]);
  },
);

test("a policy that contradicts its mode is an error with its place", () => {
  expect(problems(opcuaOptions, { url: "opc.tcp://a", security: { mode: "sign", policy: "None" } })).toEqual([
    expect.stringContaining("security.policy: must not be None"),
  ]);
});

test("user name and password are required together", () => {
  expect(problems(opcuaOptions, { url: "opc.tcp://a", username: "x" })).toEqual([
    expect.stringContaining("username: "),
  ]);
  const userCertificate = { certFile: "a", keyFile: "b" };
  expect(problems(opcuaOptions, { url: "opc.tcp://a", username: "x", password: "y", userCertificate })).toEqual([
    expect.stringContaining("userCertificate: must not be set together with username"),
  ]);
  expect(problems(opcuaOptions, { url: "opc.tcp://a", password: "x" })).toEqual([
    expect.stringContaining("password: "),
  ]);
});

test.each([
  "ns=3;s=Temp",
  'ns=3;s="DB1"."x"',
  "nsu=urn:plc;s=Temp",
  "i=2258",
  "ns=1;g=09087e75-8e5e-499b-954f-f2a9603db28a",
  "ns=1;b=M/RbKBsRVkePCePcx24oRA==",
])("%s is a NodeId", (node) => {
  expect(problems(opcuaTag, { node })).toEqual([]);
});

test("a field is a path of names and elements", () => {
  expect(opcuaTag.parse({ node: "i=1", field: "A.B[1]" }).field).toEqual([
    { name: "A" },
    { name: "B" },
    { index: [1] },
  ]);
  expect(problems(opcuaTag, { node: "i=1", field: "A..B" })).toEqual([
    expect.stringContaining("as in Temp, Motor.Speed"),
  ]);
});

test("a tag has exactly one address", () => {
  expect(problems(opcuaTag, {})).toHaveLength(1);
  expect(problems(opcuaTag, { node: "i=1", path: "A" })).toHaveLength(1);
  expect(problems(opcuaTag, { path: "A/*" })).toEqual([expect.stringContaining("it is `browse`")]);
  expect(problems(opcuaTag, { path: "A", limit: 3 })).toEqual([expect.stringContaining("limit: ")]);
});

test("the requested limits follow the publishing interval, and a subscription survives three missed keep-alives", () => {
  expect(requestedCounts(parse(), 250)).toEqual({ publishingMs: 250, keepAliveCount: 40, lifetimeCount: 7_200 });
  const slow = parse({ subscription: { publishing: "10s", keepAlive: "1s", lifetime: "1s" } });
  expect(requestedCounts(slow, 10_000)).toEqual({ publishingMs: 10_000, keepAliveCount: 3, lifetimeCount: 9 });
});

test("a queue holds the samples of a publishing interval and of an interruption", () => {
  expect(queueSize(parse(), 1_000, 1_000)).toBe(30);
  expect(queueSize(parse({ subscription: { bridge: "0" } }), 250, 1_000)).toBe(10);
  expect(queueSize(parse(), 1, 1_000)).toBe(1_000);
  expect(queueSize(parse({ subscription: { queue: 3 } }), 1, 1_000)).toBe(3);
});
