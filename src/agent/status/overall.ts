// The state of the agent in one headline, for the status page and `tagferry status`: whether data arrives, whether it is
// delivered, and what the operator must do.

import { defined } from "../../lib/values/defined.ts";
import type { Fact, Level, Overall, Problem, ProblemItem, Status, UploadState } from "./status.ts";
import { counted, groupedDigits, pointsWait, roughSpan, words } from "./words.ts";

type Known = Omit<Status, "tags" | "overall">;

/** Sentences of the headline; further problems are counted. */
const mostSentences = 4;
/** Readings that are older do not count as arriving data, in microseconds. */
const freshUs = 10e6;

export function overallOf(status: Known): Overall {
  const problems = problemsOf(status);
  const [arriving, delivering] = [arrivingOf(status), deliveringOf(status)];
  const urgent = problems.filter(({ level }) => level !== "note");
  const more = urgent.length - mostSentences;
  const sentences = [
    ...leadOf(arriving, delivering, urgent),
    ...urgent.slice(0, mostSentences).map(({ text }) => text),
    ...(more > 0 ? [`${counted(more, "more problem")}`] : []),
  ];
  const level = urgent[0]?.level === "bad" ? "bad" : urgent.length > 0 ? "warn" : "good";
  return { level, text: sentences.map(sentence).join(" "), arriving, delivering, problems };
}

