import { request } from "node:http";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { z } from "zod";
import type { Status } from "../../../src/agent/status/status.ts";
import { isAgentError } from "../../../src/core/errors.ts";
import type { WebOptions } from "../../../src/web/server.ts";
import { openWeb } from "../../../src/web/server.ts";
import { eventually } from "../../support/eventually.ts";
import { testRuntime } from "../../support/runtime.ts";
import { statusWith, tagWith } from "../../support/status.ts";

const signal = new AbortController().signal;
const paths = [
  "/",
  "/page.js",
  "/page.css",
  "/api/status",
  "/api/view",
  "/api/events",
  "/api/gaps",
  "/api/rejects",
  "/api/certificates",
  "/gaps.js",
  "/metrics",
  "/healthz",
  "/readyz",
  "/no",
];

function open(options: Partial<WebOptions> = {}) {
  const defaults: WebOptions = {
    listen: { host: "127.0.0.1", port: 0 },
    snapshot: () => statusWith(),
    metrics: async () => "# HELP tagferry_up One.\ntagferry_up 1\n",
    health: () => ({ ok: true }),
    ready: () => ({ ok: true }),
  };
  return openWeb({ ...defaults, ...options }, testRuntime(), signal);
}

/** Sends a request with any Host header and method, which `fetch` does not allow. */
function ask(url: string, { method = "GET", host }: { method?: string; host?: string } = {}) {
  return new Promise<{ status: number; body: string; headers: NodeJS.Dict<string | string[]> }>((resolve, reject) => {
    const call = request(url, { method, headers: host === undefined ? {} : { host } }, (response) => {
      const done = (body: string) => resolve({ status: response.statusCode ?? 0, body, headers: response.headers });
      // A stream never ends, so only its status is awaited.
      if (response.headers["content-type"]?.startsWith("text/event-stream")) {
        response.destroy();
        done("");
        return;
      }
      let body = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        body += chunk;
      });
      response.on("end", () => done(body));
    });
    call.on("error", reject).end();
  });
}

test("every route answers its content", async () => {
  await using web = await open();
  const status = await ask(`${web.url}/api/status`);
  expect(JSON.parse(status.body)).toEqual(JSON.parse(JSON.stringify(statusWith())));
  expect(status.headers["content-type"]).toBe("application/json; charset=utf-8");
  const metrics = await ask(`${web.url}/metrics`);
  expect(metrics.body).toContain("tagferry_up 1");
  expect(metrics.headers["content-type"]).toBe("text/plain; version=0.0.4; charset=utf-8");
  expect((await ask(web.url)).body).toContain("<title>Overview</title>");
  expect(await ask(`${web.url}/healthz`)).toMatchObject({ status: 200, body: '{"ok":true}' });
  expect((await ask(`${web.url}/../package.json`)).status).toBe(404);
  expect((await ask(`${web.url}/%2e%2e/server.ts`)).status).toBe(404);
});

test("health and readiness that fail answer 503 with the reason", async () => {
  const reason = "no sync of the disk for 60 s";
  await using web = await open({ health: () => ({ ok: false, reason }), ready: () => ({ ok: false, reason }) });
  for (const path of ["/healthz", "/readyz"]) {
    const { status, body } = await ask(web.url + path);
    expect([status, JSON.parse(body)]).toEqual([503, { ok: false, reason }]);
  }
});

test.each(paths)("%s answers a foreign Host header with 403 and says nothing else", async (path) => {
  await using web = await open();
  const { status, body } = await ask(web.url + path, { host: "evil.example" });
  expect(status).toBe(403);
  expect(body).not.toContain("north-gw1");
  expect((await ask(web.url + path, { host: "localhost:8421" })).status).toBe(path === "/no" ? 404 : 200);
});

