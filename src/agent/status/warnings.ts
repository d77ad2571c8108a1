// The warnings of the status: problems that the operator should know or fix.
import type { Config } from "../../config/format/config.ts";
import type { BufferStats, Loss } from "../../core/buffer.ts";
import { errorCodes } from "../../core/errors.ts";
import { formatByteSize } from "../../lib/values/byte-size.ts";
import type { Mapping } from "../../mapping/mapping.ts";
import type { ParkedStatus } from "../../upload/failures/parked-inputs.ts";
import type { Named, SignalWatchStatus } from "../../upload/signals/signal-watch.ts";
import type { DeliveryStatus } from "../../upload/uploader.ts";
import { type ClockWatch, rfc3339, unsetClockHint } from "../clock/clock-watch.ts";
import type { ClusterStatus } from "../upkeep/cluster-delivery.ts";
import type { ConfigStatus, RefusedInputStatus, TimeFaultStatus, TimeFaultsStatus, Warning } from "./status.ts";
import { counted, firstOf } from "./words.ts";

export interface WarningParts {
  readonly config: Config;
  readonly loaded: ConfigStatus;
  readonly buffer: BufferStats;
  readonly clockProblem: ClockWatch["problem"];
  readonly uploader: DeliveryStatus | undefined;
  readonly cluster?: ClusterStatus | undefined;
  /** Warnings of sources, refused inputs and device clocks. */
  readonly sources: readonly Warning[];
}

export function warningsOf(parts: WarningParts): readonly Warning[] {
  const { config, clockProblem, uploader } = parts;
  const { unkept = 0, parked, signals } = uploader ?? {};
  return [
    ...bufferWarnings(parts.buffer),
    ...given(
      clockProblem !== undefined &&
        failure(
          "the clock is not set",
          `the clock is not set: ${clockProblem.reason}; ${clockProblem.consequence}`,
          unsetClockHint,
        ),
    ),
    ...clusterWarnings(parts.cluster, config),
    ...parts.sources,
    ...given(
      unkept > 0 &&
        failure(
          "refused points cannot be written to disk",
          `${counted(unkept, "refused point")} cannot be written to disk; they stay in the buffer`,
          "free disk space or repair the disk",
        ),
    ),
    ...(parked ? parkedWarnings(parked) : []),
    ...(signals ? signalWarnings(signals) : []),
    ...reloadWarnings(parts.loaded),
    ...config.warnings.map(({ path, message, hint }) => warning(`${path}: ${message}`, hint)),
  ];
}

function warning(
  message: string,
  remedy: string | undefined,
  more: Partial<Pick<Warning, "level" | "title" | "command">> = {},
): Warning {
  return { level: "warn", message, ...(remedy && { remedy }), ...more };
}

function failure(title: string, message: string, remedy: string | undefined): Warning {
  return warning(message, remedy, { level: "error", title });
}

function given(...warnings: readonly (Warning | false)[]): Warning[] {
  return warnings.filter((each) => each !== false);
}

/** How to prevent a repetition, by the loss reason of the buffer. */
const lossRemedies: Readonly<Record<string, string>> = {
  maxSize: "raise buffer.maxSize, or see why delivery failed for so long",
  maxAge: "raise buffer.maxAge, or see why delivery failed for so long",
  reserveFreeDisk: "free disk space or lower buffer.reserveFreeDisk; with buffer.whenFull: block sources wait instead",
  diskFull: "free disk space; with buffer.whenFull: block sources wait instead",
  damaged: "check the disk; what could not be read is kept next to the buffer",
  missing: "check the disk and who removes files from the data directory",
  diskLied: "check the disk: it had confirmed what it did not keep",
};

function bufferWarnings(buffer: BufferStats): Warning[] {
  const lost = buffer.losses
    .filter(({ points }) => points > 0)
    .map((loss) => {
      const points = counted(loss.points, "point");
      const message = `${points} ${loss.points === 1 ? "was" : "were"} lost from the buffer: ${loss.reason}${timesOf(loss)}`;
      return failure(`${points} lost from the buffer`, message, lossRemedies[loss.reason]);
    });
  if (buffer.degraded === undefined) return lost;
  const message = `points cannot be stored: ${buffer.degraded}; the buffer holds ${formatByteSize(buffer.bytes)}`;
  return [failure("points cannot be stored", message, errorCodes.BUFFER_UNAVAILABLE.hint), ...lost];
}

