// `tagferry check`: every error of a configuration, else what it will cost.
import { resolve } from "node:path";
import { ownTags } from "../../agent/own-signals.ts";
import type { Claims } from "../../config/claims.ts";
import type { Config } from "../../config/config.ts";
import { type ConfigForecast, forecast, type SourceForecast } from "../../config/forecast.ts";
import { type ConfigIssue, formatIssue } from "../../config/issue.ts";
import { configIssues, loadConfig } from "../../config/load.ts";
import type { DeviceCheck } from "../../core/source.ts";
import { formatByteSize } from "../../lib/byte-size.ts";
import { drivers } from "../../source/registry.ts";
import type { Console } from "../terminal/console.ts";
import { type ExitStatus, exitStatus } from "../terminal/exit-status.ts";
import { count, number, percent } from "../terminal/figures.ts";
import { columns, visible } from "../terminal/table.ts";
import { version } from "../terminal/version.ts";
import type { Reached } from "./check-online.ts";
import { type DiskRoom, diskRoom } from "./disk-room.ts";

export interface CheckOptions {
  readonly config: string;
  readonly json?: boolean;
  /** Also asks the service and each source. */
  readonly online?: boolean;
  /** Configurations of agents that run at the same time. */
  readonly with?: readonly string[];
}

/**
 * Resolves with `config` where the file is wrong, after every error was printed; with `online` as `unreachable` or
 * `refused` where the service or a source would not have it, and with `failed` where values would not be stored since
 * another address feeds their Input ID.
 */
export async function check(
  { config: file, json = false, online = false, with: others = [] }: CheckOptions,
  io: Pick<Console, "print" | "environment" | "signal">,
): Promise<ExitStatus> {
  let config: Config;
  try {
    const claims: Claims = new Map();
    // Typed as conf/*.yaml the list has this one in it.
    const inFull = (name: string) => resolve(io.environment.cwd, name);
    const beside = new Map(others.map((other) => [inFull(other), other]));
    beside.delete(inFull(file));
    for (const other of beside.values()) await loadConfig(other, io.environment, drivers, claims);
    config = await loadConfig(file, io.environment, drivers, claims);
  } catch (error) {
    const issues = configIssues(error);
    if (issues.length === 0) throw error;
    if (json) io.print(jsonOf({ ok: false, errors: issues, warnings: [] }));
    else for (const line of [...issues.map(formatIssue), summaryOf(file, issues)]) io.print(line);
    return exitStatus.config;
  }
  const expected = forecast(config, ownTags(config));
  const disk = await diskRoom(config, io.environment);
  if (!json) for (const line of [...report(file, config, expected), ...shortDisk(config, disk)]) io.print(line);
  const reached = online ? await reach(config, io.signal) : [];
  const failed = reached.find(({ ok }) => !ok);
  if (json) {
    const result = { ok: !failed, errors: [], warnings: config.warnings, forecast: expected, disk };
    io.print(jsonOf(online ? { ...result, online: reached } : result));
  } else for (const line of reached.flatMap(reachedLines)) io.print(line);
  return failed?.exit ?? exitStatus.done;
}

/** Loaded when it is needed: a check of the file alone takes no part of the agent. */
async function reach(config: Config, signal: AbortSignal): Promise<readonly Reached[]> {
  const { checkOnline } = await import("./check-online.ts");
  return checkOnline(config, version(), signal);
}

function reachedLines({
  what,
  ms,
  error,
  remedy = "",
  advice,
  devices = [],
  refused = [],
}: Reached): readonly string[] {
  if (error !== undefined) return [visible(`${what}: ${error}`), `  ${remedy}`];
  return [
    `${what}: ${answering(devices)}, ${ms} ms`,
    ...devices.flatMap(deviceLines),
    ...(advice === undefined ? [] : [visible(`  ${advice}`)]),
    ...refused.flatMap((each) => [visible(`  ${each.message}`), visible(`    ${each.remedy}`)]),
  ];
}

function answering(devices: readonly DeviceCheck[]): string {
  const there = devices.filter(({ ok }) => ok).length;
  return there === devices.length ? "answers" : `${there} of ${count(devices.length, "unit")} gave a value`;
}

function deviceLines({ device, ok, text, remedy }: DeviceCheck): readonly string[] {
  return [visible(`  ${device}: ${text}`), ...(ok || remedy === undefined ? [] : [visible(`    ${remedy}`)])];
}

function jsonOf(result: object): string {
  return JSON.stringify(result, undefined, 2);
}

function summaryOf(file: string, issues: readonly ConfigIssue[]): string {
  return `${file}: ${count(issues.length, "error")}`;
}

function report(file: string, config: Config, expected: ConfigForecast): readonly string[] {
  const tags = config.sources.reduce((sum, source) => sum + source.tags.length, 0);
  return [
    ...config.warnings.map(formatIssue),
    `${file} is right: ${count(config.sources.length, "source")}, ${count(tags, "tag")}${
      config.warnings.length === 0 ? "" : `, ${count(config.warnings.length, "warning")}`
    }`,
    ...columns(expected.sources.map(sourceLine)),
    ...totals(config, expected),
  ];
}

function shortDisk({ buffer: { maxSize, reserveFreeDisk } }: Config, disk: DiskRoom | undefined): readonly string[] {
  if (!disk || disk.bufferBytes >= maxSize) return [];
  const { folder, freeBytes, bufferBytes } = disk;
  const kept =
    reserveFreeDisk === 0
      ? ""
      : `, ${formatByteSize(reserveFreeDisk)} of which are left to others (buffer.reserveFreeDisk)`;
  return [
    `warning: the disk of ${folder} has ${formatByteSize(freeBytes)} free${kept}`,
    `  the buffer can grow to ${formatByteSize(bufferBytes)} there, not to ${formatByteSize(maxSize)}: what exceeds that is dropped and counted; make room, or set dataDir to a larger disk`,
  ];
}

/** Above this share of its time a bus has no room for repeats and units that are slow. */
const fullBus = 0.7;

function sourceLine({ name, type, tags, readingsPerSecond, requestsPerSecond, busLoad }: SourceForecast): string[] {
  return [
    name,
    type,
    count(tags, "tag"),
    readingsPerSecond === undefined ? "as messages come" : `${number(readingsPerSecond)} readings/s`,
    requestsPerSecond === undefined ? "" : `${number(requestsPerSecond)} requests/s`,
    busLoad === undefined
      ? ""
      : `bus ${percent(busLoad)} busy${busLoad > fullBus ? ": too much, polls will be left out" : ""}`,
  ];
}

function totals(
  { buffer }: Config,
  { pointsPerSecond, ownPointsPerSecond, bytesPerDay, bufferHours, budgetShare, unknown }: ConfigForecast,
): string[] {
  const without = unknown.length === 0 ? "" : `, not counting ${unknown.join(", ")}`;
  const own = ownPointsPerSecond === 0 ? "" : `, ${number(ownPointsPerSecond)} of them the agent's own signals,`;
  if (bufferHours === undefined) return [`the buffer keeps ${formatByteSize(buffer.maxSize)}${without}`];
  return [
    `at most ${number(pointsPerSecond)} points/s${own} and about ${formatByteSize(bytesPerDay)} a day to the service, ${percent(budgetShare)} of what its limits allow${without}`,
    `an outage of about ${number(bufferHours)} hours fits into the buffer (${formatByteSize(buffer.maxSize)})`,
    ...(budgetShare > 0.8
      ? ["this leaves little to catch up with after an outage: read less often, or use report"]
      : []),
  ];
}
