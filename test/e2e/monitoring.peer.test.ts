// promtool checks the alert rules and the metrics of a running agent. Debian's package `prometheus` contains it.
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { lossReasons } from "../../src/buffer/disk/counters/point-counters.ts";
import { startAgent } from "../support/agent-process.ts";
import { declaredMetrics } from "../support/declared-metrics.ts";
import { eventually } from "../support/eventually.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const rules = resolve(import.meta.dirname, "../../config/alerts.yaml");

test("Prometheus loads the alert rules", () => {
  expect(execFileSync("promtool", ["check", "rules", rules], { encoding: "utf8" })).toContain("18 rules found");
});

test.each([
  ["the first loss of a running agent", "0x20 5x30", "22m", 5],
  ["a loss that a start finds after a night without the agent", "0x60 _x600 7x10", "662m", 7],
  ["a second loss that a start finds", "5x60 _x600 7x10", "662m", 2],
])("Prometheus alerts on %s", (_what, values, time, points) => {
  using folder = temporaryFolder();
  const labels = { instance: "gw1", job: "tagferry", reason: "missing" };
  const series = `tagferry_buffer_lost_points_total{instance="gw1",job="tagferry",reason="missing"}`;
  const rule = (at: string, alerts: readonly unknown[]) => ({
    eval_time: at,
    alertname: "TagferryPointsLost",
    exp_alerts: alerts,
  });
  const summary = (lost: number) => ({
    exp_labels: { ...labels, severity: "critical" },
    exp_annotations: expectedAnnotations(lost),
  });
  const test = {
    rule_files: [rules],
    evaluation_interval: "1m",
    tests: [
      {
        interval: "1m",
        input_series: [{ series, values }],
        alert_rule_test: [rule("19m", []), rule(time, [summary(points)])],
      },
    ],
  };
  writeFileSync(folder.file("test.json"), JSON.stringify(test));

  const run = spawnSync("promtool", ["test", "rules", folder.file("test.json")], { encoding: "utf8" });

  expect(run).toMatchObject({ status: 0, stderr: "" });
});

function expectedAnnotations(points: number) {
  const { description = "" } =
    /alert: TagferryPointsLost[^]*?description: "(?<description>.*)"/.exec(readFileSync(rules, "utf8"))?.groups ?? {};
  return { summary: `gw1: ${points} points are lost for good (missing)`, description };
}

test("Prometheus accepts an agent's metrics, and all of them are declared", async () => {
  using folder = temporaryFolder();
  await using agent = await startAgent({
    folder: folder.path,
    configuration: `version: 1
agent: { name: gw1, dataDir: ${folder.path}/data }
http: { listen: 127.0.0.1:0 }
service: { url: "http://127.0.0.1:1/v1", integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: x } } }
sources: { demo: { type: simulator, tags: [{ input: sine, wave: sine }] } }
`,
  });
  const text = await eventually(async () => {
    const metrics = await (await fetch(new URL("/metrics", agent.page))).text();
    return /^tagferry_upload_retrying 1$/m.test(metrics) && metrics;
  }, 30_000);

  // promtool exits with 3 for naming hints, for example about units.
  expect(execFileSync("promtool", ["check", "metrics"], { input: text, encoding: "utf8" })).toBe("");
  const names = new Set(declaredMetrics().map(({ name }) => name));
  const given = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name = ""]) => name);
  expect(given.filter((name) => !names.has(name))).toEqual([]);
  const reasons = [...text.matchAll(/^tagferry_buffer_lost_points_total\{reason="(\w+)"\} 0$/gm)];
  expect(reasons.map(([, reason]) => reason)).toEqual([...lossReasons]);
  expect(Number(/^tagferry_upload_lag_seconds (\S+)$/m.exec(text)?.[1])).toBeGreaterThan(0);
});
