// Sends metrics and log lines to an OpenTelemetry collector by OTLP/HTTP.
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { OtlpOptions } from "../../config/format/config.ts";
import { AgentError, reasonOf, remedyOf } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import { isAbort } from "../../lib/flow/abort.ts";
import { BackOff } from "../../lib/flow/repeat.ts";
import { openHttpPost } from "../../upload/client/http-post.ts";
import type { LogLines } from "../log/log.ts";
import type { MetricSamples, MetricsRegistry } from "../process/metrics.ts";

interface ExporterParts {
  readonly options: OtlpOptions;
  readonly metrics: MetricsRegistry;
  /** See `ClosableLogger.recentSince`. */
  readonly logSince: (after: number) => LogLines;
  readonly identity: OtlpIdentity;
}

const counters = {
  exports: {
    name: "otlp_exports_total",
    help: "Requests to the OpenTelemetry collector, by outcome",
    labels: ["signal", "outcome"],
  },
  dropped: {
    name: "otlp_dropped_log_records_total",
    help: "Log lines that were not exported: too many waited, or the collector refused them",
  },
} as const;

type Signal = "metrics" | "logs";
/** `refused`: sending the same again would not help. */
type Outcome = "accepted" | "refused" | "failed";

const compress = promisify(gzip);
/** What an answer may have; more is of no use. */
const mostAnswerBytes = 64 * 1024;
/** Log lines of one request. */
const mostSent = 500;
/** How long the last lines may take when the agent stops. */
const lastWithinMs = 1_000;

/** The HTTP client names the options of the service, which has the same ones. */
function ownOptions(text: string): string {
  return text.replace(/\bservice\.(?=(?:caFile|url)\b)/g, "otlp.");
}

/** Exports until it is disposed of. Rejects with `CONFIG_INVALID` if `caFile` is unreadable. */
export async function startOtlpExport(parts: ExporterParts, runtime: Runtime): Promise<AsyncDisposable> {
  const { options, metrics, identity, logSince } = parts;
  const log = runtime.log.child({ part: "otlp" });
  const exported = runtime.metrics.counter(counters.exports);
  const dropped = runtime.metrics.counter(counters.dropped);
  /** How many lines of the log are done. Earlier ones are not exported. */
  let done = logSince(0).next;
  await using opened = new AsyncDisposableStack();
  const { caFile } = options;
  const base = options.url.replace(/\/+$/, "");
  const open = async (signal: Signal) => {
    const post = openHttpPost({ url: `${base}/v1/${signal}`, caFile, connections: 1 }, runtime.clock);
    return opened.use(
      await post.catch((cause: unknown) => {
        const hint = remedyOf(cause);
        throw new AgentError("CONFIG_INVALID", ownOptions(reasonOf(cause)), { cause, hint: hint && ownOptions(hint) });
      }),
    );
  };
  const posts = { metrics: await open("metrics"), logs: await open("logs") };
  const headers = Object.fromEntries(Object.entries(options.headers).map(([name, value]) => [name, value.reveal()]));
  const backOff = new BackOff({ minMs: 5_000, maxMs: 60_000, random: runtime.random });
  const failing = new Set<Signal>();
  const rejecting = new Set<Signal>();

  async function send(signal: Signal, body: object, stop: AbortSignal): Promise<Outcome> {
    const outcome = await post(signal, body, stop);
    exported.add(1, { signal, outcome });
    return outcome;
  }

  async function post(signal: Signal, body: object, stop: AbortSignal): Promise<Outcome> {
    const compressed = await compress(JSON.stringify(body));
    const all = { ...headers, "content-type": "application/json", "content-encoding": "gzip" };
    try {
      const { status, text } = await posts[signal].post(compressed, all, mostAnswerBytes, stop);
      if (status >= 200 && status <= 299) {
        const rejected = /"rejected(?:DataPoints|LogRecords)":\s*"?([1-9]\d*)/.exec(text)?.[1];
        if (rejected === undefined) rejecting.delete(signal);
        else {
          if (signal === "logs") dropped.add(Number(rejected));
          if (!rejecting.has(signal))
            log.warn({ signal, rejected: Number(rejected) }, "the collector rejected a part of an export");
          rejecting.add(signal);
        }
        return went(signal);
      }
      failed(signal, `HTTP ${status} from ${base}`);
      // The codes that the OTLP specification permits to retry, and the credentials, which an operator can correct.
      return [401, 403, 408, 429, 502, 503, 504].includes(status) ? "failed" : "refused";
    } catch (error) {
      if (isAbort(error, stop)) throw error;
      failed(signal, ownOptions(reasonOf(error)));
      return "failed";
    }
  }

  function went(signal: Signal): Outcome {
    backOff.reset();
    if (failing.delete(signal)) log.info({ signal }, "exported again");
    return "accepted";
  }

  function failed(signal: Signal, reason: string): void {
    const hint = "check otlp.url, otlp.headers and the collector";
    if (!failing.has(signal)) log.warn({ signal, reason, hint }, "export failed");
    failing.add(signal);
  }

  /**
   * Sends the lines that wait. Those that the export itself logs wait for the next one, or it might never end. False: the
   * collector did not take them; those that the log still has are sent again.
   */
  async function sendLogs(stop: AbortSignal): Promise<boolean> {
    if (!options.logs) return true;
    const { lines, next, missed } = logSince(done);
    dropped.add(missed);
    done = next - lines.length;
    for (let from = 0; from < lines.length; from += mostSent) {
      const some = lines.slice(from, from + mostSent);
      const outcome = await send("logs", logsBody(some, identity, runtime.clock.now() / 1_000), stop);
      if (outcome === "failed") return false;
      if (outcome === "refused") dropped.add(some.length);
      done += some.length;
    }
    return true;
  }

  async function sendMetrics(stop: AbortSignal): Promise<boolean> {
    if (!options.metrics) return true;
    const samples = await metrics.samples();
    return (await send("metrics", metricsBody(samples, identity, runtime.clock.now() / 1_000), stop)) !== "failed";
  }

  const stopping = new AbortController();
  const running = (async () => {
    for (;;) {
      const isWell = (await sendMetrics(stopping.signal)) && (await sendLogs(stopping.signal));
      const waitMs = isWell ? options.every : Math.min(options.every, backOff.next());
      await runtime.clock.sleep(waitMs, stopping.signal);
    }
  })().catch((error: unknown) => {
    if (!isAbort(error, stopping.signal)) log.error({ err: error }, "export ended unexpectedly");
  });
  const owned = opened.move();
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort(new AgentError("SERVICE_UNREACHABLE", "the agent stops"));
      await running;
      if (failing.size === 0) await sendLogs(AbortSignal.timeout(lastWithinMs)).catch(() => false);
      await owned.disposeAsync();
    },
  };
}

// Metrics and log lines in the JSON encoding of OTLP (opentelemetry-proto). 64-bit integers are texts in it.

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