function leadOf(arriving: Fact, delivering: Fact, urgent: readonly Problem[]): readonly string[] {
  if (urgent.length === 0 && arriving.level === "good" && delivering.level === "good")
    return ["data arrives and is delivered"];
  // What a problem says anyway is not said twice.
  const isSaid = ({ text }: Fact) => urgent.some((problem) => problem.text.startsWith(text));
  const isPartly = arriving.level !== "note" && arriving.text.startsWith("data arrives");
  return [...(isPartly ? [] : [arriving]), ...(isSaid(delivering) ? [] : [delivering])].map(({ text }) => text);
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

function arrivingOf({ sources: all, time }: Known): Fact {
  if (all.length === 0) return { level: "note", text: "no source is configured", detail: "" };
  // Other agents of the cluster read the others.
  const sources = all.filter(({ state }) => state !== "standby");
  if (sources.length === 0) return { level: "note", text: "other agents of the cluster read the sources", detail: "" };
  const online = sources.filter(({ state }) => state === "online").length;
  const rate = sources.reduce((sum, { readingsPerSecond }) => sum + readingsPerSecond, 0);
  const last = sources.reduce((latest, { lastReading }) => Math.max(latest, lastReading ?? 0), 0);
  const of =
    online === sources.length ? `${counted(online, "source")} online` : `${online} of ${sources.length} sources online`;
  const fresh = isFresh({ sources, time });
  const age = last === 0 ? "no reading yet" : `last reading ${roughSpan((time - last) / 1_000)} ago`;
  const detail = `${of}, ${fresh && online > 0 ? `${rateText(rate)} readings/s` : age}`;
  const fact = (level: Level, text: string) => ({ level, text, detail });
  if (online === 0) {
    const isStarting = sources.some(({ state }) => state === "opening");
    return isStarting ? fact("note", "no data arrives yet") : fact("warn", "no data arrives");
  }
  if (!fresh) return fact("note", last === 0 ? "no data has arrived yet" : "no data at the moment");
  const silent = silentSources({ sources, time }).length;
  if (online === sources.length && silent === 0) return fact("good", "data arrives");
  const isOffline = online < sources.length;
  const giving = isOffline ? online : online - silent;
  return fact(isOffline ? "warn" : "note", `data arrives from ${giving} of ${sources.length} sources`);
}

function isFresh({ sources, time }: Pick<Known, "sources" | "time">): boolean {
  return sources.some(
    ({ readingsPerSecond, lastReading }) => readingsPerSecond > 0 || time - (lastReading ?? 0) < freshUs,
  );
}

function deliveringOf({ upload, cluster, buffer, sources, time }: Known): Fact {
  const { state, lagMs, backlog } = upload;
  const waits = pointsWait(buffer.unsettledPoints);
  const since = roughSpan((time - upload.since) / 1_000);
  if (state === "standby") {
    const { connected = true, delivers } = cluster ?? {};
    if (!connected) return { level: "warn", text: words.delivery.standby.word, detail: waits };
    const text = delivers === undefined ? "no agent of the cluster delivers" : `${delivers} delivers for the cluster`;
    return { level: "note", text, detail: waits };
  }
  if (state !== "delivering") {
    const full = backlog.fullMs === undefined ? "" : `, buffer full in about ${roughSpan(backlog.fullMs)}`;
    return { ...outageOf(state), detail: `for ${since}, ${waits}${full}` };
  }
  if (lagMs === undefined) return { level: "note", text: "nothing delivered yet", detail: waits };
  const isLate = backlog.trend === "growing" || backlog.trend === "steady";
  const isIdle = buffer.unsettledPoints === 0 && !isFresh({ sources, time });
  const text = isIdle ? "nothing waits to be delivered" : "delivering";
  const behind = backlog.trend === "none" ? "" : `, backlog ${backlog.text}`;
  return { level: isLate ? "warn" : "good", text, detail: `lag ${lagText(lagMs)}${behind}` };
}

function outageOf(state: Exclude<UploadState, "delivering" | "standby">) {
  const { word, level } = words.delivery[state];
  return { level, text: state === "retrying" ? word : `delivery ${word}` };
}

function rateText(rate: number): string {
  return rate < 10 ? String(Number(rate.toFixed(1))) : groupedDigits(Math.round(rate));
}

function lagText(ms: number): string {
  return ms < 1_000 ? "below 1 s" : ms < 90_000 ? `${Math.round(ms / 1_000)} s` : roughSpan(ms);
}

// What is wrong, worst first, each problem once with everything that it affects: the list of the page and `tagferry
// status`, and the sentences of the headline.

type Finding = ProblemItem & Pick<Problem, "level" | "text" | "command">;

const order: readonly Level[] = ["bad", "warn", "note"];
const mostItems = 20;
/** A younger backlog is in transit. In microseconds. */
const onItsWayUs = 60e6;

function problemsOf(status: Known): readonly Problem[] {
  const found = [
    ...fromWarnings(status),
    ...fromGaps(status),
    ...fromUpload(status),
    ...fromSources(status),
    ...fromBacklog(status),
  ];
  const groups = Map.groupBy(found, ({ text }) => text);
  return [...groups.values()].map(problemOf).toSorted((a, b) => order.indexOf(a.level) - order.indexOf(b.level));
}

function problemOf(group: readonly Finding[]): Problem {
  const [{ level, text, command } = { level: "note", text: "" } as Finding] = group;
  const items = group.map(({ detail, remedy, source, gap }) =>
    defined({ detail, remedy: remedy || undefined, source, gap }),
  );
  return {
    level,
    text,
    items: items.filter((item) => Object.keys(item).length > 0).slice(0, mostItems),
    count: items.length,
    ...(command && { command }),
  };
}

/** A warning without a title is no reason for a headline, unless it is an error. */
function fromWarnings({ warnings, gaps }: Known): Finding[] {
  return warnings.map(({ level, title, message, remedy = "", command }) => {
    const text = title ?? message;
    const isOld = level === "error" && text.endsWith("lost from the buffer") && lostIn(gaps) === 0;
    return {
      level: level === "error" && !isOld ? "bad" : title === undefined || isOld ? "note" : "warn",
      text,
      ...(title !== undefined && { detail: message }),
      remedy,
      ...(command && { command }),
    };
  });
}

function fromGaps({ gaps, sources }: Known): Finding[] {
  const { dayReloads: reloads = 0 } = gaps;
  const lost = gaps.dayPoints ? counted(gaps.dayPoints, "value") : "values";
  // An offline source has an open gap anyway.
  const offline = sources.filter(({ state }) => state === "waiting").map(({ name }) => name);
  const isOpen = gaps.openIn?.some((source) => !offline.includes(source)) ?? (gaps.open > 0 && offline.length === 0);
  return [
    ...when(lostIn(gaps) > 0, {
      level: "bad",
      text: `${lost} lost in the last 24 h`,
      command: ["gaps", "--since", "24h"],
      ...lastLostOf(gaps),
    }),
    ...when(reloads > 0, {
      level: "note",
      text: "values missed while a reload restarted sources",
      detail: `${counted(reloads, "gap")} in the last 24 h`,
      command: ["gaps", "--since", "24h"],
    }),
    ...when(isOpen, { level: "warn", text: "tags not recorded", command: ["gaps"] }),
  ];
}

/** Gaps with lost values. Reloads are not among them: the operator knows of them and has nothing to do. */
function lostIn({ dayLost, dayReloads = 0 }: Known["gaps"]): number {
  return dayLost - dayReloads;
}

/** Where, when and why values were lost most recently. */
function lastLostOf(gaps: Known["gaps"]): ProblemItem {
  const { lastLost: last } = gaps;
  const lost = lostIn(gaps);
  const detail = `${counted(lost, "gap")} could not be filled`;
  if (!last) return { detail };
  const why = `${words.gapCause[last.cause].word}: ${last.reason}`;
  return {
    detail: lost === 1 ? why : `${detail}, the latest: ${why}`,
    gap: { from: last.from, ...(last.to !== undefined && { to: last.to }) },
    ...(last.source !== undefined && { source: last.source }),
  };
}

function fromUpload({ upload, buffer, cluster }: Known): Finding[] {
  const { state, refusedPoints, url } = upload;
  const { error = url, remedy = "" } = upload;
  const isWaiting = state === "retrying" && buffer.unsettledPoints > 0;
  const detail = isWaiting ? `${error}; ${pointsWait(buffer.unsettledPoints)} on disk` : error;
  return [
    ...(state === "delivering" || state === "standby" ? [] : [{ ...outageOf(state), detail, remedy }]),
    ...when(state === "standby" && cluster?.connected === true && cluster.delivers === undefined, {
      level: "warn",
      text: "no agent of the cluster delivers",
      detail: "points stay in the stream until one does",
    }),
    ...when(refusedPoints > 0, {
      level: "bad",
      text: `${counted(refusedPoints, "point")} refused`,
      detail: "the service does not accept them",
      remedy: "correct what the reasons name, then send them again",
      command: ["rejects", "list"],
    }),
  ];
}

/** An online source without a reading for this long is silent, where others give some. In microseconds. */
const silentUs = 300e6;

function silentSources({ sources, time }: Pick<Known, "sources" | "time">): Known["sources"] {
  return sources.filter(
    ({ state, readingsPerSecond, lastReading, since }) =>
      state === "online" && readingsPerSecond === 0 && time - Math.max(lastReading ?? 0, since) >= silentUs,
  );
}

function fromSources({ sources, time }: Known): Finding[] {
  const inState = (wanted: string) => sources.filter(({ state }) => state === wanted);
  const offline = inState("waiting");
  const connecting = inState("opening");
  const silent = silentSources({ sources, time });
  const troubled = inState("online").filter(({ error }) => error !== undefined);
  const item = (level: Finding["level"], text: string) => (source: Known["sources"][number]) => ({
    level,
    text,
    detail: source.error ?? source.url ?? source.type,
    remedy: source.remedy ?? "",
    source: source.name,
  });
  return [
    ...offline.map(item("warn", `${counted(offline.length, "source")} ${words.source.waiting.word}`)),
    ...troubled.map(item("warn", `${counted(troubled.length, "source")} with errors`)),
    ...silent.map(({ name, lastReading }) => ({
      level: "note" as const,
      text: `${counted(silent.length, "source")} silent`,
      detail:
        lastReading === undefined ? "no reading yet" : `no reading for ${roughSpan((time - lastReading) / 1_000)}`,
      source: name,
    })),
    ...connecting.map(item("note", `${counted(connecting.length, "source")} ${words.source.opening.word}`)),
  ];
}

function fromBacklog({ time, buffer: { unsettledPoints, oldest }, upload }: Known): Finding[] {
  const isBacklog =
    unsettledPoints > 0 && oldest !== undefined && time - oldest > onItsWayUs + upload.intervalMs * 1_000;
  if (!isBacklog || upload.state !== "delivering") return [];
  const { trend, text } = upload.backlog;
  const titles = { growing: "backlog grows", steady: "backlog does not shrink" } as const;
  const title = trend === "growing" || trend === "steady" ? titles[trend] : "delivering a backlog";
  const age = roughSpan((time - oldest) / 1_000);
  return [
    {
      level: "warn",
      text: title,
      detail: `${pointsWait(unsettledPoints)}, the oldest for ${age}${text === "" || text === title ? "" : `; ${text}`}`,
      ...(trend === "growing" && { remedy: "send less (report, every), or see why the service is slow" }),
    },
  ];
}

function when(isSo: boolean, finding: Finding): Finding[] {
  return isSo ? [finding] : [];
}
