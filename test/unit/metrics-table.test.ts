// config/metrics.md is generated from the declarations of the metrics in the code.
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { declaredMetrics } from "../support/declared-metrics.ts";

const root = resolve(import.meta.dirname, "../..");

const declared = declaredMetrics();

test("every metric is declared once, named by what it counts with its unit, and has a help text", () => {
  const names = declared.map(({ name }) => name);
  expect(names.length).toBeGreaterThan(40);
  expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
  expect(declared.filter(({ help }) => help.length < 12)).toEqual([]);
  expect(
    names.filter(
      (name) =>
        !/^tagferry_(source|mapping|buffer|upload|cluster|gap|clock|process|build|config|otlp)_[a-z0-9_]+$/.test(name),
    ),
  ).toEqual([]);
});

test("the table is the one in config/metrics.md", async () => {
  const rows = declared.map(
    ({ name, kind, labels, help }) =>
      `| \`${name}\` | ${kind} | ${labels.map((label) => `\`${label}\``).join(", ")} | ${help} |`,
  );
  const table = ["| name | kind | labels | |", "| --- | --- | --- | --- |", ...rows].join("\n");
  const text = `# Metrics

What \`/metrics\` of the agent gives in the Prometheus text format. Counters begin at 0 with each start of the program, except
\`tagferry_buffer_lost_points_total\`, which counts since the buffer was created, so that an alert also sees losses that a start finds. This table is written from the declarations in the code: \`npx vitest run -u --config test/vitest.config.ts test/unit/metrics-table\`.
\`alerts.yaml\` and \`grafana-dashboard.json\` in the same folder use them.

${table}
`;
  await expect(text).toMatchFileSnapshot(join(root, "config/metrics.md"));
});
