// The warnings of the status: problems that the operator should know or fix.
import type { Config } from "../../config/format/config.ts";
import type { BufferStats, Loss } from "../../core/buffer.ts";
import { errorCodes } from "../../core/errors.ts";
import { formatByteSize } from "../../lib/values/byte-size.ts";
import type { ParkedStatus } from "../../upload/failures/parked-inputs.ts";
import type { Named, SignalWatchStatus } from "../../upload/signals/signal-watch.ts";
import type { DeliveryStatus } from "../../upload/uploader.ts";
import { type ClockWatch, rfc3339, unsetClockHint } from "../clock/clock-watch.ts";
import type { ClusterStatus } from "../upkeep/cluster-delivery.ts";
import type { ConfigStatus, Warning } from "./status.ts";
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

export function warningsOf({
  config,
  loaded,
  buffer,
  clockProblem,
  uploader,
  cluster,
  sources,
}: WarningParts): readonly Warning[] {
  return [
    ...bufferWarnings(buffer),
    ...clockWarnings(clockProblem),
    ...clusterWarnings(cluster, config),
    ...sources,
    ...rejectWarnings(uploader?.unkept ?? 0),
    ...parkedWarnings(uploader?.parked),
    ...signalWarnings(uploader?.signals),
    ...reloadWarnings(loaded),
    ...configWarnings(config),
  ];
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
    .map((loss) =>
      warning(
        `${counted(loss.points, "point")} ${loss.points === 1 ? "was" : "were"} lost from the buffer: ${loss.reason}${timesOf(loss)}`,
        lossRemedies[loss.reason],
        { level: "error", title: `${counted(loss.points, "point")} lost from the buffer` },
      ),
    );
  if (buffer.degraded === undefined) return lost;
  const full: Warning = {
    level: "error",
    title: "points cannot be stored",
    message: `points cannot be stored: ${buffer.degraded}; the buffer holds ${formatByteSize(buffer.bytes)}`,
    remedy: "free disk space or repair the disk; nothing more is acknowledged until then",
  };
  return [full, ...lost];
}

/** The last of several intervals, since points were delivered between them. */
function timesOf({ from, to, intervals: reported }: Loss): string {
  const intervals = reported.filter(({ points }) => points > 0);
  const last = intervals.length > 1 ? intervals.at(-1) : { from, to };
  if (last?.from === undefined || last.to === undefined) return "";
  const times = `from ${rfc3339(last.from)} to ${rfc3339(last.to)}`;
  return intervals.length > 1 ? `, in ${intervals.length} intervals, the last ${times}` : `, times ${times}`;
}

function rejectWarnings(unkept: number): Warning[] {
  if (unkept === 0) return [];
  const message = `${counted(unkept, "refused point")} cannot be written to disk; they stay in the buffer`;
  const title = "refused points cannot be written to disk";
  return [{ level: "error", title, message, remedy: "free disk space or repair the disk" }];
}

function clockWarnings(clockProblem: ClockWatch["problem"]): Warning[] {
  if (clockProblem === undefined) return [];
  const message = `the clock is not set: ${clockProblem.reason}; ${clockProblem.consequence}`;
  return [{ level: "error", title: "the clock is not set", message, remedy: unsetClockHint }];
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
      warning(`another agent of the cluster is named ${agent.name}`, "give each agent its own agent.name", {
        level: "error",
        title: "agent.name is used twice",
      }),
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

function configWarnings(config: Config): Warning[] {
  return config.warnings.map(({ path, message, hint }) => warning(`${path}: ${message}`, hint));
}

function warning(
  message: string,
  remedy: string | undefined,
  more: Partial<Pick<Warning, "level" | "title" | "command">> = {},
): Warning {
  return { level: "warn", message, ...(remedy && { remedy }), ...more };
}

function given(...warnings: readonly (Warning | false)[]): Warning[] {
  return warnings.filter((each) => each !== false);
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
function parkedWarnings(parked: ParkedStatus | undefined): Warning[] {
  if (!parked) return [];
  return parkedKinds.flatMap(({ why, verb, remedy }): Warning[] => {
    const count = parked[why];
    if (count === 0) return [];
    const named = parked.first
      .filter((each) => each.why === why)
      .map(({ input, reason, retryInMs }) => `${input} (${reason}; next try in ${Math.ceil(retryInMs / 1_000)} s)`);
    const inputs = `${counted(count, "input")}: ${firstOf(count, named)}`;
    const title = `points of ${counted(count, "input")} wait: the service ${verb} ${count === 1 ? "it" : "them"}`;
    return [{ level: "error", title, message: `points wait in the buffer: the service ${verb} ${inputs}`, remedy }];
  });
}

function signalWarnings(signals: DeliveryStatus["signals"] | undefined): Warning[] {
  if (!signals) return [];
  return [
    ...signals.refused.map(({ input, reason }) =>
      warning(
        `the service would not take the metadata of ${input}: ${reason}; its points are delivered`,
        "correct `signal` of this tag",
      ),
    ),
    ...(signals.watch ? watchWarnings(signals.watch) : []),
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
