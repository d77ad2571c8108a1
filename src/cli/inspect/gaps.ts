// `tagferry gaps`: lists the gaps from the running agent, or from its data directory.
import { readdir } from "node:fs/promises";
import { type Gap, type GapList, gapListSchema } from "../../agent/gaps/gap.ts";
import { type GapContent, gapFolder, readGapFolder } from "../../agent/gaps/gap-file.ts";
import { newest } from "../../agent/gaps/gap-rows.ts";
import { words } from "../../agent/status/words.ts";
import { isAgentError } from "../../core/errors.ts";
import { epochMicros } from "../../core/point.ts";
import { type AgentQuery, findAgent, placeOfAgent } from "../shared/agent-client.ts";
import type { Console } from "../terminal/console.ts";
import { columns, count, printResult, span } from "../terminal/text.ts";

interface GapsOptions extends AgentQuery {
  /** In milliseconds. */
  readonly since: number;
}

const mostRows = 5_000;
const namedInputs = 2;

/** Resolves once they are printed. Rejects with `AGENT_UNREACHABLE` without both an agent and a configuration. */
export async function gaps(options: GapsOptions, io: Console): Promise<void> {
  const { list, from } = await gapsFrom(options, io);
  printResult(options, list, () => report(list, from, options.since), io);
}

/** Asks the agent. If none answers, reads its data directory without a lock. */
async function gapsFrom(options: GapsOptions, io: Console): Promise<{ list: GapList; from: string }> {
  const { since, config, url } = options;
  try {
    const agent = await findAgent(options, io);
    const path = `/api/gaps?since=${since}ms&most=${mostRows}`;
    return { list: (await agent.ask(path, gapListSchema)).data, from: agent.url };
  } catch (error) {
    if (config === undefined || url !== undefined || !isAgentError(error, "AGENT_UNREACHABLE")) throw error;
    const folder = gapFolder((await placeOfAgent(config, io.environment)).dataDir);
    const time = Date.now() * 1_000;
    // An unreadable folder must not look like "no gaps".
    await readdir(folder).catch((failure: NodeJS.ErrnoException) => {
      if (failure.code !== "ENOENT") throw failure;
    });
    return { list: leftBehind(await readGapFolder(folder), time, since), from: `${folder}, no agent answers` };
  }
}

/** The record of an agent that is not running, with an open gap for each of its sources. */
function leftBehind({ gaps: known, life }: GapContent, time: number, sinceMs: number): GapList {
  const all = [...known.values()];
  const goesOn = new Set(all.filter(({ to }) => to === undefined).map(({ source }) => source));
  for (const [source, from] of Object.entries(life?.sources ?? {})) {
    if (
      goesOn.has(source) &&
      all.some((gap) => gap.source === source && gap.to === undefined && gap.inputs.length === 0)
    )
      continue;
    const reason = life?.stopped ? "the agent was stopped" : "the agent was killed, or the machine went down";
    all.push({ id: 0, source, cause: "agentDown", reason, from, state: "open", tags: 0, inputs: [], times: 1 });
  }
  const since = all.reduce((least, { from }) => Math.min(least, from), Number.POSITIVE_INFINITY);
  return {
    time: epochMicros(time),
    ...newest(all, time - sinceMs * 1_000, mostRows),
    ...(all.length > 0 && { since: epochMicros(since) }),
  };
}

function report({ gaps: rows, more, time }: GapList, from: string, sinceMs: number): readonly string[] {
  if (rows.length === 0) return [`no gaps in the last ${span(sinceMs)} (${from})`];
  const lines = [
    ["from", "to", "how long", "source", "tags", "state", "cause"],
    ...rows.map((gap) => cells(gap, time)),
  ];
  const lost = rows.filter(({ state }) => state === "lost" || state === "partly").length;
  const open = rows.filter(({ to }) => to === undefined).length;
  return [
    ...columns(lines),
    ...(more > 0 ? [`  and ${count(more, "gap")} more`] : []),
    `${count(rows.length + more, "gap")} in the last ${span(sinceMs)}, ${open} open, ${lost} with values lost (${from})`,
  ];
}

function cells(gap: Gap, now: number): readonly string[] {
  const { source = "(buffer)", from, to, times, missingMs, cause, reason, outcome, points } = gap;
  const long = span(missingMs ?? (now - from) / 1_000);
  const what = [
    `${words.gapCause[cause].word}: ${reason}`,
    ...(points === undefined ? [] : [count(points, "point")]),
    ...(outcome === undefined ? [] : [outcome]),
  ].join("; ");
  const often = times > 1 ? `${long} in ${count(times, "time")}` : long;
  return [moment(from), to === undefined ? "" : moment(to), often, source, tagsOf(gap), stateOf(gap), what];
}

function stateOf({ state, unfilled, tags }: Gap): string {
  return state === "partly" && unfilled ? `filled, ${unfilled.tags} of ${tags || "all"} lost` : words.gap[state].word;
}

function tagsOf({ tags, inputs }: Gap): string {
  if (inputs.length === 0) return tags > 0 ? `all ${tags}` : "all";
  const named = inputs.slice(0, namedInputs).join(", ");
  const more = Math.max(tags, inputs.length) - Math.min(inputs.length, namedInputs);
  return more > 0 ? `${named} and ${more} more` : named;
}

/** UTC to the second; local time would need its zone. */
function moment(time: number): string {
  return new Date(time / 1_000).toISOString().replace(/\.\d+Z$/, "Z");
}