/** The last of several intervals, since points were delivered between them. */
function timesOf({ from, to, intervals: reported }: Loss): string {
  const intervals = reported.filter(({ points }) => points > 0);
  const last = intervals.length > 1 ? intervals.at(-1) : { from, to };
  if (last?.from === undefined || last.to === undefined) return "";
  const times = `from ${rfc3339(last.from)} to ${rfc3339(last.to)}`;
  return intervals.length > 1 ? `, in ${intervals.length} intervals, the last ${times}` : `, times ${times}`;
}

function clusterWarnings(cluster: ClusterStatus | undefined, { agent }: Config): Warning[] {
  if (!cluster) return [];
  const { connected, hasQuorum, stream, reason, sameName, forwardPaused } = cluster;
  const { replicas = 0, replicasInPlace = 0 } = stream ?? {};
  const kept = "points stay in the buffer of this agent, which does not deliver past the cluster";
  return given(
    !connected &&
      warning(`the cluster cannot be reached: ${reason}; ${kept}`, errorCodes.CLUSTER_UNREACHABLE.hint, {
        title: "cluster unreachable",
      }),
    connected &&
      !hasQuorum &&
      warning(
        `the servers of the cluster have no leader; ${kept}`,
        "start the servers that are down until more than half of them run",
        { title: "servers of the cluster without quorum" },
      ),
    replicasInPlace < replicas &&
      warning(
        `${replicasInPlace} of ${counted(replicas, "replica")} of the stream are in place`,
        "start the server that is down; it gets its replica from the others",
      ),
    forwardPaused === "full" &&
      warning(`the stream of the cluster is full; ${kept}`, errorCodes.CLUSTER_FULL.hint, {
        title: "stream of the cluster full",
      }),
    sameName &&
      failure(
        "agent.name is used twice",
        `another agent of the cluster is named ${agent.name}`,
        "give each agent its own agent.name",
      ),
  );
}

function reloadWarnings({ checksum, loadedAt, failedReload, needRestart }: ConfigStatus): Warning[] {
  const kept = `configuration ${checksum} of ${rfc3339(loadedAt)} stays in effect`;
  const failed = failedReload && `the reload at ${rfc3339(failedReload.at)} failed: ${failedReload.reason}; ${kept}`;
  const waiting = `changes of ${needRestart.join(", ")} in the configuration are not in effect`;
  return given(
    failed !== undefined &&
      warning(failed, "see the errors with tagferry check, correct the file, and reload again", {
        level: "error",
        title: "the last reload failed",
        command: ["check"],
      }),
    needRestart.length > 0 && warning(waiting, "restart the agent"),
  );
}

const parkedKinds = [
  { why: "refused", verb: "refuses", remedy: "see its reason; they are tried again by themselves, nothing is dropped" },
  {
    why: "unconfirmed",
    verb: "does not name in its answers",
    remedy: "ask the operator of the service; they are tried again by themselves, nothing is dropped",
  },
] as const;

/** One warning for each kind: the parked inputs, the reason, and the next attempt. */
function parkedWarnings(parked: ParkedStatus): Warning[] {
  return parkedKinds.flatMap(({ why, verb, remedy }): Warning[] => {
    const count = parked[why];
    if (count === 0) return [];
    const named = parked.first
      .filter((each) => each.why === why)
      .map(({ input, reason, retryInMs }) => `${input} (${reason}; next try in ${Math.ceil(retryInMs / 1_000)} s)`);
    const inputs = counted(count, "input");
    const title = `points of ${inputs} wait: the service ${verb} ${count === 1 ? "it" : "them"}`;
    const message = `points wait in the buffer: the service ${verb} ${inputs}: ${firstOf(count, named)}`;
    return [failure(title, message, remedy)];
  });
}

function signalWarnings({ refused, watch }: DeliveryStatus["signals"]): Warning[] {
  return [
    ...refused.map(({ input, reason }) =>
      warning(
        `the service would not take the metadata of ${input}: ${reason}; its points are delivered`,
        "correct `signal` of this tag",
      ),
    ),
    ...(watch ? watchWarnings(watch) : []),
  ];
}

