// Metrics of the Modbus source.
import type { HistogramDeclaration, MetricDeclaration } from "../../../core/runtime.ts";

/** `outcome`: ok, exception, timeout (also if the device closed the connection), contested (see `Result`). */
export const requestsTotal: MetricDeclaration<"source" | "unit" | "outcome"> = {
  name: "source_modbus_requests_total",
  help: "Modbus requests by outcome",
  labels: ["source", "unit", "outcome"],
};

export const exceptionsTotal: MetricDeclaration<"source" | "unit" | "code"> = {
  name: "source_modbus_exceptions_total",
  help: "Modbus exceptions by code",
  labels: ["source", "unit", "code"],
};

export const discardedTotal: MetricDeclaration<"source"> = {
  name: "source_modbus_discarded_replies_total",
  help: "Modbus replies thrown away: late, or not what was asked for",
  labels: ["source"],
};

export const reconnectsTotal: MetricDeclaration<"source"> = {
  name: "source_modbus_reconnects_total",
  help: "Connections opened again on demand after the device had closed one",
  labels: ["source"],
};

export const skippedTotal: MetricDeclaration<"source"> = {
  name: "source_modbus_skipped_polls_total",
  help: "Polls left out because the one before had not ended",
  labels: ["source"],
};

export const droppedTotal: MetricDeclaration<"source"> = {
  name: "source_modbus_dropped_readings_total",
  help: "Readings dropped because the buffer did not take them in time",
  labels: ["source"],
};

export const roundTrip: HistogramDeclaration<"source"> = {
  name: "source_modbus_round_trip_seconds",
  help: "Time from a Modbus request to its answer",
  labels: ["source"],
  buckets: [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5],
};
