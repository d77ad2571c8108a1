// The agent's state in one line, worst first, for the status page and `tagferry status`.
import type { BacklogStatus, Overall, SourceState, Status } from "./status.ts";
import { counted } from "./words.ts";

export const sourceWords: Readonly<Record<SourceState, string>> = {
  opening: "connecting",
  online: "online",
  waiting: "offline",
  stopped: "stopped",
};

/** A younger backlog is in transit. In microseconds. */
const onItsWayUs = 60e6;

const backlogWords: Readonly<Record<BacklogStatus["trend"], string>> = {
  none: "delivering a backlog",
  unknown: "delivering a backlog",
  growing: "backlog grows",
  steady: "backlog does not shrink",
  shrinking: "delivering a backlog",
};

export function overallOf(status: Omit<Status, "tags" | "overall">): Overall {
  const bad = badThings(status);
  const late = lateThings(status);
  const errors = status.warnings.some(({ level }) => level === "error");
  const all = [...bad, ...late];
  if (all.length === 0) return errors ? { level: "bad", text: "needs attention" } : { level: "good", text: "all well" };
  return { level: bad.length > 0 || errors ? "bad" : "warn", text: all.join(", ") };
}

function badThings({ buffer, upload, gaps, refusedInputs, cluster }: Omit<Status, "tags" | "overall">): string[] {
  const ids = new Set(refusedInputs.map(({ source, input }) => `${source} ${input}`)).size;
  return [
    ...when(buffer.degraded !== undefined, "buffer cannot write"),
    ...when(upload.state === "held", "delivery held"),
    ...when(cluster?.sameName === true, "agent.name is used twice"),
    ...when(gaps.dayLost > 0, "values lost in the last 24 h"),
    ...when(upload.refusedPoints > 0, `${counted(upload.refusedPoints, "point")} refused`),
    ...when(ids > 0, `readings refused for ${counted(ids, "Input ID")}`),
  ];
}

function lateThings(status: Omit<Status, "tags" | "overall">): string[] {
  const { time, sources, upload, buffer, gaps, timeFaults, cluster } = status;
  const inState = (wanted: SourceState) => sources.filter(({ state }) => state === wanted).length;
  const offline = inState("waiting");
  const connecting = inState("opening");
  const troubled = sources.filter(({ state, error }) => state === "online" && error !== undefined).length;
  const { unsettledPoints, oldest } = buffer;
  const isBacklog =
    unsettledPoints > 0 && oldest !== undefined && time - oldest > onItsWayUs + upload.intervalMs * 1_000;
  return [
    ...when(offline > 0, `${counted(offline, "source")} offline`),
    ...when(troubled > 0, `${counted(troubled, "source")} with errors`),
    ...when(upload.state === "retrying", "service unreachable"),
    ...when(upload.state === "stopped", "delivery stopped"),
    ...when(cluster?.connected === false, "cluster unreachable"),
    ...when(cluster?.forwardPaused === "full", "stream of the cluster full"),
    ...when(upload.state === "delivering" && isBacklog, backlogWords[upload.backlog.trend]),
    // An offline source has an open gap anyway.
    ...when(offline === 0 && gaps.open > 0, "tags not recorded"),
    ...when(timeFaults.standing > 0, `device clock stands still for ${counted(timeFaults.standing, "Input ID")}`),
    ...when(connecting > 0, `${counted(connecting, "source")} ${sourceWords.opening}`),
  ];
}

function when(isSo: boolean, text: string): string[] {
  return isSo ? [text] : [];
}
