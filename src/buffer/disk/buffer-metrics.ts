// The counters of the buffer, taken from its books.
import type { BufferStats } from "../../core/buffer.ts";
import type { Metrics } from "../../core/runtime.ts";

const counted = ["appendedPoints", "settledPoints", "refusedPoints", "duplicatePoints", "collidedPoints"] as const;

/** Feeds the metrics with the differences between one look at the books and the next. */
export class BufferMetrics {
  readonly #counters;
  readonly #gauges;
  readonly #lost;
  readonly #before = new Map<string, number>();

  constructor(metrics: Metrics) {
    const counter = (name: string, help: string) => metrics.counter({ name, help });
    this.#counters = {
      appendedPoints: counter("buffer_appended_points_total", "Points written to disk."),
      settledPoints: counter("buffer_settled_points_total", "Points that the service has."),
      refusedPoints: counter("buffer_refused_points_total", "Points that the service refused for good."),
      duplicatePoints: counter("buffer_duplicate_points_total", "Points that came again and were stored once."),
      collidedPoints: counter(
        "buffer_collided_points_total",
        "Points moved on by 1 µs, as their time held another value.",
      ),
    };
    this.#gauges = {
      bytes: metrics.gauge({ name: "buffer_size_bytes", help: "Bytes of the segments on disk." }),
      segments: metrics.gauge({ name: "buffer_segments", help: "Segments on disk." }),
      unsettledPoints: metrics.gauge({ name: "buffer_unsettled_points", help: "Points not delivered yet." }),
    };
    this.#lost = metrics.counter({
      name: "buffer_lost_points_total",
      help: "Points that will never be delivered.",
      labels: ["reason"],
    });
  }

  update(stats: BufferStats): void {
    for (const key of counted) this.#counters[key].add(this.#since(key, stats[key]));
    for (const { reason, points } of stats.losses) this.#lost.add(this.#since(`lost ${reason}`, points), { reason });
    this.#gauges.bytes.set(stats.bytes);
    this.#gauges.segments.set(stats.segments);
    this.#gauges.unsettledPoints.set(stats.unsettledPoints);
  }

  #since(key: string, value: number): number {
    const before = this.#before.get(key) ?? value;
    this.#before.set(key, value);
    return Math.max(0, value - before);
  }
}
