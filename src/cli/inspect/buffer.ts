// `tagferry buffer`: contents, damage and export of a data directory, with or without a running agent.
import { join, resolve } from "node:path";
import { setImmediate } from "node:timers/promises";
import { nodeDisk } from "../../buffer/disk/files/disk.ts";
import { bufferInspector, type InspectedPoint, type InspectedSegment, isBuffer } from "../../buffer/disk/inspector.ts";
import { AgentError, codeOf, reasonOf, remedyOf } from "../../core/errors.ts";
import { epochMicros } from "../../core/point.ts";
import { formatByteSize } from "../../lib/values/byte-size.ts";
import { formatTimestamp } from "../../wire/timestamp.ts";
import type { Console } from "../terminal/console.ts";
import { type ExitStatus, exitStatus } from "../terminal/exit-status.ts";
import { columns, count, csvCell, numberCell, printResult, progressBar } from "../terminal/text.ts";

type JsonOption = Parameters<typeof printResult>[0];

type OpenedBuffer = ReturnType<typeof inspectBuffer>;

/** Finds the buffer in `directory` or its subfolder. Throws `BUFFER_MISSING`, `BUFFER_NEWER` or `BUFFER_OLDER`. */
function inspectBuffer(directory: string) {
  const disk = nodeDisk();
  const given = resolve(directory);
  const folder = [given, join(given, "buffer")].find((candidate) => isBuffer(candidate, disk));
  if (folder === undefined) {
    const outer = unreadable(given);
    // The remedy for a file in the agent's data directory would be to move it away. This one was only mistyped.
    if (codeOf(outer) === "ENOTDIR") throw new AgentError("BUFFER_MISSING", `${given} holds no buffer: it is a file`);
    const inner = unreadable(join(given, "buffer"));
    const failure = outer ?? (isMissing(inner) ? undefined : inner);
    const why = failure === undefined ? "" : `: ${isMissing(failure) ? "there is no such folder" : reasonOf(failure)}`;
    throw new AgentError("BUFFER_MISSING", `${given} holds no buffer${why}`, { hint: remedyOf(failure) });
  }
  const inspector = bufferInspector(folder, disk);
  inspector.checkVersion();
  return { folder, inspector };
}

/** The error of listing `folder`. Undefined: none. */
function unreadable(folder: string): unknown {
  try {
    nodeDisk().list(folder);
    return undefined;
  } catch (error) {
    return error;
  }
}

function isMissing(error: unknown): boolean {
  return codeOf(error) === "ENOENT";
}

/** All segments, oldest first, with a progress line. Skips segments that a running agent deletes meanwhile. */
async function* inspectedSegments(
  { inspector }: OpenedBuffer,
  io: Pick<Console, "progress" | "signal">,
): AsyncGenerator<InspectedSegment> {
  const names = inspector.names();
  for (const [i, name] of names.entries()) {
    io.progress(progressBar(i, names.length, "segments"));
    // Reading is synchronous, so yield here for ^C.
    await setImmediate();
    io.signal.throwIfAborted();
    const segment = inspector.segment(name);
    if (segment) yield segment;
  }
  io.progress(undefined);
}

function damageOf({ name, damage, error }: InspectedSegment): readonly string[] {
  if (error !== undefined) return [`${name}: the disk does not give it: ${error}`];
  return damage.map(({ from, to, earliest, latest, offset, bytes }) => {
    const lost = to > from ? `${count(to - from, "point")} lost${between(earliest, latest)}` : "no points lost";
    return `${name}: ${count(bytes, "byte")} damaged at ${offset}, ${lost}`;
  });
}

function lostIn({ damage }: InspectedSegment): number {
  return damage.reduce((sum, { from, to }) => sum + to - from, 0);
}

/** `, from … to …`, or empty if a time is unknown. In microseconds. */
function between(earliest: number | undefined, latest: number | undefined): string {
  if (earliest === undefined || latest === undefined) return "";
  return `, from ${formatTimestamp(epochMicros(earliest))} to ${formatTimestamp(epochMicros(latest))}`;
}

/** Damage is no failure here. Rejects with `BUFFER_MISSING`, `BUFFER_NEWER` or `BUFFER_OLDER`. */
export async function bufferStat(directory: string, options: JsonOption, io: Console): Promise<void> {
  const opened = inspectBuffer(directory);
  const segments: InspectedSegment[] = [];
  for await (const segment of inspectedSegments(opened, io)) segments.push(segment);
  const totals = totalsOf(segments, opened.inspector.accounts?.leased ?? []);
  const { folder, inspector } = opened;
  const result = { folder, ...totals, accounts: inspector.accounts, segments };
  printResult(options, result, () => report(opened, segments, totals), io);
}

/** `leased`: points of dropped segments that are in a request of an agent. */
function totalsOf(segments: readonly InspectedSegment[], leased: readonly { readonly points: number }[]) {
  const sum = (of: (segment: InspectedSegment) => number) => segments.reduce((total, each) => total + of(each), 0);
  const most = (choose: (a: number, b: number) => number, of: (segment: InspectedSegment) => number | undefined) =>
    segments
      .map(of)
      .filter((time) => time !== undefined)
      .reduce<number | undefined>((a, b) => (a === undefined ? b : choose(a, b)), undefined);
  return {
    bytes: sum(({ bytes }) => bytes),
    points: sum(({ points }) => points),
    unsettledPoints: leased.reduce(
      (total, each) => total + each.points,
      sum(({ unsettledPoints }) => unsettledPoints),
    ),
    lostPoints: sum(lostIn),
    earliest: most(Math.min, ({ earliest }) => earliest),
    latest: most(Math.max, ({ latest }) => latest),
  };
}

