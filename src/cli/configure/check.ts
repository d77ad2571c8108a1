// `tagferry check`: reports all errors of a configuration, or its forecast.

import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { ownInputRules } from "../../agent/own-signals.ts";
import type { Environment } from "../../config/files/environment.ts";
import { type ConfigForecast, forecast, type SourceForecast } from "../../config/forecast.ts";
import type { Config } from "../../config/format/config.ts";
import { configIssues, loadConfig, locateTags, unreadableFiles } from "../../config/load.ts";
import { formatIssue } from "../../config/nodes/issue.ts";
import type { Claims, RefusedTags } from "../../config/sources/source-config.ts";
import { visible } from "../../lib/text/visible.ts";
import { formatByteSize } from "../../lib/values/byte-size.ts";
import { drivers } from "../../source/registry.ts";
import type { Console } from "../terminal/console.ts";
import { type ExitStatus, exitStatus } from "../terminal/exit-status.ts";
import { columns, count, number, percent, printResult, span } from "../terminal/text.ts";
import type { Reached } from "./check-online.ts";

interface CheckOptions {
  readonly config: string;
  readonly json?: boolean;
  readonly online?: boolean;
  /** Configurations of other agents that run at the same time. */
  readonly with?: readonly string[];
}

/**
 * Resolves with one of these exit statuses:
 * - `config`: the file is invalid; all errors were printed.
 * - `unreachable`, `refused` (with `online`): the service or a source does not answer or refuses.
 * - `failed` (with `online`): values would not be stored, since another address feeds their Input ID.
 */
export async function check(
  { config: file, json = false, online = false, with: others = [] }: CheckOptions,
  io: Pick<Console, "print" | "environment" | "signal">,
): Promise<ExitStatus> {
  let config: Config;
  try {
    const claims: Claims = new Map();
    // A shell expands conf/*.yaml to a list that includes this file.
    const inFull = (name: string) => resolve(io.environment.cwd, name);
    const neighbours = new Map(others.map((other) => [inFull(other), other]));
    neighbours.delete(inFull(file));
    for (const other of neighbours.values()) await loadConfig(other, io.environment, drivers, claims);
    const loaded = await loadConfig(file, io.environment, drivers, claims);
    // Not part of the configuration: a missing file may be there when the agent starts, and on another machine.
    config = { ...loaded, warnings: [...loaded.warnings, ...(await unreadableFiles(file, io.environment))] };
  } catch (error) {
    return printErrors(error, file, json, io);
  }
  const expected = forecast(config, ownInputRules(config));
  const disk = await diskRoom(config, io.environment);
  if (!json) for (const line of [...report(file, config, expected), ...shortDisk(config, disk)]) io.print(line);
  // Loaded on demand: checking the file alone loads no part of the agent.
  const locate = (refused: RefusedTags) => locateTags(file, io.environment, refused);
  const reached = online ? await (await import("./check-online.ts")).checkOnline(config, locate, io.signal) : [];
  const failed = reached.find(({ ok }) => !ok);
  const result = {
    ok: !failed,
    errors: [],
    warnings: config.warnings,
    checksum: config.checksum,
    forecast: expected,
    disk,
  };
  printResult({ json }, online ? { ...result, online: reached } : result, () => reached.flatMap(reachedLines), io);
  return failed?.exit ?? exitStatus.done;
}

/** Prints the errors of an invalid configuration. Throws any other error. */
export function printErrors(error: unknown, file: string, json: boolean, io: Pick<Console, "print">): ExitStatus {
  const issues = configIssues(error);
  if (issues.length === 0) throw error;
  const lines = () => [...issues.map(formatIssue), `${file}: ${count(issues.length, "error")}`];
  printResult({ json }, { ok: false, errors: issues, warnings: [] }, lines, io);
  return exitStatus.config;
}

function reachedLines({
  what,
  ms,
  error,
  remedy = "",
  advice,
  devices = [],
  refused = [],
  refusedTags,
}: Reached): readonly string[] {
  const tags = refusedTags ? tagLines(refusedTags) : [];
  if (error !== undefined) return [visible(`${what}: ${error}`), `  ${remedy}`, ...tags];
  const there = devices.filter(({ ok }) => ok).length;
  const answer = there === devices.length ? "answers" : `${there} of ${count(devices.length, "unit")} gave a value`;
  const { count: gone = 0, of = 0 } = refusedTags ?? {};
  const lacking = gone === 0 ? "" : `, ${gone} of ${count(of, "tag")} ${gone === 1 ? "is" : "are"} refused`;
  return [
    `${what}: ${answer}${lacking}, ${ms} ms`,
    ...[
      ...devices.flatMap((each) => [
        `  ${each.device}: ${each.text}`,
        ...(each.ok || each.remedy === undefined ? [] : [`    ${each.remedy}`]),
      ]),
      ...(advice === undefined ? [] : [`  ${advice}`]),
      ...refused.flatMap((each) => [`  ${each.message}`, `    ${each.remedy}`]),
    ].map(visible),
    ...tags,
  ];
}

function tagLines({ count: all, first }: NonNullable<Reached["refusedTags"]>): readonly string[] {
  const more = all - first.length;
  return [...first.map(formatIssue), ...(more > 0 ? [`  and ${count(more, "more tag")} that are refused`] : [])];
}

