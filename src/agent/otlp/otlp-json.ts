// Metrics and log lines in the JSON encoding of OTLP (opentelemetry-proto). 64-bit integers are texts in it.
import type { MetricSamples } from "../process/metrics.ts";

interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue: string } | { readonly doubleValue: number } | { readonly boolValue: boolean };
}

export interface OtlpIdentity {
  /** `agent.name`. */
  readonly agent: string;
  readonly version: string;
  /** Start of the process, in milliseconds since 1970; counters begin then. */
  readonly startMs: number;
}

function attributesOf(values: Readonly<Record<string, unknown>>): readonly Attribute[] {
  return Object.entries(values).flatMap(([key, value]): Attribute[] => {
    if (value === undefined) return [];
    if (typeof value === "number") return [{ key, value: { doubleValue: value } }];
    if (typeof value === "boolean") return [{ key, value: { boolValue: value } }];
    return [{ key, value: { stringValue: typeof value === "string" ? value : JSON.stringify(value) } }];
  });
}

function nanos(ms: number): string {
  return `${Math.round(ms * 1_000)}000`;
}

function resourceOf({ agent, version }: OtlpIdentity) {
  const attributes = { "service.name": "tagferry", "service.instance.id": agent, "service.version": version };
  return { attributes: attributesOf(attributes) };
}

/** Body for `/v1/metrics`. `nowMs`: time of the samples, in milliseconds since 1970. */
export function metricsBody(metrics: readonly MetricSamples[], identity: OtlpIdentity, nowMs: number): object {
  const times = { startTimeUnixNano: nanos(identity.startMs), timeUnixNano: nanos(nowMs) };
  const { startTimeUnixNano: _start, ...instant } = times;
  const encoded = metrics.flatMap(({ name, help, type, values }): readonly object[] => {
    const points = (at: object) =>
      values.map(({ labels, value }) => ({ attributes: attributesOf(labels), ...at, asDouble: value }));
    const metric = { name, description: help };
    if (values.length === 0) return [];
    if (type === "histogram")
      return [{ ...metric, histogram: { aggregationTemporality: cumulative, dataPoints: histograms(values, times) } }];
    if (type === "gauge") return [{ ...metric, gauge: { dataPoints: points(instant) } }];
    return [{ ...metric, sum: { aggregationTemporality: cumulative, isMonotonic: true, dataPoints: points(times) } }];
  });
  const { version } = identity;
  const scopeMetrics = [{ scope: { name: "tagferry", version }, metrics: encoded }];
  return { resourceMetrics: [{ resource: resourceOf(identity), scopeMetrics }] };
}

const cumulative = 2;

/** Prometheus counts the values up to each bound; OTLP counts those between two bounds. */
function histograms(values: MetricSamples["values"], times: object): readonly object[] {
  const series = new Map<string, { labels: object; buckets: [bound: number, count: number][]; sum: number }>();
  for (const { labels, value, metricName = "" } of values) {
    const { le, ...own } = labels;
    const key = JSON.stringify(own);
    const one = series.get(key) ?? { labels: own, buckets: [], sum: 0 };
    series.set(key, one);
    if (metricName.endsWith("_sum")) one.sum = value;
    else if (le !== undefined) one.buckets.push([le === "+Inf" ? Number.POSITIVE_INFINITY : Number(le), value]);
  }
  return [...series.values()].map(({ labels, buckets, sum }) => {
    const ascending = buckets.toSorted(([a], [b]) => a - b);
    const counts = ascending.map(([, count], i) => count - (ascending[i - 1]?.[1] ?? 0));
    return {
      attributes: attributesOf({ ...labels }),
      ...times,
      count: String(ascending.at(-1)?.[1] ?? 0),
      sum,
      bucketCounts: counts.map(String),
      explicitBounds: ascending.map(([bound]) => bound).filter(Number.isFinite),
    };
  });
}

/** pino's level → number and name of OTLP. */
const severities: Readonly<Record<number, readonly [severityNumber: number, severityText: string]>> = {
  20: [5, "DEBUG"],
  30: [9, "INFO"],
  40: [13, "WARN"],
  50: [17, "ERROR"],
};

/** Body for `/v1/logs`. `lines`: JSON lines of the log. */
export function logsBody(lines: readonly string[], identity: OtlpIdentity, nowMs: number): object {
  const logRecords = lines.map((line) => recordOf(JSON.parse(line) as Readonly<Record<string, unknown>>, nowMs)); // as pino writes them
  const scopeLogs = [{ scope: { name: "tagferry", version: identity.version }, logRecords }];
  return { resourceLogs: [{ resource: resourceOf(identity), scopeLogs }] };
}

function recordOf(line: Readonly<Record<string, unknown>>, nowMs: number) {
  const { level, time, msg, agent: _agent, ...fields } = line;
  const [severityNumber, severityText] = severities[Number(level)] ?? [0, ""];
  const at = Date.parse(String(time));
  return {
    timeUnixNano: nanos(Number.isNaN(at) ? nowMs : at),
    observedTimeUnixNano: nanos(nowMs),
    severityNumber,
    severityText,
    body: { stringValue: String(msg) },
    attributes: attributesOf(fields),
  };
}
