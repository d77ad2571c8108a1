// Gathers what the parts know into one `Status`.
import type { Config } from "../../config/config.ts";
import type { BufferStats, Loss } from "../../core/buffer.ts";
import type { EpochMicros } from "../../core/point.ts";
import { formatByteSize } from "../../lib/byte-size.ts";
import type { Mapping, TagState } from "../../mapping/mapping.ts";
import type { UploadStatus as UploaderStatus } from "../../upload/uploader.ts";
import { type ClockWatch, unsetClockHint } from "../clock/clock-watch.ts";
import type { GapSummary } from "../gaps/gap.ts";
import type { RunningDelivery } from "../upkeep/delivery.ts";
import { backlogStatus, type Progress } from "./backlog-trend.ts";
import { overallOf } from "./overall.ts";
import { parkedWarnings } from "./parked-warnings.ts";
import { refusalWarnings, refusedInputsOf } from "./refused-inputs.ts";
import { signalWarnings } from "./signal-warnings.ts";
import type { SourceMonitor } from "./source-monitor.ts";
import type {
  AgentStatus,
  SignalsStatus,
  Status,
  StatusPart,
  TagStatus,
  UploadState,
  UploadStatus,
  Warning,
} from "./status.ts";
import { timeFaultsOf, timeFaultWarnings } from "./time-faults.ts";

export interface SnapshotParts {
  readonly time: EpochMicros;
  readonly agent: AgentStatus;
  readonly config: Config;
  readonly sources: readonly { readonly monitor: SourceMonitor; readonly mapping: Mapping }[];
  readonly buffer: BufferStats;
  readonly delivery: Pick<RunningDelivery, "status" | "standstill">;
  /** How the backlog changed lately; undefined: not measured yet. */
  readonly progress?: Progress | undefined;
  readonly gaps: GapSummary;
  /** As `ClockWatch` gives it. */
  readonly doubt?: ClockWatch["doubt"];
}

export function snapshot(parts: SnapshotParts): Status {
  const { tags } = tagsIn(parts, 0, Number.POSITIVE_INFINITY);
  return { ...overview(parts), tags };
}

/** As `snapshot`, of whose tags only those that a page shows: ten thousand are not put together each second. */
export function snapshotOf(parts: SnapshotParts, first: number, count: number): StatusPart {
  const { total } = tagsIn(parts, 0, 0);
  const begin = Math.min(first, Math.max(0, total - count));
  return { status: overview(parts), tags: { total, first: begin, rows: tagsIn(parts, begin, count).tags } };
}

function tagsIn({ sources }: SnapshotParts, first: number, count: number) {
  const tags: TagStatus[] = [];
  let total = 0;
  for (const { mapping, monitor } of sources) {
    const some = mapping.tagsIn(Math.max(0, first - total), count - tags.length);
    for (const tag of some.tags) tags.push(tagStatus(monitor.name, tag));
    total += some.total;
  }
  return { total, tags };
}

function overview(parts: SnapshotParts): Omit<Status, "tags"> {
  const { time, agent, config, sources, buffer, delivery, gaps, doubt } = parts;
  const statuses = sources.map(({ monitor }) => monitor.status());
  const upload = uploadStatus(parts, agent.startedAt);
  const refusedInputs = sources.flatMap(({ mapping, monitor }) => refusedInputsOf(monitor.name, mapping));
  const timeFaults = timeFaultsOf(sources.map(({ mapping, monitor }) => ({ source: monitor.name, mapping })));
  const known = {
    time,
    agent,
    sources: statuses,
    buffer: { ...buffer, maxBytes: config.buffer.maxSize, maxAgeMs: config.buffer.maxAge },
    upload,
    gaps,
    refusedInputs,
    timeFaults,
    warnings: [
      ...bufferWarnings(buffer),
      ...clockWarnings(doubt),
      ...sources.flatMap(({ monitor }) => monitor.warnings()),
      ...refusalWarnings(refusedInputs),
      ...timeFaultWarnings(timeFaults),
      ...rejectWarnings(delivery.status()?.unkept ?? 0),
      ...parkedWarnings(delivery.status()?.parked),
      ...signalWarnings(delivery.status()?.signals),
      ...configWarnings(config),
    ],
  };
  return { ...known, overall: overallOf(known) };
}

function tagStatus(source: string, tag: TagState): TagStatus {
  const { tag: index, input, address, value, text, unit, quality, reason, time, readings, bad } = tag;
  return {
    source,
    tag: index,
    input,
    address,
    ...(value !== undefined && { value }),
    ...(text !== undefined && { text }),
    ...(unit !== undefined && { unit }),
    ...(quality !== undefined && { quality }),
    ...(reason !== undefined && { reason }),
    ...(time !== undefined && { time }),
    readings,
    failures: bad,
  };
}

/** The uploader tells its state in more words than an operator needs. */
const states = {
  idle: "delivering",
  sending: "delivering",
  throttled: "delivering",
  unreachable: "retrying",
  holding: "held",
} as const;