function report(
  { folder, inspector }: OpenedBuffer,
  segments: readonly InspectedSegment[],
  totals: ReturnType<typeof totalsOf>,
): readonly string[] {
  const { accounts } = inspector;
  const { bytes, points, unsettledPoints, earliest, latest } = totals;
  const damage = segments.flatMap(damageOf);
  return [
    folder,
    ...(accounts ? [`of integration ${accounts.integration}`] : []),
    `${count(points, "point")} in ${count(segments.length, "segment")} (${formatByteSize(bytes)}), ${count(unsettledPoints, "point")} to deliver${between(earliest, latest)}`,
    ...(accounts
      ? [
          `since it was created: ${count(accounts.settledPoints, "point")} delivered, ${count(accounts.refusedPoints, "point")} refused, ${count(accounts.duplicatePoints, "duplicate")}, ${count(accounts.collidedPoints, "point")} shifted by 1 µs`,
          ...accounts.losses
            .filter((loss) => loss.points > 0)
            .flatMap(({ reason, points: lost, from, to, intervals }) => [
              `lost: ${count(lost, "point")}, ${reason}${between(from, to)}`,
              ...(intervals.length > 1
                ? intervals
                    .filter((each) => each.points > 0)
                    .map((each) => `  ${count(each.points, "point")}${between(each.from, each.to)}`)
                : []),
            ]),
          ...accounts.leased.map(
            ({ reason, points: leased, from, to }) =>
              `on their way to the service, and not on disk any more (${reason}): ${count(leased, "point")}${between(from, to)}`,
          ),
        ]
      : ["the counters are damaged or missing: delivered and undelivered points cannot be distinguished"]),
    "",
    ...columns(
      segments.map((segment) => [
        segment.name,
        segment.sealed ? segment.kind : `${segment.kind}, open`,
        formatByteSize(segment.bytes),
        count(segment.points, "point"),
        `${count(segment.unsettledPoints, "point")} to deliver`,
        count(segment.inputs, "input"),
        segment.damage.length > 0 || segment.error !== undefined ? "damaged" : "",
      ]),
    ),
    ...(damage.length > 0 ? ["", ...damage] : []),
  ];
}

/** Resolves with `failed` if anything is damaged. Rejects with `BUFFER_MISSING`, `BUFFER_NEWER` or `BUFFER_OLDER`. */
export async function bufferVerify(directory: string, options: JsonOption, io: Console): Promise<ExitStatus> {
  const opened = inspectBuffer(directory);
  const damage: string[] = [];
  let segments = 0;
  let points = 0;
  let lost = 0;
  let unreadable = 0;
  for await (const segment of inspectedSegments(opened, io)) {
    segments++;
    points += segment.points;
    lost += lostIn(segment);
    if (segment.error !== undefined) unreadable++;
    damage.push(...damageOf(segment));
    if (segment.kind === "damaged header") damage.push(`${segment.name}: its header is damaged, its records are read`);
  }
  if (!opened.inspector.accounts && segments > 0)
    damage.push("the counters are damaged or missing: delivered points will be sent again");
  const ok = damage.length === 0;
  const good = `${count(points, "point")} in ${count(segments, "segment")} can be read`;
  const bad = `${count(lost, "point")} lost${unreadable > 0 ? ` and what is in ${count(unreadable, "unreadable segment")}` : ""}`;
  const result = { ok, segments, unreadable, points, lostPoints: lost, damage };
  printResult(options, result, () => [...damage, `${opened.folder}: ${good}, ${ok ? "no damage" : bad}`], io);
  return ok ? exitStatus.done : exitStatus.failed;
}

interface BufferExportOptions {
  readonly format: "csv" | "ndjson";
  /** Only points that the service does not have, according to the persisted state of the buffer. */
  readonly undelivered?: boolean;
}

/** Writes the points in storage order. Resolves with `failed` if some cannot be read. Rejects as `bufferStat` does. */
export async function bufferExport(
  directory: string,
  { format, undelivered = false }: BufferExportOptions,
  io: Console,
): Promise<ExitStatus> {
  const opened = inspectBuffer(directory);
  const { inspector } = opened;
  const line = format === "csv" ? csvLine : ndjsonLine;
  let exported = 0;
  let missing = 0;
  let unreadable = 0;
  if (format === "csv") await io.write("input,time,value\n");
  for await (const segment of inspectedSegments(opened, io)) {
    if (segment.error !== undefined) unreadable++;
    missing += lostIn(segment);
    let written = 0;
    for (const points of inspector.points(segment.name, !undelivered)) {
      written += points.length;
      if (points.length > 0 && !(await io.write(points.map(line).join("")))) return exitStatus.done;
      io.signal.throwIfAborted();
    }
    exported += written;
    // A segment that a running agent deleted meanwhile is not damage. Points whose input name is lost are.
    const there = undelivered ? segment.unsettledPoints : segment.points;
    if (written < there && inspector.segment(segment.name)) missing += there - written;
  }
  const whole = missing === 0 && unreadable === 0;
  const rest = [
    ...(missing > 0 ? [`${count(missing, "point")} cannot be read`] : []),
    ...(unreadable > 0 ? [`${count(unreadable, "segment")} cannot be read at all`] : []),
  ].join(", ");
  io.complain(
    `${count(exported, "point")} exported${whole ? "" : `; ${rest}: the buffer is damaged, see tagferry buffer verify`}`,
  );
  return whole ? exitStatus.done : exitStatus.failed;
}

function csvLine({ input, time, value }: InspectedPoint): string {
  return `${csvCell(input)},${formatTimestamp(epochMicros(time))},${numberCell(value)}\n`;
}

function ndjsonLine({ input, time, value }: InspectedPoint): string {
  return `{"input":${JSON.stringify(input)},"time":"${formatTimestamp(epochMicros(time))}","value":${numberCell(value)}}\n`;
}
