// Estimates points, traffic and buffer time of a configuration, for `check`.
import type { Forecast } from "../core/driver.ts";
import type { TagRule } from "../mapping/options.ts";
import { requestLimits } from "../wire/method.ts";
import type { Config, ConfiguredSource } from "./config.ts";

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
const secondsPerDay = 86_400;

/** `own`: the rules of the agent's own signals. */
export function forecast(config: Config, own: readonly TagRule[] = []): ConfigForecast {
  const sources = config.sources.map((source) => forecastSource(source, config));
  const sourcePoints = sum(sources.map((source) => source.pointsPerSecond ?? 0));
  const ownPointsPerSecond = sum(own.map(pointRate));
  const pointsPerSecond = sourcePoints + ownPointsPerSecond;
  const body =
    sum(config.sources.map((source, index) => bytesPerSecond(source, sources[index]))) +
    // All own signals are measured together.
    bytesPerSecond({ rules: own }, { pointsPerSecond: ownPointsPerSecond, requestsPerSecond: 1 });
  const bytesPerDay = pointsPerSecond === 0 ? 0 : (body + requestBytes) * secondsPerDay;
  const { maxRequestBytes, requestsPerSecond } = requestLimits("integration.insert", config.service.apiVersion);
  const { limits } = config.service;
  const budget =
    Math.min(limits.maxRequest ?? maxRequestBytes, maxRequestBytes) *
    Math.min(limits.requestsPerSecond, requestsPerSecond);
  const hours = config.buffer.maxSize / (pointsPerSecond * diskBytesPerPoint) / 3_600;
  return {
    sources,
    pointsPerSecond,
    ownPointsPerSecond,
    bytesPerDay,
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

/** Bytes of requests a second. Polled tags share timestamps; other tags add a timestamp with every point. */
function bytesPerSecond(
  { rules }: Pick<ConfiguredSource, "rules">,
  known: Pick<SourceForecast, "pointsPerSecond" | "requestsPerSecond"> | undefined,
): number {
  if (known?.pointsPerSecond === undefined) return 0;
  const polled = known.requestsPerSecond !== undefined;
  const times = polled
    ? sum([...new Set(rules.map(({ every }) => every))].map((every) => 1_000 / every))
    : known.pointsPerSecond;
  const idBytes = sum(rules.map(({ input }) => input.length)) / Math.max(1, rules.length);
  // Requests are sent once a second, so a series occurs at most once a second.
  const series = Math.min(known.pointsPerSecond, sum(rules.map((rule) => Math.min(1, pointRate(rule)))));
  return known.pointsPerSecond * valueBytes + times * timeBytes + series * (idBytes + seriesBytes);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