export function uploadStatus(
  {
    time,
    config,
    buffer,
    delivery,
    progress,
  }: Pick<SnapshotParts, "time" | "config" | "buffer" | "delivery" | "progress">,
  startedAt: EpochMicros,
): UploadStatus {
  const { url, integration } = config.service;
  const status = delivery.status();
  const failure = delivery.standstill;
  const state: UploadState = status ? states[status.state] : failure ? "held" : "stopped";
  const error = failure
    ? { message: failure.message, hint: failure.hint }
    : status?.lastError?.current
      ? status.lastError
      : undefined;
  const parkedInputs = status ? status.parked.refused + status.parked.unconfirmed : 0;
  const { unsettledPoints: points, oldest } = buffer;
  const backlog = backlogStatus({ time, state, points, oldest, parkedInputs, progress });
  return {
    state,
    since: failure?.since ?? status?.since ?? startedAt,
    url,
    integration,
    ...(error && { error: error.message }),
    ...(error?.hint && { remedy: error.hint }),
    ...(status?.lastSuccess !== undefined && { lagMs: status.lagMs }),
    backlogPoints: points,
    backlog,
    requests: status?.requests.started ?? 0,
    points: status?.points ?? 0,
    refusedPoints: status?.rejected ?? 0,
    pointsPerRequest: status?.pointsPerRequest ?? 0,
    bytesPerRequest: status?.bytesPerRequest ?? 0,
    budgetShare: status?.budgetShare ?? 0,
    ...(status && { parkedInputs: { refused: status.parked.refused, unconfirmed: status.parked.unconfirmed } }),
    ...(status && { signals: signalsStatus(status.signals) }),
  };
}

function signalsStatus({ known, pending, saved, watch }: UploaderStatus["signals"]): SignalsStatus {
  return {
    known,
    pending,
    saved,
    ...(watch?.checkedAt !== undefined && {
      checkedAt: watch.checkedAt,
      lost: watch.lost,
      changed: watch.changed,
      unconfigured: watch.unconfigured.count,
      unconfiguredInputs: watch.unconfigured.first,
    }),
    ...(watch?.items && { published: watch.items.published }),
  };
}

/** What to do so that it does not happen again, by the reason the buffer gives. */
const lossRemedies: Readonly<Record<string, string>> = {
  maxSize: "raise buffer.maxSize, or see why delivery was away for so long",
  maxAge: "raise buffer.maxAge, or see why delivery was away for so long",
  reserveFreeDisk: "free disk space or lower buffer.reserveFreeDisk; with buffer.whenFull: block sources wait instead",
  diskFull: "free disk space; with buffer.whenFull: block sources wait instead",
  damaged: "check the disk; what could not be read is kept beside the buffer",
  missing: "check the disk and who removes files from the data directory",
  diskLied: "check the disk: it had confirmed what it did not keep",
};

function rfc3339(time: EpochMicros): string {
  return new Date(time / 1_000).toISOString();
}

function bufferWarnings(buffer: BufferStats): Warning[] {
  const lost = buffer.losses
    .filter(({ points }) => points > 0)
    .map(
      (loss): Warning => ({
        level: "error",
        message: `${loss.points} points were lost from the buffer: ${loss.reason}${timesOf(loss)}`,
        ...(lossRemedies[loss.reason] && { remedy: lossRemedies[loss.reason] }),
      }),
    );
  if (buffer.degraded === undefined) return lost;
  const full: Warning = {
    level: "error",
    message: `points cannot be stored: ${buffer.degraded}; the buffer holds ${formatByteSize(buffer.bytes)}`,
    remedy: "free disk space or mend the disk; nothing more is acknowledged until then",
  };
  return [full, ...lost];
}

/** Of several intervals the last one: between them points were delivered. */
function timesOf({ from, to, intervals: reported }: Loss): string {
  const intervals = reported.filter(({ points }) => points > 0);
  const last = intervals.length > 1 ? intervals.at(-1) : { from, to };
  if (last?.from === undefined || last.to === undefined) return "";
  const times = `from ${rfc3339(last.from)} to ${rfc3339(last.to)}`;
  return intervals.length > 1 ? `, in ${intervals.length} intervals, the last ${times}` : `, times ${times}`;
}

function rejectWarnings(unkept: number): Warning[] {
  if (unkept === 0) return [];
  const message = `${unkept} points that the service refused for good cannot be written down; they stay in the buffer`;
  return [{ level: "error", message, remedy: "free disk space or mend the disk" }];
}

function clockWarnings(doubt: SnapshotParts["doubt"]): Warning[] {
  if (doubt === undefined) return [];
  const message = `the clock is not set: ${doubt.reason}; ${doubt.consequence}`;
  return [{ level: "error", message, remedy: unsetClockHint }];
}

function configWarnings(config: Config): Warning[] {
  return config.warnings.map(({ path, message, hint }) => ({
    level: "warn",
    message: `${path}: ${message}`,
    ...(hint && { remedy: hint }),
  }));
}
