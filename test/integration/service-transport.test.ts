import { request } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { afterAll, expect, test } from "vitest";
import { Secret } from "../../src/core/secret.ts";
import { has } from "../support/platform.ts";
import { basic, integration, password, testService } from "../support/service.ts";

// One service for all tests that leave no data behind.
const shared = await testService();
afterAll(() => shared[Symbol.asyncDispose]());

const emptyInsert = { integration, data: { times: [], series: {} } };
const insertBody = (id: string) =>
  `{"jsonrpc":"2.0","id":${id},"method":"integration.insert","params":${JSON.stringify(emptyInsert)}}`;

test.each(["0", "1", '"1"', '"a\\"b"', "12345678901234567890", "1.50", "[1,[2]]", '{"a":1}', "true"])(
  "the id %s is echoed as it came",
  async (id) => {
    const reply = await shared.post(insertBody(id));
    expect(reply.text).toBe(`{"jsonrpc":"2.0","id":${id},"result":{"signalsByInput":{}}}`);
    const failed = await shared.post(`{"jsonrpc":"2.0","id":${id},"method":"no.such"}`);
    expect(failed.text).toContain(`{"jsonrpc":"2.0","id":${id},"error":{"code":-32601,"message":"Method not found"`);
  },
);

test("a notification is executed and answered 204 without a body, whether its id is absent or null", async () => {
  await using service = await testService();
  const data = { times: ["2026-01-01T00:00:00Z"], series: { a: [1] } };
  for (const id of [{}, { id: null }]) {
    const reply = await service.post(
      JSON.stringify({ jsonrpc: "2.0", ...id, method: "integration.insert", params: { integration, data } }),
    );
    expect([reply.status, reply.text]).toEqual([204, ""]);
  }
  expect((await service.call("integration.insert", { integration, data })).body?.result?.signalsByInput.a.created).toBe(
    false,
  );
});

test.each([
  ["", -32700],
  ["{", -32700],
  ['{"jsonrpc":"2.0","id":1,"method":"integration.insert","params":{"n":NaN}}', -32700],
  ['{"jsonrpc":"2.0","id":1,"method":"integration.insert","params":{"n":Infinity}}', -32700],
  ["[]", -32600],
  [`[${insertBody("1")}]`, -32600],
  ["5", -32600],
  ["null", -32600],
  ['{"id":1,"method":"integration.insert"}', -32600],
  ['{"jsonrpc":"1.0","id":1,"method":"integration.insert"}', -32600],
  ['{"jsonrpc":"2.0","id":1}', -32600],
  ['{"jsonrpc":"2.0","id":1,"method":7}', -32600],
  ['{"jsonrpc":"2.0","id":1,"method":"integration.insert","params":5}', -32600],
  ['{"jsonrpc":"2.0","id":1,"method":"integration.remove"}', -32601],
  ['{"jsonrpc":"2.0","id":1,"method":"insert"}', -32601],
  ['{"jsonrpc":"2.0","id":1,"method":"integration.insert"}', -32602],
  ['{"jsonrpc":"2.0","id":1,"method":"integration.insert","params":[]}', -32602],
  [`${"[".repeat(200_000)}`, -32700],
  [
    `{"jsonrpc":"2.0","id":1,"method":"integration.insert","params":${"[".repeat(90_000)}${"]".repeat(90_000)}}`,
    -32602,
  ],
  [`{"jsonrpc":"2.0","id":1,"method":"integration.insert","params":{"__proto__":{}}}`, -32602],
])("a body that is no good request is answered with its number, HTTP 200 and a trace (%#)", async (body, code) => {
  const reply = await shared.post(body);
  expect(reply.status).toBe(200);
  expect(reply.body?.error?.code).toBe(code);
  expect(reply.body?.error?.data?.trace).toMatch(/^[0-9a-f]{20}$/);
  expect(reply.headers.get("traceparent")).toContain(reply.body?.error?.data?.trace);
});

test("method names are accepted in any case, and admin.selectSignal as admin.selectSignals", async () => {
  await using service = await testService();
  for (const name of ["integration.Insert", "INTEGRATION.INSERT"])
    expect((await service.call(name, emptyInsert)).body?.result).toEqual({ signalsByInput: {} });
  for (const name of ["admin.selectSignal", "Admin.SelectSignals"])
    expect((await service.call(name, { integration })).body?.result).toEqual({});
  expect([...service.counters().keys()]).toEqual(["integration.insert", "admin.selectSignals"]);
});

test("the platform namespace has only its configured name", async () => {
  await using service = await testService({ namespace: "acme" });
  expect((await service.call("acme.selectItems", {})).body?.result).toEqual({});
  expect((await service.call("platform.selectItems", {})).body?.error?.code).toBe(-32601);
});