function watchWarnings({ error, kept, unconfigured, items }: SignalWatchStatus): Warning[] {
  return [
    ...(error ? [warning(`signals are not compared with the service: ${error.message}`, error.hint)] : []),
    ...about(kept, "unchanged at the service after they were saved again", "compare with tagferry signals diff"),
    ...about(
      { count: unconfigured.count, first: unconfigured.first.map((input) => ({ input, reason: "" })) },
      "at the service, but not configured; they are left as they are",
      "remove them there, or configure their tags again",
    ),
    ...about(
      items?.unfit,
      "not published, for something is missing",
      "add it to `signal` of the tag, or change service.signals.require",
    ),
    ...about(items?.edited, "published with what a person has edited there", "nothing, if that is meant"),
    ...about(items?.refused, "not published, the service refuses them", "correct `signal` of the tag"),
  ];
}

/** One warning for all signals, since there may be thousands. */
function about(named: Named | undefined, what: string, remedy: string): Warning[] {
  if (!named || named.count === 0) return [];
  const first = named.first.map(({ input, reason }) => (reason === "" ? input : `${input} (${reason})`));
  const signals = `${counted(named.count, "signal")} ${named.count === 1 ? "is" : "are"}`;
  return [warning(`${signals} ${what}: ${firstOf(named.count, first)}`, remedy)];
}

/** Most addresses that a warning names; the others are counted. */
const mostAddresses = 3;

export function refusedInputsOf(source: string, mapping: Pick<Mapping, "refusals">): readonly RefusedInputStatus[] {
  return mapping.refusals().map(({ tag: _tag, ...refused }) => ({ source, ...refused }));
}

/** One warning for each Input ID, since a wildcard may match hundreds of addresses. */
export function refusalWarnings(refused: readonly RefusedInputStatus[]): readonly Warning[] {
  const groups = Map.groupBy(refused, ({ source, input, fedBy }) =>
    JSON.stringify([source, input, fedBy?.source, fedBy?.address]),
  );
  const ids = new Set(refused.map(({ source, input }) => `${source} ${input}`)).size;
  const title = `readings refused for ${counted(ids, "Input ID")}`;
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    return first ? [refusalWarning(title, first, group)] : [];
  });
}

/** `group`: all inputs refused for the same reason as `first`. */
function refusalWarning(
  title: string,
  { input, source, fedBy, reason, remedy }: RefusedInputStatus,
  group: readonly RefusedInputStatus[],
): Warning {
  const lost = group.reduce((sum, { readings }) => sum + readings, 0);
  const notStored = `${lost} readings were not stored`;
  if (!fedBy) return failure(title, `${input}: ${reason}; ${notStored}`, remedy);
  const addresses = group.map(({ address }) => address).filter((address) => address !== "");
  const named = firstOf(addresses.length, addresses, mostAddresses);
  const feeder = `${fedBy.source}${fedBy.address === "" ? "" : ` ${fedBy.address}`}`;
  const second = named === "" ? `a tag of ${source}` : `${source} ${named}`;
  return failure(title, `${input} is fed by ${feeder}; refused: ${second}; ${notStored}`, remedy);
}

export function timeFaultWarnings({ standing, repeats, first }: TimeFaultsStatus): readonly Warning[] {
  const named = (kind: TimeFaultStatus["kind"], detail: (fault: TimeFaultStatus) => string) =>
    first.filter((fault) => fault.kind === kind).map((fault) => `${fault.source} ${fault.input} (${detail(fault)})`);
  const stands = `the device clock stands still for ${counted(standing, "Input ID")}`;
  const stood = named(
    "standing",
    (fault) => `${fault.readings} readings with one time in ${Math.round(fault.forMs / 1_000)} s`,
  );
  const replaces = `values often have the time of the one before and replace it, for ${counted(repeats, "Input ID")}`;
  const replaced = named("repeats", (fault) => `${fault.repeats} of ${fault.readings} readings`);
  return given(
    standing > 0 &&
      warning(
        `${stands}: ${firstOf(standing, stood)}`,
        "set the device's clock, or set another `time` on the tag; of values with one time only the last is kept, unless the tag has `sameTime: keep`",
        { title: stands },
      ),
    repeats > 0 &&
      warning(
        `${replaces}: ${firstOf(repeats, replaced)}`,
        "where each value counts, set `sameTime: keep` or another `time` on the tag, or the device's clock; nothing where a later value is meant to replace the one before",
      ),
  );
}
