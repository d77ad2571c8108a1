// Metrics of the buffer, computed from its counters.
import type { BufferStats } from "../../core/buffer.ts";
import type { MetricDeclaration, Metrics } from "../../core/runtime.ts";
import { lossReasons } from "./counters/loss-counters.ts";

const counted = {
  appendedPoints: { name: "buffer_appended_points_total", help: "Points written to disk" },
  settledPoints: { name: "buffer_settled_points_total", help: "Points that the service has" },
  refusedPoints: { name: "buffer_refused_points_total", help: "Points that the service refused for good" },
  duplicatePoints: { name: "buffer_duplicate_points_total", help: "Points that came again and were stored once" },
  collidedPoints: {
    name: "buffer_collided_points_total",
    help: "Points whose time held another value: they replace it, or are shifted by 1 µs with sameTime: keep",
  },
} as const satisfies Record<string, MetricDeclaration>;
const measured = {
  bytes: { name: "buffer_size_bytes", help: "Bytes of the segments on disk" },
  segments: { name: "buffer_segments", help: "Segments on disk" },
  unsettledPoints: { name: "buffer_unsettled_points", help: "Points not delivered yet" },
} as const satisfies Record<string, MetricDeclaration>;
const lost = {
  name: "buffer_lost_points_total",
  help: "Points that will never be delivered, since the buffer was created",
  labels: ["reason"],
} as const satisfies MetricDeclaration<"reason">;

/**
 * Updates the metrics from successive snapshots of the counters. Losses count from the creation of the buffer, across
 * restarts. Losses found at startup therefore appear as an increase since the last scrape before it.
 */
export class BufferMetrics {
  readonly #metrics: Metrics;
  readonly #before = new Map<string, number>();

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
    // A series must exist at 0, or `increase()` misses the first step.
    for (const declaration of Object.values(counted)) metrics.counter(declaration).add(0);
    for (const reason of lossReasons) {
      metrics.counter(lost).add(0, { reason });
      this.#before.set(`lost ${reason}`, 0);
    }
  }

  update(stats: BufferStats): void {
    for (const key of keysOf(counted)) this.#metrics.counter(counted[key]).add(this.#since(key, stats[key]));
    for (const { reason, points } of stats.losses)
      this.#metrics.counter(lost).add(this.#since(`lost ${reason}`, points), { reason });
    for (const key of keysOf(measured)) this.#metrics.gauge(measured[key]).set(stats[key]);
  }

  #since(key: string, value: number): number {
    const before = this.#before.get(key) ?? value;
    this.#before.set(key, value);
    return Math.max(0, value - before);
  }
}

function keysOf<Key extends string>(record: Readonly<Record<Key, unknown>>): readonly Key[] {
  return Object.keys(record) as Key[]; // the object has no other keys
}
