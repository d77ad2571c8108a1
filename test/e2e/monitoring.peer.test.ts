// Prometheus' own tool judges the alert rules, and what a running agent gives out. Debian's package `prometheus` brings it.
import { execFileSync } from "node:child_process";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { startAgent } from "../support/agent-process.ts";
import { declaredMetrics } from "../support/declared-metrics.ts";
import { eventually } from "../support/eventually.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const rules = resolve(import.meta.dirname, "../../config/alerts.yaml");

test("Prometheus takes the alert rules", () => {
  expect(execFileSync("promtool", ["check", "rules", rules], { encoding: "utf8" })).toContain("10 rules found");
});

test("Prometheus finds nothing to object to in what an agent gives out, and all of it is declared", async () => {
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

  // Hints on names, as of the unit, are the tool's exit status 3.
  expect(execFileSync("promtool", ["check", "metrics"], { input: text, encoding: "utf8" })).toBe("");
  const names = new Set(declaredMetrics().map(({ name }) => name));
  const given = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name = ""]) => name);
  expect(given.filter((name) => !names.has(name))).toEqual([]);
  expect(Number(/^tagferry_upload_lag_seconds (\S+)$/m.exec(text)?.[1])).toBeGreaterThan(0);
});
