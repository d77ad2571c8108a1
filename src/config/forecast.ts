// Estimates points, traffic and buffer time of a configuration, for `check`.
import type { Forecast } from "../core/driver.ts";
import type { TagRule } from "../mapping/options.ts";
import { requestLimits } from "../wire/method.ts";
import type { Config, ConfiguredSource } from "./format/config.ts";

export interface SourceForecast extends Forecast {
  readonly name: string;
  readonly type: string;
  readonly tags: number;
  /** Upper bound: every reading is a change. Undefined: the source delivers by event, so it cannot be estimated. */
  readonly pointsPerSecond: number | undefined;
}

export interface ConfigForecast {
  readonly sources: readonly SourceForecast[];
  /** Of the agent itself and of all sources that can be estimated. */
  readonly pointsPerSecond: number;
  /** The share of the agent's own signals. */
  readonly ownPointsPerSecond: number;
  readonly bytesPerDay: number;
  /** Sent and received in 30 days: points, answers, new connections and the comparison of signals. */
  readonly bytesPerMonth: number;
  /** The outage that the buffer can bridge, limited by `maxAge`. Undefined: no load can be estimated. */
  readonly bufferHours: number | undefined;
  /** Used share of the request capacity; above 1 it is exceeded. */
  readonly budgetShare: number;
  /** Names of sources that cannot be estimated. */
  readonly unknown: readonly string[];
}

/** On disk: 8 bytes for the value, at most 8 for the time, 1 or 2 for the input, and a share of the record header. */
const diskBytesPerPoint = 20;
/** In a request: a value and a comma. */
const valueBytes = 7;
/** A quoted timestamp and a comma. */
const timeBytes = 31;
/** Quotes, colon and brackets around the values of a series. */
const seriesBytes = 6;
/** A request without its points, including HTTP headers. */
const requestBytes = 400;
/** An answer without its series, including HTTP headers. */
const answerBytes = 300;
/** A series in an answer, without its Input ID: `"":{"id":"<20 characters>","created":false},`. */
const answeredBytes = 49;
/** Of a resumed TLS connection with a certificate of 2,048 bits, both directions (measured: 1,991 and 1,351). */
const connectionBytes = 3_400;
/** Requests further apart than this need a connection each (`connections.ts`). */
const reusedWithinMs = 50_000;
/** A signal in the answer to `admin.selectSignals`, with an item. */
const comparedBytes = 500;
const secondsPerDay = 86_400;
const daysPerMonth = 30;

/** `own`: the rules of the agent's own signals. */
export function forecast(config: Config, own: readonly TagRule[] = []): ConfigForecast {
  const sources = config.sources.map((source) => forecastSource(source, config));
  const sourcePoints = sum(sources.map((source) => source.pointsPerSecond ?? 0));
  const ownPointsPerSecond = sum(own.map(pointRate));
  const pointsPerSecond = sourcePoints + ownPointsPerSecond;
  const { limits, interval } = config.service;
  const traffic = [
    ...config.sources.map((source, index) => trafficPerSecond(source, sources[index], interval)),
    // All own signals are measured together.
    trafficPerSecond({ rules: own }, { pointsPerSecond: ownPointsPerSecond, requestsPerSecond: 1 }, interval),
  ];
  const body = sum(traffic.map(({ sent }) => sent));
  const requests = 1_000 / interval;
  const bytesPerDay = pointsPerSecond === 0 ? 0 : (body + requestBytes * requests) * secondsPerDay;
  const answers = sum(traffic.map(({ received }) => received)) + answerBytes * requests;
  const isNew = config.service.url.startsWith("https:") && interval > reusedWithinMs;
  const connections = isNew ? connectionBytes * requests : 0;
  const compared = comparedPerSecond(config, own);
  const bytesPerMonth =
    pointsPerSecond === 0 ? 0 : (bytesPerDay + (answers + connections + compared) * secondsPerDay) * daysPerMonth;
  const { maxRequestBytes, requestsPerSecond } = requestLimits("integration.insert", config.service.apiVersion);
  const budget =
    Math.min(limits.maxRequest ?? maxRequestBytes, maxRequestBytes) *
    Math.min(limits.requestsPerSecond, requestsPerSecond);
  const hours = config.buffer.maxSize / (pointsPerSecond * diskBytesPerPoint) / 3_600;
  return {
    sources,
    pointsPerSecond,
    ownPointsPerSecond,
    bytesPerDay,
    bytesPerMonth,
    bufferHours: sourcePoints === 0 ? undefined : Math.min(hours, config.buffer.maxAge / 3_600_000),
    budgetShare: body / budget,
    unknown: sources.filter((source) => source.pointsPerSecond === undefined).map(({ name }) => name),
  };
}

function forecastSource({ name, driver, options, tags, rules }: ConfiguredSource, { agent }: Config): SourceForecast {
  const known = driver.forecast?.({ name, agent: agent.name, stateDir: agent.dataDir, options, tags }) ?? {};
  // A browsed tag stands for many readings. Report by exception passes the same share of each.
  const share = sum(rules.map(pointRate)) / Math.max(Number.MIN_VALUE, sum(rules.map(readingRate)));
  const pointsPerSecond = known.readingsPerSecond === undefined ? undefined : known.readingsPerSecond * share;
  return { name, type: driver.type, tags: tags.length, ...known, pointsPerSecond };
}

function readingRate({ every }: TagRule): number {
  return 1_000 / every;
}

function pointRate({ every, report }: TagRule): number {
  const interval = report === undefined || report === "off" ? 0 : (report.minInterval ?? 0);
  return 1_000 / Math.max(every, interval);
}

/** Of `integration.insert`, in bytes a second without what every request has. */
interface SeriesTraffic {
  readonly sent: number;
  readonly received: number;
}

/** Polled tags share timestamps; other tags add a timestamp with every point. */
function trafficPerSecond(
  { rules }: Pick<ConfiguredSource, "rules">,
  known: Pick<SourceForecast, "pointsPerSecond" | "requestsPerSecond"> | undefined,
  intervalMs: number,
): SeriesTraffic {
  if (known?.pointsPerSecond === undefined) return { sent: 0, received: 0 };
  const polled = known.requestsPerSecond !== undefined;
  const times = polled
    ? sum([...new Set(rules.map(({ every }) => every))].map((every) => 1_000 / every))
    : known.pointsPerSecond;
  const idBytes = sum(rules.map(({ input }) => input.length)) / Math.max(1, rules.length);
  // A series occurs at most once in each request.
  const requests = 1_000 / intervalMs;
  const series = Math.min(known.pointsPerSecond, sum(rules.map((rule) => Math.min(requests, pointRate(rule)))));
  return {
    sent: known.pointsPerSecond * valueBytes + times * timeBytes + series * (idBytes + seriesBytes),
    received: series * (idBytes + answeredBytes),
  };
}

/** Bytes a second of the comparison with the signals that the service has. */
function comparedPerSecond({ service, sources }: Config, own: readonly TagRule[]): number {
  const { check } = service.signals;
  if (check === "off" || service.apiVersion === "1.0") return 0;
  const signals = sum(sources.map(({ rules }) => rules.length)) + own.length;
  return (signals * comparedBytes * 1_000) / check;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
