// The state of the agent in one headline, for the status page and `tagferry status`: whether data arrives, whether it is
// delivered, and what the operator must do.
import { problemsOf, silentSources } from "./problems.ts";
import type { Fact, Overall, Problem, Status } from "./status.ts";
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
  if (online === 0) {
    const isStarting = sources.some(({ state }) => state === "opening");
    return {
      level: isStarting ? "note" : "warn",
      text: isStarting ? "no data arrives yet" : "no data arrives",
      detail,
    };
  }
  if (!fresh) return { level: "note", text: last === 0 ? "no data has arrived yet" : "no data at the moment", detail };
  if (online < sources.length)
    return { level: "warn", text: `data arrives from ${online} of ${sources.length} sources`, detail };
  const silent = silentSources({ sources, time }).length;
  if (silent > 0)
    return { level: "note", text: `data arrives from ${online - silent} of ${sources.length} sources`, detail };
  return { level: "good", text: "data arrives", detail };
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
  switch (state) {
    case "delivering": {
      if (lagMs === undefined) return { level: "note", text: "nothing delivered yet", detail: waits };
      const isLate = backlog.trend === "growing" || backlog.trend === "steady";
      const isIdle = buffer.unsettledPoints === 0 && !isFresh({ sources, time });
      const text = isIdle ? "nothing waits to be delivered" : "delivering";
      const behind = backlog.trend === "none" ? "" : `, backlog ${backlog.text}`;
      return { level: isLate ? "warn" : "good", text, detail: `lag ${lagText(lagMs)}${behind}` };
    }
    case "standby": {
      const { connected = true, delivers } = cluster ?? {};
      const leader =
        delivers === undefined ? "no agent of the cluster delivers" : `${delivers} delivers for the cluster`;
      return {
        level: connected ? "note" : "warn",
        text: connected ? leader : words.delivery.standby.word,
        detail: waits,
      };
    }
    case "held":
    case "retrying":
    case "stopped": {
      const { word, level } = words.delivery[state];
      const text = state === "retrying" ? word : `delivery ${word}`;
      return { level, text, detail: `for ${since}, ${waits}${full(backlog.fullMs)}` };
    }
  }
}

function full(fullMs: number | undefined): string {
  return fullMs === undefined ? "" : `, buffer full in about ${roughSpan(fullMs)}`;
}

function rateText(rate: number): string {
  return rate < 10 ? String(Number(rate.toFixed(1))) : groupedDigits(Math.round(rate));
}

function lagText(ms: number): string {
  return ms < 1_000 ? "below 1 s" : ms < 90_000 ? `${Math.round(ms / 1_000)} s` : roughSpan(ms);
}
