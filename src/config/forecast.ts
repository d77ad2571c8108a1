// What a configuration will cost: points, traffic, how long the buffer lasts. Estimates, for `check`.
import type { Forecast } from "../core/driver.ts";
import type { TagRule } from "../mapping/options.ts";
import { requestLimits } from "../wire/method.ts";
import type { Config, ConfiguredSource } from "./config.ts";

export interface SourceForecast extends Forecast {
  readonly name: string;
  readonly type: string;
  readonly tags: number;
  /** At most, when every reading is a change. Undefined: messages come as they come. */
  readonly pointsPerSecond: number | undefined;
}

export interface ConfigForecast {
  readonly sources: readonly SourceForecast[];
  /** Of the sources that can be estimated, and of the agent itself. */
  readonly pointsPerSecond: number;
  /** The agent's own signals in it. */
  readonly ownPointsPerSecond: number;
  readonly bytesPerDay: number;
  /** How long an outage the buffer holds; bounded by its `maxAge`. Undefined: nothing fills it that can be estimated. */
  readonly bufferHours: number | undefined;
  /** Share of what requests may carry, 0 to 1 and beyond. */
  readonly budgetShare: number;
  /** Names of sources of which nothing can be said beforehand. */
  readonly unknown: readonly string[];
}

/** On disk: 8 bytes a value, 8 a time at most, 1 or 2 for the input, and a share of the record's header. */
const diskBytesPerPoint = 20;
/** In a request: a value with its comma. */
const valueBytes = 7;
/** A timestamp in quotes with its comma. */
const timeBytes = 31;
/** Quotes, colon and brackets around the values of a series. */
const seriesBytes = 6;
/** The envelope of a request, headers included. */
const requestBytes = 400;
const secondsPerDay = 86_400;

/** `own`: the agent's own signals, a rule for each. */
export function forecast(config: Config, own: readonly TagRule[] = []): ConfigForecast {
  const sources = config.sources.map((source) => forecastSource(source, config));
  const sourcePoints = sum(sources.map((source) => source.pointsPerSecond ?? 0));
  const ownPointsPerSecond = sum(own.map(pointRate));
  const pointsPerSecond = sourcePoints + ownPointsPerSecond;
  const body =
    sum(config.sources.map((source, index) => bytesPerSecond(source, sources[index]))) +
    // They are measured together.
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
  // A browsed tag is many readings: what report by exception lets through is a share of whatever it is.
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

/** Bytes of requests. Tags that are polled share their times; a tag by itself brings its own with every point. */
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
  // With one request a second a series comes once in it, however often it is read.
  const series = Math.min(known.pointsPerSecond, sum(rules.map((rule) => Math.min(1, pointRate(rule)))));
  return known.pointsPerSecond * valueBytes + times * timeBytes + series * (idBytes + seriesBytes);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