function report(file: string, config: Config, expected: ConfigForecast): readonly string[] {
  const tags = config.sources.reduce((sum, source) => sum + source.tags.length, 0);
  return [
    ...config.warnings.map(formatIssue),
    `${file} is valid: ${count(config.sources.length, "source")}, ${count(tags, "tag")}${
      config.warnings.length === 0 ? "" : `, ${count(config.warnings.length, "warning")}`
    }`,
    ...columns(expected.sources.map(sourceLine)),
    ...totals(config, expected),
    `the checksum of this configuration is ${config.checksum}`,
  ];
}

function shortDisk({ buffer: { maxSize, reserveFreeDisk } }: Config, disk: DiskRoom): readonly string[] {
  if (!disk || disk.bufferBytes >= maxSize) return [];
  const { folder, freeBytes, bufferBytes } = disk;
  const reserved = `, ${formatByteSize(reserveFreeDisk)} of which are left to others (buffer.reserveFreeDisk)`;
  const kept = reserveFreeDisk === 0 ? "" : reserved;
  return [
    `warning: the disk of ${folder} has ${formatByteSize(freeBytes)} free${kept}`,
    `  the buffer can grow to ${formatByteSize(bufferBytes)} there, not to ${formatByteSize(maxSize)}: what exceeds that is dropped and counted; make room, or set dataDir to a larger disk`,
  ];
}

/** Above this load, a bus has no room for repeats and slow units. */
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

function totals({ buffer, cluster, sources, service: { interval } }: Config, expected: ConfigForecast): string[] {
  const { pointsPerSecond, ownPointsPerSecond, bytesPerDay, bytesPerMonth, bufferHours, budgetShare, unknown } =
    expected;
  const without = unknown.length === 0 ? "" : `, not counting ${unknown.join(", ")}`;
  const own = ownPointsPerSecond === 0 ? "" : `, ${number(ownPointsPerSecond)} of them the agent's own signals,`;
  if (bufferHours === undefined) return [`the buffer keeps ${formatByteSize(buffer.maxSize)}${without}`];
  return [
    `at most ${number(pointsPerSecond)} points/s${own} and about ${formatByteSize(bytesPerDay)} a day to the service, ${percent(budgetShare)} of what its limits allow${without}`,
    `with a request every ${span(interval)}, about ${formatByteSize(Math.round(bytesPerMonth))} a month sent and received${without}`,
    `an outage of about ${number(bufferHours)} hours fits into the buffer (${formatByteSize(buffer.maxSize)})`,
    ...(cluster ? [streamLine(cluster, pointsPerSecond), ...takeoverLine(cluster, sources)] : []),
    ...(budgetShare > 0.8
      ? ["this leaves little to catch up with after an outage: read less often, or use report"]
      : []),
  ];
}

/** Bytes of a point in the stream, and of the message with the points of a second. Measured, see docs/scaling.md. */
const streamBytes = 1.8;
const messageBytes = 350;
/** Time until another agent delivers, while the servers have a leader. */
const takeoverMs = 4_000;

function streamLine({ maxSize, maxAge, leaseTtl }: NonNullable<Config["cluster"]>, pointsPerSecond: number): string {
  const rate = pointsPerSecond * streamBytes + messageBytes;
  const hours = Math.min(maxSize / rate / 3_600, maxAge / 3_600_000);
  return `this agent adds about ${formatByteSize(Math.round(rate))}/s to the stream of the cluster, which holds about ${number(hours)} hours of that (${formatByteSize(maxSize)}); another agent delivers ${number((leaseTtl + takeoverMs) / 1_000)} s after the one that does is gone`;
}

/** Time until another agent reads a source of one that was killed, in addition to `leaseTtl`. */
const readerTakeoverMs = 2_000;

function takeoverLine({ leaseTtl }: NonNullable<Config["cluster"]>, sources: Config["sources"]): readonly string[] {
  const shared = sources.filter(({ run }) => run !== "here").map(({ name }) => name);
  if (shared.length === 0) return [];
  const after = number((leaseTtl + readerTakeoverMs) / 1_000);
  return [`another agent that has ${shared.join(", ")} reads it about ${after} s after the one that does is gone`];
}

type DiskRoom = Awaited<ReturnType<typeof diskRoom>>;

/** The data folder and the space for the buffer, at most `buffer.maxSize`. Undefined: unknown. */
async function diskRoom({ agent, buffer: { maxSize, reserveFreeDisk } }: Config, environment: Environment) {
  const folder = resolve(environment.cwd, agent.dataDir);
  const freeBytes = await environment.freeDisk?.(folder);
  if (freeBytes === undefined) return undefined;
  const room = freeBytes + (await held(join(folder, "buffer"), environment)) - reserveFreeDisk;
  return { folder, freeBytes, bufferBytes: Math.min(maxSize, Math.max(0, room)) };
}

async function held(buffer: string, environment: Environment): Promise<number> {
  const names = await environment.listFolder(buffer).catch(() => []);
  const files = await Promise.allSettled(names.map((name) => stat(join(buffer, name))));
  return files.reduce((sum, file) => sum + (file.status === "fulfilled" ? file.value.size : 0), 0);
}
