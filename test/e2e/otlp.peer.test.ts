// Metrics and log lines of a running agent, as a real OpenTelemetry collector receives them.
import { expect, test } from "vitest";
import { startAgent } from "../support/agent-process.ts";
import { eventually } from "../support/eventually.ts";
import { otelCollector } from "../support/otel-collector.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** The fields of the collector's output that this test uses. */
interface Passed {
  readonly resourceMetrics?: readonly { readonly scopeMetrics: readonly { readonly metrics: readonly Metric[] }[] }[];
  readonly resourceLogs?: readonly {
    readonly resource: { readonly attributes: readonly unknown[] };
    readonly scopeLogs: readonly { readonly logRecords: readonly Record<string, unknown>[] }[];
  }[];
}
interface Metric {
  readonly name: string;
  readonly sum?: { readonly isMonotonic: boolean; readonly dataPoints: readonly { readonly asDouble: number }[] };
  readonly gauge?: { readonly dataPoints: readonly Record<string, unknown>[] };
}

test("a collector takes every metric of /metrics and every log line, from the first to the last", async () => {
  using folder = temporaryFolder();
  await using collector = await otelCollector();
  const metricsIn = () =>
    (collector.metrics as readonly Passed[])
      .flatMap(({ resourceMetrics = [] }) => resourceMetrics)
      .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics));
  const linesIn = () =>
    (collector.logs as readonly Passed[])
      .flatMap(({ resourceLogs = [] }) => resourceLogs)
      .flatMap(({ scopeLogs }) => scopeLogs.flatMap(({ logRecords }) => logRecords));
  await using agent = await startAgent({
    folder: folder.path,
    configuration: `version: 1
agent: { name: gw, dataDir: ${folder.path}/data }
service: { url: "http://127.0.0.1:1/v1", integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: secret } } }
http: { listen: "127.0.0.1:0" }
otlp: { url: "${collector.url}", every: 5s }
sources: { demo: { type: simulator, every: 1s, tags: [{ input: demo.sine }] } }
`,
  });
  const text = await (await fetch(new URL("/metrics", agent.page))).text();
  const names = [...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name);

  const readings = () => metricsIn().findLast(({ name, sum }) => name === "tagferry_source_readings_total" && sum);
  await eventually(() => (readings()?.sum?.dataPoints[0]?.asDouble ?? 0) > 3, 60_000);
  const passed = new Set(metricsIn().map(({ name }) => name));
  // A metric without a value yet is not exported.
  expect(names.filter((name = "") => !passed.has(name) && new RegExp(`^${name}[ {]`, "m").test(text))).toEqual([]);
  expect(readings()?.sum?.isMonotonic).toBe(true);
  const build = metricsIn().find(({ name }) => name === "tagferry_build_info");
  expect(build?.gauge?.dataPoints[0]).toMatchObject({
    asDouble: 1,
    attributes: expect.arrayContaining([{ key: "version", value: { stringValue: "0.1.0" } }]),
  });

  expect(await agent.stop()).toBe(0);
  await eventually(() => linesIn().some(({ body }) => JSON.stringify(body).includes("stopping")), 10_000);
  const logged = agent.log.map(({ msg }) => msg);
  const arrived = linesIn().map(({ body }) => (body as { stringValue: string }).stringValue);
  expect(arrived).toContain("ready");
  expect(new Set(arrived).size).toBeGreaterThan(2);
  expect(arrived.filter((line) => !logged.includes(line))).toEqual([]);
  expect(linesIn().find(({ body }) => JSON.stringify(body).includes("ready"))).toMatchObject({
    severityNumber: 9,
    severityText: "INFO",
  });
});
