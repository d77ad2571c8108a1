// Combines the state of the parts into one `Status`.
import type { Config, ConfiguredSource } from "../../config/format/config.ts";
import type { Position } from "../../config/nodes/node.ts";
import type { BufferStats } from "../../core/buffer.ts";
import type { OtherFormat } from "../../core/commissioning.ts";
import type { EpochMicros } from "../../core/point.ts";
import { defined } from "../../lib/values/defined.ts";
import type { InspectedInput, Mapping, TagState } from "../../mapping/mapping.ts";
import type { DeliveryStatus } from "../../upload/uploader.ts";
import type { ClockWatch } from "../clock/clock-watch.ts";
import type { GapSummary } from "../gaps/gap.ts";
import type { ClusterStatus } from "../upkeep/cluster-delivery.ts";
import type { StandbySource } from "../upkeep/cluster-sources.ts";
import type { RunningDelivery } from "../upkeep/delivery.ts";
import { backlogStatus, type Progress } from "./backlog-trend.ts";
import { overallOf } from "./overall.ts";
import { monitoredSource, type SourceMonitor } from "./source-monitor.ts";
import type {
  AgentStatus,
  SignalsStatus,
  SourceStatus,
  Status,
  StatusPart,
  StatusSample,
  TagStatus,
  TimeFaultsStatus,
  UploadState,
  UploadStatus,
} from "./status.ts";
import { refusalWarnings, refusedInputsOf, timeFaultWarnings, warningsOf } from "./warnings.ts";

export interface SnapshotParts {
  readonly time: EpochMicros;
  readonly agent: AgentStatus;
  readonly config: Config;
  readonly sources: readonly { readonly monitor: SourceMonitor; readonly mapping: Mapping }[];
  /** Sources that other agents of the cluster read. */
  readonly standby?: readonly StandbySource[] | undefined;
  readonly buffer: BufferStats;
  readonly delivery: Pick<RunningDelivery, "status" | "outage">;
  /** Recent change of the backlog; undefined: not measured yet. */
  readonly progress?: Progress | undefined;
  readonly gaps: GapSummary;
  readonly clockProblem?: ClockWatch["problem"];
  readonly cluster?: ClusterStatus | undefined;
}

export function snapshot(parts: SnapshotParts): Status {
  const { tags } = tagsIn(parts, 0, Number.POSITIVE_INFINITY);
  return { ...overview(parts), tags };
}

/** Like `snapshot`, with only the tags on a page, since building all of them each second is expensive. */
export function snapshotOf(parts: SnapshotParts, first: number, count: number): StatusPart {
  const { total } = tagsIn(parts, 0, 0);
  const begin = Math.min(first, Math.max(0, total - count));
  return { status: overview(parts), tags: { total, first: begin, rows: tagsIn(parts, begin, count).tags } };
}

export function sampleOfAgent(parts: SnapshotParts): StatusSample {
  const { time, config, buffer, agent, sources } = parts;
  return {
    time,
    buffer: bufferStatus(buffer, config),
    upload: uploadStatus(parts, agent.startedAt),
    values(most, each) {
      let left = most;
      // Without a connection the last value is not the present one.
      for (const { mapping, monitor } of sources)
        left -= mapping.values(left, monitor.connection ? each : (input) => each(input, undefined));
    },
  };
}

function bufferStatus(stats: BufferStats, { buffer: { maxSize, maxAge } }: Config): Status["buffer"] {
  return { ...stats, maxBytes: maxSize, maxAgeMs: maxAge };
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
  const { time, agent, config, sources, buffer, delivery, gaps, clockProblem, cluster, standby = [] } = parts;
  const statuses = [...sources.map(({ monitor }) => monitor.status()), ...standby.map(standbyStatus)];
  const upload = uploadStatus(parts, agent.startedAt);
  const refusedInputs = sources.flatMap(({ mapping, monitor }) => refusedInputsOf(monitor.name, mapping));
  const timeFaults = timeFaultsOf(sources);
  const known = {
    time,
    agent,
    sources: statuses,
    buffer: bufferStatus(buffer, config),
    upload,
    ...defined({ cluster }),
    gaps,
    refusedInputs,
    timeFaults,
    warnings: warningsOf({
      config,
      loaded: agent.config,
      buffer,
      clockProblem,
      cluster,
      uploader: delivery.status(),
      sources: [
        ...sources.flatMap(({ monitor }) => monitor.warnings()),
        ...refusalWarnings(refusedInputs),
        ...timeFaultWarnings(timeFaults),
      ],
    }),
  };
  return { ...known, overall: overallOf(known) };
}

function timeFaultsOf(sources: SnapshotParts["sources"]): TimeFaultsStatus {
  const all = sources.map(({ monitor, mapping }) => ({ source: monitor.name, ...mapping.timeFaults() }));
  return {
    standing: all.reduce((sum, { standing }) => sum + standing, 0),
    repeats: all.reduce((sum, { repeats }) => sum + repeats, 0),
    first: all.flatMap(({ source, first }) => first.map(({ tag: _tag, ...fault }) => ({ source, ...fault }))),
  };
}