test("a method or id repeated after the params is refused: the call was admitted by the first", async () => {
  const params = JSON.stringify({ integration, data: { times: [], series: {} } });
  for (const behind of ['"method":"admin.selectSignals"', '"id":2', '"id":null'])
    expect(
      (await shared.post(`{"jsonrpc":"2.0","id":1,"method":"integration.insert","params":${params},${behind}}`)).body
        ?.error,
    ).toMatchObject({ code: -32600 });
});

test("params may be positional, in the order of the specification", async () => {
  await using service = await testService();
  const data = { times: ["2026-01-01T00:00:00Z"], series: { a: [1] } };
  expect((await service.call("integration.insert", [integration, data])).body?.result?.signalsByInput.a.created).toBe(
    true,
  );
  expect((await service.call("integration.insert", [integration, data, 1])).body?.error?.data?.params).toEqual({
    "2": ["takes 2 params"],
  });
});

test("unknown params of a method are ignored", async () => {
  const reply = await shared.call("platform.selectItems", { integration, signals: { include: true }, nonsense: [1] });
  expect(reply.body?.result).toEqual({});
});

test.each([
  [undefined, "no header"],
  [basic(integration, "wrong"), "a wrong password"],
  [basic("c8ktonqsahsmemfs7lv1", password), "an unknown user"],
  ["Basic !!!", "no base64"],
  ["Bearer a.b.c", "a token that was not issued"],
])("with the authorization %s (%s) the answer is 401", async (authorization, _why) => {
  const reply = await fetch(`${shared.url}/rpc`, {
    method: "POST",
    body: insertBody("1"),
    headers: { "content-type": "application/json", ...(authorization ? { authorization } : {}) },
  });
  expect(reply.status).toBe(401);
  expect(reply.headers.get("www-authenticate")).toContain("Bearer");
  expect(await reply.json()).toEqual({ error: "access_denied", error_description: "Unauthorized" });
});

test("an integration touches only its own signals, and needs a grant for the other namespaces", async () => {
  const other = "c8ktonqsahsmemfs7lvg";
  await using service = await testService({
    integrations: [
      { id: integration, password: new Secret(password), grants: [] },
      { id: other, password: new Secret("other"), grants: ["admin"] },
    ],
  });
  const foreign = await service.call("integration.insert", { integration: other, data: { times: [], series: {} } });
  expect([foreign.status, foreign.body?.error?.code]).toEqual([200, -32003]);
  expect((await service.call("admin.selectSignals", { integration })).body?.error).toMatchObject({
    code: -32003,
    message: expect.stringContaining("admin namespace"),
  });
  const headers = { authorization: basic(other, "other") };
  expect((await service.call("admin.selectSignals", { integration }, { headers })).body?.result).toEqual({});
  expect((await service.call("platform.selectItems", {}, { headers })).body?.error?.code).toBe(-32003);
  const data = { times: ["2026-01-01T00:00:00Z"], series: { a: [1] } };
  await service.call("integration.insert", { integration, data });
  const same = await service.call("integration.insert", { integration: other, data }, { headers });
  expect(same.body?.result?.signalsByInput.a.created).toBe(true);
});

test("1.0 has only the integration methods, an absent header means the newest stable version, an unknown one is refused", async () => {
  expect((await shared.call("integration.insert", emptyInsert, { version: "1.0" })).body?.result).toBeDefined();
  for (const method of ["admin.selectSignals", "admin.publishSignals", "platform.selectItems"])
    expect((await shared.call(method, {}, { version: "1.0" })).body?.error?.code).toBe(-32601);
  const newest = await shared.call("integration.insert", emptyInsert, { version: "" });
  expect(newest.headers.get("x-api-version")).toBe("1.1");
  for (const version of ["1.1beta2", "1.1rc1"]) {
    const early = await shared.call("integration.insert", emptyInsert, { version });
    expect(early.headers.get("x-api-version")).toBe("1.1");
  }
  const unknown = await shared.call("integration.insert", emptyInsert, { version: "3.0" });
  expect(unknown.status).toBe(400);
  expect(unknown.text).toContain("1.0, 1.1beta1, 1.1");
});