test.each(paths)("%s takes GET and HEAD only", async (path) => {
  await using web = await open();
  for (const method of ["POST", "PUT", "DELETE", "OPTIONS"]) {
    const { status, headers } = await ask(web.url + path, { method });
    expect([method, status, headers["allow"]]).toEqual([method, 405, "GET, HEAD"]);
  }
  expect(await ask(web.url + path, { method: "HEAD" })).toMatchObject({ status: path === "/no" ? 404 : 200, body: "" });
});

test.each(paths)("%s is not cached, sniffed or framed", async (path) => {
  await using web = await open();
  const { headers } = await ask(web.url + path);
  expect(headers).toMatchObject({
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
  });
  expect(headers["content-security-policy"]).toMatch(/^default-src 'none';.*frame-ancestors 'none'$/);
  expect(headers["content-security-policy"]).not.toContain("unsafe");
  expect(headers["access-control-allow-origin"]).toBeUndefined();
});

test("a port in use is one clear error", async () => {
  await using web = await open();
  const listen = { host: "127.0.0.1", port: Number(new URL(web.url).port) };
  const error: unknown = await open({ listen }).catch((reason: unknown) => reason);
  expect(isAgentError(error, "PORT_IN_USE") && error.message).toBe(
    `http.listen 127.0.0.1:${listen.port}: the port is in use`,
  );
});

const view = z.object({
  status: z.object({ agent: z.object({ name: z.string() }) }),
  tags: z.object({ matching: z.number(), total: z.number(), rows: z.array(z.object({ value: z.number() })) }),
});

test("a stream has the rows asked for, and again as they change", async () => {
  let value = 0;
  const tags = Array.from({ length: 1_000 }, (_, i) => ({ input: `t${i}` }));
  const snapshot = (): Status => statusWith({ tags: tags.map(({ input }) => tagWith({ input, value: ++value })) });
  await using web = await open({ snapshot });
  const response = await fetch(`${web.url}/api/events?search=t5&first=0&count=2`);
  const views: z.output<typeof view>[] = [];
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    views.push(view.parse(JSON.parse(chunk.replace(/^data: /, ""))));
    if (views.length === 2) break;
  }
  const [first, second] = views;
  expect(first?.tags).toMatchObject({ matching: 111, total: 1_000 });
  expect(first?.tags.rows).toHaveLength(2);
  expect(second?.tags.rows[0]?.value).toBeGreaterThan(first?.tags.rows[0]?.value ?? Number.NaN);
});

test("disposing ends streams and idle connections at once", async () => {
  const web = await open();
  const stream = await fetch(`${web.url}/api/events`);
  const ended = stream.text().catch(() => "cut");
  const idle = connect(Number(new URL(web.url).port), "127.0.0.1");
  const closed = new Promise((resolve) => idle.once("close", resolve).once("error", () => {}));
  await new Promise((resolve) => idle.once("connect", resolve));
  await web[Symbol.asyncDispose]();
  await Promise.all([ended, closed]);
});

test("a failing snapshot is answered 500, and the next request succeeds", async () => {
  let broken = false;
  const snapshot = () => {
    if (broken) throw new Error("secret inside");
    return statusWith();
  };
  await using web = await open({ snapshot });
  broken = true;
  // The previous snapshot is served for up to a quarter of a second.
  const failed = await eventually(async () => {
    const answer = await ask(`${web.url}/api/status`);
    return answer.status !== 200 && answer;
  });
  expect(failed.status).toBe(500);
  expect(failed.body).not.toContain("secret");
  broken = false;
  expect((await ask(`${web.url}/api/status`)).status).toBe(200);
});

test("sampling the history builds no status, and reads only tags that have a history", async () => {
  const taken: number[] = [];
  const noStatus = () => {
    throw new Error("made a status");
  };
  await using web = await open({
    snapshot: noStatus,
    part: noStatus,
    sample: () => ({ ...statusWith(), values: (most) => taken.push(most) }),
  });
  await ask(`${web.url}/healthz`);
  expect(taken).toEqual([10_000]);
});
