// Which HTTP requests may change the agent.
import { request } from "node:http";
import { expect, test } from "vitest";
import { Secret } from "../../../src/core/secret.ts";
import { openWeb } from "../../../src/web/server.ts";
import { testRuntime } from "../../support/runtime.ts";
import { statusWith } from "../../support/status.ts";

const token = "canary-0123456789abcdef";

async function asked(headers: Readonly<Record<string, string>>, path = "/api/reload", method = "POST") {
  let reloads = 0;
  const runtime = testRuntime();
  await using web = await openWeb(
    {
      listen: { host: "127.0.0.1", port: 0 },
      snapshot: () => statusWith(),
      metrics: async () => "",
      health: () => ({ ok: true }),
      ready: () => ({ ok: true }),
      control: {
        tokens: [new Secret("another-token-of-somebody"), new Secret(token)],
        tokenFile: "/var/lib/tagferry/control.token",
        async reload() {
          reloads++;
          return { ok: true, started: ["a"] };
        },
        retryRejects: async () => ({ ok: false, reason: "this agent does not deliver at present" }),
        log: () => ['{"msg":"ready"}', '{"msg":"connected"}'],
        security: () => ({ root: false }),
        logSince: (after) => ({ lines: ['{"msg":"connected"}'].slice(after), next: 1, missed: 0 }),
        config: () => ({ files: ["/etc/tagferry.yaml"], values: [{ path: "agent.name", value: "gw1" }], sources: [] }),
      },
    },
    runtime,
    new AbortController().signal,
  );
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>();
  const call = request(`${web.url}${path}`, { method, headers }, (response) => {
    let text = "";
    response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
    expect(Object.keys(response.headers).filter((name) => name.startsWith("access-control-"))).toEqual([]);
  });
  call.on("error", reject).end(method === "POST" ? "{}" : undefined);
  const answer = await promise;
  expect(JSON.stringify(runtime.lines)).not.toContain("canary");
  return { ...answer, reloads, logged: runtime.lines.map(({ message }) => message) };
}

const json = { "content-type": "application/json" };
const bearer = { authorization: `Bearer ${token}` };

test("with a token a reload is executed and its result returned", async () => {
  expect(await asked({ ...json, ...bearer })).toEqual({
    status: 200,
    text: '{"ok":true,"started":["a"]}',
    reloads: 1,
    logged: ["authenticated request"],
  });
});

test.for<[string, number, Readonly<Record<string, string>>]>([
  ["no token", 401, json],
  ["a wrong token", 401, { ...json, authorization: "Bearer canary-0123456789abcdeF" }],
  ["a part of a token", 401, { ...json, authorization: "Bearer canary" }],
  ["a password", 401, { ...json, authorization: `Basic ${btoa(`x:${token}`)}` }],
  ["what a form sends", 415, { ...bearer, "content-type": "application/x-www-form-urlencoded" }],
  ["what a form sends as text", 415, { ...bearer, "content-type": "text/plain" }],
  ["no content type", 415, bearer],
  ["another site, as the browser says", 403, { ...json, ...bearer, "sec-fetch-site": "cross-site" }],
  ["a sister site", 403, { ...json, ...bearer, "sec-fetch-site": "same-site" }],
  ["another origin", 403, { ...json, ...bearer, origin: "https://evil.example" }],
  ["an origin that hides", 403, { ...json, ...bearer, origin: "null" }],
  ["another name for this address", 403, { ...json, ...bearer, host: "evil.example" }],
])("refused: %s", async ([, status, headers]) => {
  const { host } = headers;
  // A foreign host name is refused before any other check.
  const logged = host === undefined ? ["refused"] : [];
  expect(await asked(headers)).toMatchObject({ status, reloads: 0, logged });
});

test("a page of the agent itself may reload, with a token", async () => {
  const headers = { ...json, ...bearer, host: "localhost:9", origin: "http://localhost:9" };
  expect(await asked({ ...headers, "sec-fetch-site": "same-origin" })).toMatchObject({ status: 200, reloads: 1 });
});

test("a GET never reloads, and log and diagnostics need a token", async () => {
  expect(await asked(bearer, "/api/reload", "GET")).toMatchObject({ status: 405, reloads: 0 });
  expect(await asked({}, "/api/log", "GET")).toMatchObject({ status: 401 });
  expect(await asked({}, "/api/security", "GET")).toMatchObject({ status: 401 });
  expect(await asked(bearer, "/api/security", "GET")).toMatchObject({ status: 200, text: '{"root":false}' });
  expect(await asked(bearer, "/api/log", "GET")).toMatchObject({
    status: 200,
    text: '{"msg":"ready"}\n{"msg":"connected"}\n',
  });
});

test("configuration and further lines of the log need a token, and a page that repeats a request logs no line", async () => {
  for (const path of ["/api/config", "/api/config/lines?file=/etc/passwd&line=1", "/api/log?after=0"])
    expect(await asked({}, path, "GET")).toMatchObject({ status: 401 });
  const shown = await asked(bearer, "/api/config?search=name", "GET");
  expect(JSON.parse(shown.text)).toMatchObject({
    total: 1,
    rows: [{ path: "agent.name", value: "gw1" }],
    changed: true,
  });
  expect((await asked(bearer, "/api/config?repeated=", "GET")).logged).toEqual([]);
  expect(await asked(bearer, "/api/log?after=1", "GET")).toMatchObject({
    text: '{"lines":[],"next":1,"missed":0}',
    logged: [],
  });
});

test("opening the log page adds no line to the log that it shows, a download does", async () => {
  expect((await asked(bearer, "/api/log?after=0", "GET")).logged).toEqual([]);
  expect((await asked(bearer, "/api/log", "GET")).logged).toEqual(["authenticated request"]);
});

test("no other file than those of the configuration is shown", async () => {
  expect(await asked(bearer, "/api/config/lines?file=/etc/passwd&line=1", "GET")).toMatchObject({
    status: 422,
    text: '{"ok":false,"reason":"this file is not part of the configuration"}',
  });
});

test("the path of the token is shown on this machine only", async () => {
  const { text } = await asked(json);
  expect(JSON.parse(text)).toEqual({
    ok: false,
    reason: "a token is needed: http.token",
    tokenFile: "/var/lib/tagferry/control.token",
  });
});

test("with a token refused points are sent again, and a refusal says why", async () => {
  const { status, text } = await asked({ ...json, ...bearer }, "/api/rejects/retry");
  expect({ status, text }).toEqual({
    status: 422,
    text: '{"ok":false,"reason":"this agent does not deliver at present"}',
  });
  expect((await asked(json, "/api/rejects/retry")).status).toBe(401);
  expect((await asked(bearer, "/api/rejects/retry", "GET")).status).toBe(405);
});
