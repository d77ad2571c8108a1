// Metrics and log lines in the JSON format of the OTLP specification.
import { expect, test } from "vitest";
import { logsBody, metricsBody } from "../../../src/agent/otlp/exporter.ts";
import { metricsRegistry } from "../../../src/agent/process/metrics.ts";

const identity = { agent: "gw1", version: "0.1.0", startMs: 1_750_000_000_000.5 };
const nowMs = 1_750_000_060_000;
const times = { startTimeUnixNano: "1750000000000500000", timeUnixNano: "1750000060000000000" };
const source = (name: string) => ({ key: "source", value: { stringValue: name } });

test("counters, gauges and histograms have the types, times and buckets of OTLP", async () => {
  const registry = metricsRegistry();
  registry.counter({ name: "points_total", help: "Points", labels: ["source"] }).add(3, { source: "a" });
  registry.gauge({ name: "lag_seconds", help: "Lag" }).set(1.5);
  const trips = registry.histogram({ name: "trip_seconds", help: "Trips", labels: ["source"], buckets: [0.1, 1] });
  for (const seconds of [0.05, 0.06, 0.5, 7]) trips.observe(seconds, { source: "a" });
  trips.observe(0.5, { source: "b" });

  const dataPoint = { attributes: [source("a")], ...times };
  expect(metricsBody(await registry.samples(), identity, nowMs)).toEqual({
    resourceMetrics: [
      {
        resource: {
          attributes: [
            { key: "service.name", value: { stringValue: "tagferry" } },
            { key: "service.instance.id", value: { stringValue: "gw1" } },
            { key: "service.version", value: { stringValue: "0.1.0" } },
          ],
        },
        scopeMetrics: [
          {
            scope: { name: "tagferry", version: "0.1.0" },
            metrics: [
              {
                name: "tagferry_points_total",
                description: "Points",
                sum: { aggregationTemporality: 2, isMonotonic: true, dataPoints: [{ ...dataPoint, asDouble: 3 }] },
              },
              {
                name: "tagferry_lag_seconds",
                description: "Lag",
                gauge: { dataPoints: [{ attributes: [], timeUnixNano: times.timeUnixNano, asDouble: 1.5 }] },
              },
              {
                name: "tagferry_trip_seconds",
                description: "Trips",
                histogram: {
                  aggregationTemporality: 2,
                  dataPoints: [
                    { ...dataPoint, count: "4", sum: 7.61, bucketCounts: ["2", "1", "1"], explicitBounds: [0.1, 1] },
                    {
                      attributes: [source("b")],
                      ...times,
                      count: "1",
                      sum: 0.5,
                      bucketCounts: ["0", "1", "0"],
                      explicitBounds: [0.1, 1],
                    },
                  ],
                },
              },
            ],
          },
        ],
      },
    ],
  });
});

test("a log line keeps its time, level, text and fields", () => {
  const time = "2026-11-23T16:00:00.123Z";
  const line = JSON.stringify({
    level: 40,
    time,
    agent: "gw1",
    source: "a",
    points: 3,
    held: true,
    err: { type: "Error" },
    msg: "lost",
  });
  const body = JSON.parse(JSON.stringify(logsBody([line], identity, nowMs)));
  expect(body.resourceLogs[0].scopeLogs[0].logRecords).toEqual([
    {
      timeUnixNano: `${Date.parse(time)}000000`,
      observedTimeUnixNano: times.timeUnixNano,
      severityNumber: 13,
      severityText: "WARN",
      body: { stringValue: "lost" },
      attributes: [
        source("a"),
        { key: "points", value: { doubleValue: 3 } },
        { key: "held", value: { boolValue: true } },
        { key: "err", value: { stringValue: '{"type":"Error"}' } },
      ],
    },
  ]);
});