test("a request may name the whole address, as to a proxy", async () => {
  const { hostname, port } = new URL(shared.url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.end(`GET ${shared.url}/rpc HTTP/1.1\r\nhost: ${hostname}:${port}\r\nconnection: close\r\n\r\n`);
  expect(await text(socket)).toContain("405 Method Not Allowed");
});

test.each([
  ["GET", "/v1/rpc", 405],
  ["PUT", "/v1/rpc", 405],
  ["POST", "/rpc", 404],
  ["POST", "/v1/rpc/", 404],
  ["GET", "/v1", 404],
])("%s %s is answered %i in words", async (method, path, status) => {
  const reply = await fetch(new URL(path, shared.url), { method });
  expect(reply.status).toBe(status);
  expect(await reply.json()).toMatchObject({
    error: expect.any(String),
    error_description: expect.stringContaining("/v1/rpc"),
  });
  if (status === 405) expect(reply.headers.get("allow")).toBe("POST");
});

test.each([
  [{ "content-type": "text/plain" }, 415],
  [{ "content-type": "application/x-www-form-urlencoded" }, 415],
  [{ "content-encoding": "br" }, 415],
  [{ "content-encoding": "gzip" }, 400],
  [{ "content-type": "application/json; charset=utf-8" }, 200],
])("a plain body with %j is answered %i", async (headers, status) => {
  expect((await shared.call("integration.insert", emptyInsert, { headers })).status).toBe(status);
});

test("a gzip body is accepted, and its inflated size counts", async () => {
  const headers = { "content-encoding": "gzip" };
  expect((await shared.post(gzipSync(insertBody("1")), { headers })).body?.result).toEqual({ signalsByInput: {} });
  const bomb = gzipSync(Buffer.alloc(40 * 2 ** 20, " "));
  expect(bomb.length).toBeLessThan(100_000);
  expect((await shared.post(bomb, { headers })).status).toBe(413);
});

const MiB = 2 ** 20;
const sized = (method: string, params: object, bytes: number) => {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  return body + " ".repeat(bytes - body.length);
};

test.each([
  ["integration.insert", emptyInsert, "1.0", 8],
  ["integration.insert", emptyInsert, "1.1beta1", 8],
  ["integration.saveSignals", { integration, inputs: {} }, "1.0", 8],
  ["integration.saveSignals", { integration, inputs: {} }, "1.1beta1", 9],
  ["admin.publishSignals", { integration, itemsBySignal: {} }, "1.1beta1", 9],
  ["integration.saveSignals", { integration, inputs: {} }, "1.1", 8],
] as const)("%s with %j at %s takes %i MiB and not a byte more", async (method, params, version, mib) => {
  expect((await shared.post(sized(method, params, mib * MiB), { version })).body?.result).toBeDefined();
  if (!has.earlyAnswers) return;
  const refused = await shared.post(sized(method, params, mib * MiB + 1), { version });
  expect([refused.status, refused.body]).toMatchObject([413, { error: "payload_too_large" }]);
});

test("the limit applies when the method comes after megabytes of params", async () => {
  const body = `{"params":${JSON.stringify(emptyInsert)},${" ".repeat(8 * MiB)}"jsonrpc":"2.0","id":1,"method":"integration.insert"}`;
  expect((await shared.post(body, { version: "1.1beta1" })).status).toBe(413);
});

test("the limit of insert can be set", async () => {
  await using service = await testService({ maxInsert: 10_000 });
  expect((await service.post(sized("integration.insert", emptyInsert, 10_000))).status).toBe(200);
  expect((await service.post(sized("integration.insert", emptyInsert, 10_001))).status).toBe(413);
});

test("a body that is too large is refused before it is read whole", async () => {
  const url = new URL(`${shared.url}/rpc`);
  const headers = {
    "content-type": "application/json",
    authorization: basic(integration, password),
    "x-api-version": "1.0",
  };
  const answered = (extra: Record<string, string>, write: (sent: ReturnType<typeof request>) => void) =>
    new Promise<number | undefined>((resolve, reject) => {
      const sent = request(url, { method: "POST", headers: { ...headers, ...extra } }, ({ statusCode }) => {
        resolve(statusCode);
        sent.destroy();
      });
      sent.on("error", reject);
      write(sent);
    });
  // With Content-Length the answer comes before any byte of the body.
  expect(await answered({ "content-length": String(100 * MiB) }, (sent) => sent.flushHeaders())).toBe(413);
  const zipped = { "content-length": String(100 * MiB), "content-encoding": "gzip" };
  expect(await answered(zipped, (sent) => sent.flushHeaders())).toBe(413);
  // With Expect: 100-continue the client is not asked to continue.
  expect(
    await answered({ "content-length": String(100 * MiB), expect: "100-continue" }, (sent) => sent.flushHeaders()),
  ).toBe(413);
  // Without Content-Length the answer comes as soon as the limit is exceeded, although the body never ends.
  expect(await answered({}, (sent) => sent.write(Buffer.alloc(8 * MiB + 1, " ")))).toBe(413);
});

test("a client that sends Expect: 100-continue is answered 100", async () => {
  const body = insertBody("1");
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const sent = request(
      `${shared.url}/rpc`,
      {
        method: "POST",
        headers: {
          "content-type": "application/json",
          authorization: basic(integration, password),
          expect: "100-continue",
          "content-length": String(body.length),
        },
      },
      (response) => resolve(response.resume().statusCode),
    );
    sent.on("continue", () => sent.end(body));
    sent.on("error", reject);
  });
  expect(status).toBe(200);
});
