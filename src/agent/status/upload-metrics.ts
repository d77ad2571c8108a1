// Upload gauges, set when metrics are read. While delivery fails, no event would update them.
import type { MetricDeclaration } from "../../core/runtime.ts";
import type { MetricsRegistry } from "../process/metrics.ts";
import type { UploadStatus } from "./status.ts";

const metrics = {
  lag: { name: "upload_lag_seconds", help: "How late fresh points are: age of the oldest one that is not delivered" },
  held: {
    name: "upload_held",
    help: "1 while delivery is held: it waits until the operator corrects something, such as credentials; else 0",
  },
  retrying: {
    name: "upload_retrying",
    help: "1 while the service is unreachable: the last request failed and is repeated; else 0",
  },
  budget: { name: "upload_budget_used_ratio", help: "Share of the permitted requests used in the last minute, 0 to 1" },
  drain: {
    name: "upload_backlog_gone_seconds",
    help: "Seconds until the backlog is gone at the rate by which it shrank in the last minute; 0: there is none, or no estimate",
  },
  parked: {
    name: "upload_parked_inputs",
    help: "Inputs that the service refuses, or does not name in its answers; their points wait in the buffer",
    labels: ["reason"],
  },
} as const satisfies Record<string, MetricDeclaration>;

/** Before the first delivery, everything is late by the uptime. */
export function measureUpload(registry: MetricsRegistry, status: () => UploadStatus, uptimeMs: () => number): void {
  const lag = registry.gauge(metrics.lag);
  const held = registry.gauge(metrics.held);
  const retrying = registry.gauge(metrics.retrying);
  const budget = registry.gauge(metrics.budget);
  const drain = registry.gauge(metrics.drain);
  const parked = registry.gauge(metrics.parked);
  registry.beforeText(() => {
    const { state, lagMs, backlog, backlogPoints, budgetShare, parkedInputs } = status();
    lag.set((lagMs ?? (backlogPoints > 0 && state !== "standby" ? uptimeMs() : 0)) / 1_000);
    held.set(state === "held" ? 1 : 0);
    retrying.set(state === "retrying" ? 1 : 0);
    budget.set(budgetShare);
    drain.set((backlog.drainMs ?? 0) / 1_000);
    parked.set(parkedInputs?.refused ?? 0, { reason: "refused" });
    parked.set(parkedInputs?.unconfirmed ?? 0, { reason: "unconfirmed" });
  });
}
