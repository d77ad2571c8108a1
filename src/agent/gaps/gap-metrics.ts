// What the gap record counts.
import type { MetricDeclaration } from "../../core/runtime.ts";

export const gapMetrics = {
  gaps: { name: "gap_intervals_total", help: "Intervals in which tags were not recorded", labels: ["source", "cause"] },
  open: { name: "gap_open", help: "Intervals in which tags are not recorded, going on now", labels: ["source"] },
  lost: {
    name: "gap_lost_seconds_total",
    help: "Seconds in which tags were not recorded and that were not filled later",
    labels: ["source", "cause"],
  },
} as const satisfies Record<string, MetricDeclaration>;
