// Metrics of the cluster as one agent reports them.
import { expect, test } from "vitest";
import { metricsRegistry } from "../../../src/agent/process/metrics.ts";
import { measureCluster } from "../../../src/agent/status/gauges.ts";
import type { ClusterStatus } from "../../../src/agent/upkeep/cluster-delivery.ts";

test("the metrics count the shared sources that this agent reads, and those without a reader", async () => {
  const agent = (node: string, reads: readonly string[], aliveMs: number | undefined) => ({
    node,
    version: "1",
    offers: ["hall", "line", "meter"],
    prefers: [],
    reads: [...reads],
    aliveMs,
  });
  const text = await textOf({
    // The agent gw3 has disappeared.
    agents: [agent("gw1", ["hall", "own"], 1), agent("gw2", ["line"], 1), agent("gw3", ["meter"], undefined)],
  });
  expect(text).toMatch(/^tagferry_cluster_sources_read 1$/m);
  expect(text).toMatch(/^tagferry_cluster_sources_unread 1$/m);
});

test.each([
  ["gw1", 1, 1],
  ["gw2", 1, 0],
  ["no agent", 0, 0],
])(
  "when %s delivers, cluster_delivery_held of gw1 is %d and cluster_delivering %d",
  async (delivers, held, delivering) => {
    const text = await textOf({ agents: [], ...(delivers !== "no agent" && { delivers }) });
    expect(text).toMatch(new RegExp(`^tagferry_cluster_delivery_held ${held}$`, "m"));
    expect(text).toMatch(new RegExp(`^tagferry_cluster_delivering ${delivering}$`, "m"));
  },
);

function textOf(status: Pick<ClusterStatus, "agents" | "delivers">): Promise<string> {
  const registry = metricsRegistry();
  const others = { connected: true, hasQuorum: true, members: 2, sameName: false, forwardLagMs: 0 };
  measureCluster(registry, "gw1", () => ({ ...others, ...status }));
  return registry.text();
}
