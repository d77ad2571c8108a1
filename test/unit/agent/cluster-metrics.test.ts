// Metrics of the cluster as one agent reports them.
import { expect, test } from "vitest";
import { metricsRegistry } from "../../../src/agent/process/metrics.ts";
import { measureCluster } from "../../../src/agent/status/cluster-metrics.ts";

test("the metrics count the shared sources that this agent reads, and those without a reader", async () => {
  const agent = (node: string, reads: readonly string[], aliveMs: number | undefined) => ({
    node,
    version: "1",
    offers: ["hall", "line", "meter"],
    prefers: [],
    reads: [...reads],
    aliveMs,
  });
  const registry = metricsRegistry();
  measureCluster(registry, "gw1", () => ({
    connected: true,
    hasQuorum: true,
    members: 2,
    // The agent gw3 has disappeared.
    agents: [agent("gw1", ["hall", "own"], 1), agent("gw2", ["line"], 1), agent("gw3", ["meter"], undefined)],
    sameName: false,
    forwardLagMs: 0,
  }));
  const text = await registry.text();
  expect(text).toMatch(/^tagferry_cluster_sources_read 1$/m);
  expect(text).toMatch(/^tagferry_cluster_sources_unread 1$/m);
});
