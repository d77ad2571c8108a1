// `tagferry status`: what the running agent says of itself, with what to do where something is wrong.
import { sourceWords } from "../../agent/status/overall.ts";
import { AgentError } from "../../core/errors.ts";
import { formatByteSize } from "../../lib/byte-size.ts";
import { type AgentAddressOptions, agentUrl, askAgent } from "../shared/agent-address.ts";
import type { Console } from "../terminal/console.ts";
import { type ExitStatus, exitStatus } from "../terminal/exit-status.ts";
import { count, number, percent, span } from "../terminal/figures.ts";
import { columns, visible } from "../terminal/table.ts";
import { type AnsweredStatus, answeredStatus } from "./status-schema.ts";

interface StatusOptions extends AgentAddressOptions {
  readonly json?: boolean;
}

/** Tags without a good value that are named; the others are counted. */
const mostTags = 10;

/** Resolves once it is printed. Rejects with `AGENT_UNREACHABLE`, or as `loadConfig` does. */
export async function status(options: StatusOptions, io: Console): Promise<ExitStatus> {
  const url = await agentUrl(options, io);
  const answer = await askAgent(url, "/api/status", io.signal);
  const parsed = answeredStatus.safeParse(answer);
  if (!parsed.success) throw new AgentError("AGENT_UNREACHABLE", `what answers at ${url} is no agent`);
  if (options.json === true) io.print(JSON.stringify(answer, undefined, 2));
  else for (const line of report(url, parsed.data)) io.print(line);
  return exitStatus.done;
}

function report(url: string, answered: AnsweredStatus): readonly string[] {
  const { agent, warnings, overall } = answered;
  return [
    visible(`${agent.name}: tagferry ${agent.version}, up ${span(agent.uptimeMs)}, ${url}`),
    ...(overall ? [visible(overall.text)] : []),
    "",
    ...delivery(answered),
    ...buffer(answered),
    ...gaps(answered),
    "",
    ...sources(answered),
    ...tags(answered),
    ...warnings.flatMap(({ level, message, remedy }) => ["", ...told(`${level}: ${message}`, remedy)]),
  ];
}

function delivery({ upload, time }: AnsweredStatus): readonly string[] {
  const { state, since, url, integration, lagMs, backlog, requests, points, refusedPoints } = upload;
  return [
    visible(`delivery  ${state} for ${span((time - since) / 1_000)}, to ${url} as ${integration}`),
    `          ${[
      lagMs === undefined ? "nothing delivered yet" : `lag ${span(lagMs)}`,
      `${count(points, "point")} in ${count(requests, "request")} since the start`,
      budget(upload),
      ...(backlog === undefined ? [] : [`backlog: ${visible(backlog.text)}`]),
      ...(refusedPoints === 0 ? [] : [`${count(refusedPoints, "point")} refused for good, see tagferry rejects list`]),
    ].join(", ")}`,
    ...troubleOf(upload, "          "),
    ...signals({ upload, time }),
  ];
}

/** How often requests go out says little without how much there is in them: fresh points go as often as is permitted. */
function budget({ budgetShare, bytesPerRequest = 0 }: AnsweredStatus["upload"]): string {
  const used = `${percent(budgetShare)} of the permitted requests used`;
  return bytesPerRequest === 0 ? used : `${used}, ${formatByteSize(bytesPerRequest)} in each`;
}

function signals({ upload: { signals: known }, time }: Pick<AnsweredStatus, "upload" | "time">): readonly string[] {
  if (!known || known.known === 0) return [];
  const { checkedAt, lost = 0, changed = 0, unconfigured = 0, published } = known;
  const compared = checkedAt === undefined ? "not compared" : `compared ${span((time - checkedAt) / 1_000)} ago`;
  return [
    `signals   ${[
      `${known.saved} of ${known.known} saved`,
      `${compared} with the service`,
      ...(lost + changed === 0 ? [] : [`${lost} lost and ${changed} changed there, saved again`]),
      ...(unconfigured === 0 ? [] : [`${unconfigured} there that are not configured, see tagferry signals diff`]),
      ...(published === undefined ? [] : [`${count(published, "item")} published`]),
    ].join(", ")}`,
  ];
}

function buffer({ buffer: { bytes, maxBytes, unsettledPoints, oldest }, time }: AnsweredStatus): readonly string[] {
  const age = oldest === undefined || unsettledPoints === 0 ? "" : `, the oldest ${span((time - oldest) / 1_000)} old`;
  return [
    `buffer    ${formatByteSize(bytes)} of ${formatByteSize(maxBytes)}, ${count(unsettledPoints, "point")} to deliver${age}`,
  ];
}

function gaps({ gaps: some }: AnsweredStatus): readonly string[] {
  if (!some || (some.open === 0 && some.dayLost === 0)) return [];
  const { open, day, dayLost } = some;
  return [`gaps      ${open} open, ${day} in the last 24 h, ${dayLost} of them with values lost, see tagferry gaps`];
}

function sources({ sources: all, time }: AnsweredStatus): readonly string[] {
  if (all.length === 0) return ["no sources"];
  const lines = columns(
    all.map(({ name, type, url = "", state, since, tags: tagged, readingsPerSecond }) => [
      name,
      type,
      `${wordOf(state)} for ${span((time - since) / 1_000)}`,
      count(tagged, "tag"),
      `${number(readingsPerSecond)} readings/s`,
      url,
    ]),
  );
  return [
    "sources",
    ...all.flatMap((source, i) => [lines[i] ?? "", ...troubleOf(source, "      "), ...standing(source)]),
  ];
}

/** What holds as long as the source is configured as it is, and the device is as it is. */
function standing({ details = {} }: AnsweredStatus["sources"][number]): readonly string[] {
  return ["warning", "weakness", "advice"].flatMap((kind) =>
    details[kind] === undefined ? [] : [`      ${kind}: ${visible(String(details[kind]))}`],
  );
}

/** The page's word for it. An agent of another version may know more states. */
function wordOf(state: string): string {
  return Object.entries(sourceWords).find(([known]) => known === state)?.[1] ?? state;
}

function tags({ tags: all }: AnsweredStatus): readonly string[] {
  const bad = all.filter(({ quality }) => quality !== "good");
  if (bad.length === 0) return [];
  const more = bad.length - mostTags;
  return [
    "",
    `${count(bad.length, "tag")} of ${all.length} without a good value`,
    ...columns(
      bad
        .slice(0, mostTags)
        .map(({ source, input, address, quality = "nothing read yet", reason }) => [
          source,
          input,
          address,
          reason ?? quality,
        ]),
    ),
    ...(more > 0 ? [`  and ${more} more; the status page lists them all`] : []),
  ];
}

function troubleOf({ error, remedy }: AnsweredStatus["upload"] | AnsweredStatus["sources"][number], indent: string) {
  return error === undefined ? [] : told(error, remedy).map((line) => indent + line);
}

function told(message: string, remedy: string | undefined): string[] {
  return [visible(message), ...(remedy === undefined ? [] : [`  ${visible(remedy)}`])];
}
