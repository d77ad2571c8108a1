// The OTLP export to a collector that fails, refuses or hangs.
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { RecentLines } from "../../src/agent/log/log.ts";
import { startOtlpExport } from "../../src/agent/otlp/exporter.ts";
import { metricsRegistry } from "../../src/agent/process/metrics.ts";
import { Secret } from "../../src/core/secret.ts";
import { eventually } from "../support/eventually.ts";
import { testRuntime } from "../support/runtime.ts";
import { fastClock } from "../support/uploading.ts";

interface Seen {
  readonly path: string;
  readonly authorization: string | undefined;
  readonly lines: readonly string[];
}

async function collector(answer: (response: ServerResponse, seen: Seen) => void) {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = JSON.parse(gunzipSync(Buffer.concat(chunks)).toString());
      const records = body.resourceLogs?.[0].scopeLogs[0].logRecords ?? [];
      const one: Seen = {
        path: request.url ?? "",
        authorization: request.headers.authorization,
        lines: records.map((record: { body: { stringValue: string } }) => record.body.stringValue),
      };
      seen.push(one);
      answer(response, one);
    });
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  return {
    seen,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.dispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function exporting(url: string, metrics = false, caFile?: string) {
  const runtime = testRuntime({ clock: fastClock(500) });
  const recent = new RecentLines();
  const options = {
    url,
    headers: { authorization: new Secret("Bearer canary-41ff") },
    every: 5_000,
    metrics,
    logs: true,
    caFile,
  };
  const registry = metricsRegistry();
  registry.gauge({ name: "lag_seconds", help: "Lag" }).set(1);
  const exporter = await startOtlpExport(
    {
      options,
      metrics: registry,
      identity: { agent: "gw1", version: "0", startMs: 0 },
      logSince: (after) => recent.since(after),
    },
    runtime,
  );
  const log = (msg: string) => recent.add(JSON.stringify({ level: 30, time: new Date().toISOString(), msg }));
  return { runtime, log, [Symbol.asyncDispose]: () => exporter[Symbol.asyncDispose]() };
}

test("lines that a failing collector did not take are sent again, those that it refuses are counted", async () => {
  const answers = [503, 429, 401, 200, 400, 200];
  using service = await collector((response) => void response.writeHead(answers.shift() ?? 200).end("{}"));
  await using agent = await exporting(service.url);
  agent.log("first");
  await eventually(() => answers.length === 2);
  agent.log("second");
  await eventually(() => answers.length === 1);
  agent.log("third");
  await eventually(() => agent.runtime.lines.length === 4);

  expect(service.seen.map(({ lines }) => lines.join())).toEqual([
    "first",
    "first",
    "first",
    "first",
    "second",
    "third",
  ]);
  expect(
    service.seen.every(({ path, authorization }) => path === "/v1/logs" && authorization === "Bearer canary-41ff"),
  ).toBe(true);
  expect(agent.runtime.metric("otlp_dropped_log_records_total")).toBe(1);
  expect(agent.runtime.metric("otlp_exports_total", { outcome: "failed" })).toBe(3);
  // A failure is logged once, not at each attempt.
  expect(agent.runtime.lines.map(({ message }) => message)).toEqual([
    "export failed",
    "exported again",
    "export failed",
    "exported again",
  ]);
  expect(JSON.stringify(agent.runtime.lines)).not.toContain("canary");
});

test("what an export logs itself waits for the next one, so a collector that rejects lines is not flooded", async () => {
  const rejecting = JSON.stringify({ partialSuccess: { rejectedLogRecords: "1" } });
  using service = await collector((response, { path }) => {
    // As the log of an agent does with the line of the exporter.
    if (path === "/v1/logs") agent.log("the collector rejected a part of an export");
    response.writeHead(200).end(rejecting);
  });
  await using agent = await exporting(service.url, true);
  agent.log("first");
  await eventually(() => service.seen.filter(({ path }) => path === "/v1/metrics").length === 3);

  const logs = service.seen.filter(({ path }) => path === "/v1/logs");
  expect(logs.length).toBeLessThanOrEqual(3);
  expect(agent.runtime.lines.map(({ fields, message }) => [message, fields["signal"]])).toEqual([
    ["the collector rejected a part of an export", "metrics"],
    ["the collector rejected a part of an export", "logs"],
  ]);
});

test("the reason of a failure names collector and option as the configuration does", async () => {
  await expect(exporting("http://127.0.0.1:1", false, "/no/such.pem")).rejects.toMatchObject({
    code: "CONFIG_INVALID",
    message: "otlp.caFile /no/such.pem cannot be read: there is no such file",
    hint: "correct otlp.caFile, or let the user of the agent read the file",
  });

  await using agent = await exporting("http://otel.service.invalid:4318");
  agent.log("first");
  await eventually(() => agent.runtime.lines.length > 0);

  expect(agent.runtime.lines[0]?.fields).toMatchObject({ reason: expect.stringContaining("otel.service.invalid") });
});

test("a collector that hangs keeps neither the log nor the end of the agent waiting", async () => {
  using service = await collector(() => {});
  const agent = await exporting(service.url, true);
  await eventually(() => service.seen.length > 0);
  for (let i = 0; i < 10_000; i++) agent.log(`line ${i}`);
  await agent[Symbol.asyncDispose]();

  expect(service.seen.map(({ path }) => path)).toContain("/v1/metrics");
});

test("the last lines are sent when the agent stops", async () => {
  using service = await collector((response) => void response.writeHead(200).end("{}"));
  const agent = await exporting(service.url, true);
  await eventually(() => service.seen.some(({ path }) => path === "/v1/metrics"));
  agent.log("stopping");
  await agent[Symbol.asyncDispose]();

  expect(service.seen.flatMap(({ lines }) => lines)).toEqual(["stopping"]);
});

test("lines that the log has dropped before they were exported are counted, and no line is sent twice", async () => {
  const answers = [503];
  using service = await collector((response) => void response.writeHead(answers.shift() ?? 200).end("{}"));
  await using agent = await exporting(service.url);
  agent.log("first");
  await eventually(() => answers.length === 0);
  for (let i = 0; i < 5_100; i++) agent.log(`line ${i}`);
  await eventually(() => service.seen.flatMap(({ lines }) => lines).includes("line 5099"));

  expect(service.seen.slice(1).flatMap(({ lines }) => lines)).toEqual(
    Array.from({ length: 5_000 }, (_, i) => `line ${i + 100}`),
  );
  expect(service.seen.every(({ lines }) => lines.length <= 500)).toBe(true);
  expect(agent.runtime.metric("otlp_dropped_log_records_total")).toBe(101);
});
