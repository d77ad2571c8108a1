// Dashboard and alert rules use only metrics and labels that exist. monitoring.peer shows that Prometheus accepts them.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { declaredMetrics } from "../support/declared-metrics.ts";

const read = (file: string) => readFileSync(resolve(import.meta.dirname, "../../config", file), "utf8");
/** Labels that Prometheus adds. */
const own = ["instance", "job"];

test.each(["alerts.yaml", "grafana-dashboard.json"])(
  "every metric that %s asks for is declared, a rate only of counters",
  (file) => {
    const text = read(file);
    const declared = new Map(declaredMetrics().map((row) => [row.name, row]));
    const used = [...text.matchAll(/(?:(rate|increase)\()?(tagferry_[a-z0-9_]+)/g)];

    expect(used.length).toBeGreaterThan(8);
    for (const [, over, name = ""] of used) {
      expect(declared.has(name), name).toBe(true);
      if (over) expect(declared.get(name)?.kind, name).toBe("counter");
    }
  },
);

test("the labels used by the dashboard are those of its metrics", () => {
  const labels = new Map(declaredMetrics().map((row) => [row.name, [...row.labels, ...own]]));
  const { panels } = JSON.parse(read("grafana-dashboard.json")) as {
    readonly panels: readonly {
      readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
    }[];
  };
  for (const { expr, legendFormat } of panels.flatMap(({ targets }) => targets)) {
    const known = [...expr.matchAll(/tagferry_\w+/g)].flatMap(([name]) => labels.get(name) ?? []);
    const wanted = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g), ...expr.matchAll(/by \((\w+)(?:, (\w+))?\)/g)].flatMap(
      ([, ...words]) => words.filter((word) => word !== undefined),
    );
    for (const label of wanted) expect(known, expr).toContain(label);
  }
});
