// Cluster metrics, measured when metrics are read.
import type { MetricDeclaration } from "../../core/runtime.ts";
import type { MetricsRegistry } from "../process/metrics.ts";
import type { Status } from "./status.ts";

const metrics = {
  connected: { name: "cluster_connected", help: "1 while a NATS server is connected, else 0" },
  members: { name: "cluster_members", help: "Agents of the cluster that are alive, this one among them" },
  led: { name: "cluster_delivery_held", help: "1 while an agent of the cluster is known to deliver, else 0" },
  lag: {
    name: "cluster_forward_lag_seconds",
    help: "Time in which as many points arrived as are not in the stream yet",
  },
} as const satisfies Record<string, MetricDeclaration>;

export function measureCluster(registry: MetricsRegistry, status: () => Status["cluster"]): void {
  const connected = registry.gauge(metrics.connected);
  const members = registry.gauge(metrics.members);
  const led = registry.gauge(metrics.led);
  const lag = registry.gauge(metrics.lag);
  registry.beforeText(() => {
    const known = status();
    connected.set(known?.connected ? 1 : 0);
    members.set(known?.members ?? 0);
    led.set(known?.delivers === undefined ? 0 : 1);
    lag.set((known?.forwardLagMs ?? 0) / 1_000);
  });
}