function standbyStatus({ source, since, reader }: StandbySource): SourceStatus {
  return {
    ...monitoredSource(source),
    state: "standby",
    since,
    readings: 0,
    points: 0,
    reconnects: 0,
    readingsPerSecond: 0,
    details: reader === undefined ? {} : { reader },
  };
}

export function tagStatus(source: string, tag: TagState): TagStatus {
  const { tag: index, input, address, value, text, unit, quality, reason, time, readings, bad: failures } = tag;
  return {
    source,
    tag: index,
    input,
    address,
    ...defined({ value, text, unit, quality, reason, time }),
    readings,
    failures,
  };
}

type UploadParts = Pick<SnapshotParts, "time" | "config" | "buffer" | "delivery" | "progress">;

/** Maps the uploader's states to the fewer states that an operator needs. */
const states = {
  idle: "delivering",
  sending: "delivering",
  throttled: "delivering",
  unreachable: "retrying",
  holding: "held",
} as const;

export function uploadStatus(parts: UploadParts, startedAt: EpochMicros): UploadStatus {
  const { time, config, buffer, delivery, progress } = parts;
  const { url, integration, interval: intervalMs } = config.service;
  const status = delivery.status();
  const failure = delivery.outage;
  const absent = failure ? "held" : config.cluster ? "standby" : "stopped";
  const state: UploadState = status ? states[status.state] : absent;
  const error = failure ?? (status?.lastError?.current ? status.lastError : undefined);
  const { refused = 0, unconfirmed = 0 } = status?.parked ?? {};
  const parkedInputs = refused + unconfirmed;
  const { unsettledPoints: points, oldest } = buffer;
  const { maxSize, maxAge } = config.buffer;
  const roomBytes = maxSize - buffer.bytes;
  const untilTooOldMs = maxAge - (time - (oldest ?? time)) / 1_000;
  const room = { roomBytes, untilTooOldMs };
  const backlog = backlogStatus({ time, state, points, oldest, parkedInputs, progress, intervalMs, ...room });
  return {
    state,
    since: failure?.since ?? status?.since ?? startedAt,
    url,
    integration,
    ...defined({ error: error?.message, remedy: error?.hint || undefined }),
    ...(status?.lastSuccess !== undefined && { lagMs: status.lagMs }),
    backlogPoints: points,
    backlog,
    requests: status?.requests.started ?? 0,
    points: status?.points ?? 0,
    refusedPoints: status?.rejected ?? 0,
    pointsPerRequest: status?.pointsPerRequest ?? 0,
    bytesPerRequest: status?.bytesPerRequest ?? 0,
    budgetShare: status?.budgetShare ?? 0,
    intervalMs,
    ...(status && {
      traffic: trafficStatus(status.traffic),
      parkedInputs: { refused, unconfirmed },
      signals: signalsStatus(status.signals),
    }),
  };
}

function trafficStatus({ sentBytes, receivedBytes, bytesPerMonth }: DeliveryStatus["traffic"]) {
  return { sentBytes, receivedBytes, ...defined({ bytesPerMonth }) };
}

function signalsStatus({ known, pending, saved, watch }: DeliveryStatus["signals"]): SignalsStatus {
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

// Everything about one tag, for its page.

export interface TagDetail extends Pick<InspectedInput, "rules" | "latest"> {
  readonly status: TagStatus;
  /** Points of this input, and readings that `report` suppressed, since the source was started. */
  readonly stored: number;
  readonly filtered: number;
  /** The latest raw value in other formats; see `Driver.otherFormats`. */
  readonly otherFormats?: readonly OtherFormat[];
  readonly source: Pick<SourceStatus, "name" | "type" | "url" | "state" | "error" | "remedy">;
  /** Where the tag is written. Left out if the configuration changed and no longer has it. */
  readonly place?: Position;
  /** Its entry in a template. Left out if it is written out. */
  readonly template?: Position;
}

interface DetailParts {
  readonly monitor: SourceMonitor;
  readonly mapping: Mapping;
  readonly configured: ConfiguredSource | undefined;
}

/** `tag`: index of the tag in its source. Undefined: it has no such input. */
export function tagDetail(
  { monitor, mapping, configured }: DetailParts,
  tag: number,
  input: string,
): TagDetail | undefined {
  const inspected = mapping.inspect(tag, input);
  if (!inspected) return undefined;
  const { state, rules, latest } = inspected;
  const { name, type, url, state: sourceState, error, remedy } = monitor.status();
  const { places } = configured ?? {};
  const [place, template] = [places?.at(tag), places?.template(tag)];
  const [last] = latest;
  const options = configured?.tags[tag];
  const otherFormats =
    options && last?.type === "number" ? configured.driver.otherFormats?.(options, Number(last.raw)) : undefined;
  return {
    status: tagStatus(name, state),
    stored: state.stored,
    filtered: state.filtered,
    rules,
    latest,
    ...(otherFormats && { otherFormats }),
    source: { name, type, state: sourceState, ...defined({ url, error, remedy }) },
    ...(place && { place }),
    ...(template && { template }),
  };
}
