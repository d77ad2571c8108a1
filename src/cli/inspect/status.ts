// `tagferry status`: the status of the running agent, with remedies for problems.

import { z } from "zod";
import { wordOf, words } from "../../agent/status/words.ts";
import { epochMicros } from "../../core/point.ts";
import { visible } from "../../lib/text/visible.ts";
import { formatByteSize } from "../../lib/values/byte-size.ts";
import { type AgentQuery, findAgent } from "../shared/agent-client.ts";
import type { Console } from "../terminal/console.ts";
import { columns, count, number, percent, printResult, span } from "../terminal/text.ts";

const value = z.number();
const text = z.string();
const textIf = text.optional();
const micros = value.transform(epochMicros);
const microsIf = micros.optional();
const problem = { error: textIf, remedy: textIf };

const source = {
  name: text,
  type: text,
  url: textIf,
  state: text,
  since: micros,
  tags: value,
  readingsPerSecond: value,
};
const stream = { messages: value, bytes: value, maxBytes: value, oldestMs: value, replicas: value };
const member = { node: text, version: text, reads: z.array(text), aliveMs: value.optional() };

/** The parts of `/api/status` that are used. Other versions of the agent may send more. */
const answeredStatus = z.object({
  time: micros,
  overall: z.object({ text }).optional(),
  agent: z.object({
    name: text,
    version: text,
    uptimeMs: value,
    config: z.object({ checksum: text, loadedAt: micros }).optional(),
  }),
  sources: z.array(z.object({ ...source, details: z.record(text, z.union([text, value])).optional(), ...problem })),
  tags: z.array(z.object({ source: text, input: text, address: text, quality: textIf, reason: textIf })),
  buffer: z.object({ bytes: value, unsettledPoints: value, oldest: microsIf, maxBytes: value }),
  upload: z.object({
    state: text,
    since: micros,
    url: text,
    integration: text,
    lagMs: value.optional(),
    /** Left out by some versions of the agent. */
    backlog: z.object({ text }).optional(),
    requests: value,
    points: value,
    refusedPoints: value,
    budgetShare: value,
    bytesPerRequest: value.default(0),
    intervalMs: value.default(1_000),
    traffic: z.object({ sentBytes: value, receivedBytes: value, bytesPerMonth: value.optional() }).optional(),
    signals: z
      .object({
        known: value,
        saved: value,
        checkedAt: microsIf,
        lost: value.default(0),
        changed: value.default(0),
        unconfigured: value.default(0),
        published: value.optional(),
      })
      .optional(),
    ...problem,
  }),
  cluster: z
    .object({
      connected: z.boolean(),
      server: textIf,
      reason: textIf,
      delivers: textIf,
      members: value,
      forwardLagMs: value,
      forwardPaused: textIf,
      hasQuorum: z.boolean().default(true),
      agents: z.array(z.object({ ...member, forwardLagMs: value.optional() })).default([]),
      stream: z.object({ ...stream, replicasInPlace: value }).optional(),
    })
    .optional(),
  gaps: z.object({ open: value, day: value, dayLost: value }).optional(),
  warnings: z.array(z.object({ level: text, message: text, remedy: textIf })),
});
type AnsweredStatus = z.output<typeof answeredStatus>;

const mostTags = 10;

export async function status(options: AgentQuery, io: Console): Promise<void> {
  const { url, ask } = await findAgent(options, io);
  const { answer, data } = await ask("/api/status", answeredStatus);
  printResult(options, answer, () => report(url, data), io);
}

function report(url: string, answered: AnsweredStatus): readonly string[] {
  const { agent, warnings, overall, time } = answered;
  const { config } = agent;
  const loaded = config ? `, configuration ${config.checksum} for ${span((time - config.loadedAt) / 1_000)}` : "";
  return [
    visible(`${agent.name}: tagferry ${agent.version}, up ${span(agent.uptimeMs)}${loaded}, ${url}`),
    ...(overall ? [visible(overall.text)] : []),
    "",
    ...delivery(answered),
    ...cluster(answered),
    ...buffer(answered),
    ...gaps(answered),
    "",
    ...sources(answered),
    ...tags(answered),
    ...warnings.flatMap(({ level, message, remedy }) => ["", ...trouble({ error: `${level}: ${message}`, remedy })]),
  ];
}

function delivery({ upload, time }: AnsweredStatus): readonly string[] {
  const { state, since, url, integration, lagMs, backlog, requests, points, refusedPoints } = upload;
  // The request rate alone tells little, since fresh points are sent as often as permitted.
  const size = upload.bytesPerRequest === 0 ? "" : `, ${formatByteSize(upload.bytesPerRequest)} in each`;
  return [
    visible(
      `delivery  ${wordOf(words.delivery, state)} for ${span((time - since) / 1_000)}, to ${url} as ${integration}`,
    ),
    listed("", [
      lagMs === undefined ? "nothing delivered yet" : `lag ${span(lagMs)}`,
      `${count(points, "point")} in ${count(requests, "request")} since the start`,
      `${percent(upload.budgetShare)} of the permitted requests used${size}`,
      backlog && `backlog: ${visible(backlog.text)}`,
      refusedPoints > 0 && `${count(refusedPoints, "point")} refused for good, see tagferry rejects list`,
    ]),
    ...traffic(upload),
    ...trouble(upload, "          "),
    ...signals({ upload, time }),
  ];
}

function traffic({ traffic: some, intervalMs }: AnsweredStatus["upload"]): readonly string[] {
  if (!some) return [];
  const { sentBytes, receivedBytes, bytesPerMonth } = some;
  return [
    listed("traffic", [
      `sent ${formatByteSize(sentBytes)} and received ${formatByteSize(receivedBytes)} since the start`,
      bytesPerMonth !== undefined && `${formatByteSize(Math.round(bytesPerMonth))} a month at this rate`,
      intervalMs > 1_000 && `a request every ${span(intervalMs)}`,
    ]),
  ];
}

function cluster({ cluster: some }: AnsweredStatus): readonly string[] {
  if (!some) return [];
  const { connected, server, reason, delivers, members, forwardLagMs, hasQuorum, stream, agents } = some;
  return [
    listed("cluster", [
      visible(connected ? `connected to ${server}` : `not reachable: ${reason}`),
      connected && visible(delivers === undefined ? "no agent delivers" : `${delivers} delivers`),
      connected && `${count(members, "agent")}`,
      connected && !hasQuorum && "the servers have no quorum",
      forwardLagMs > 1_000 && `hands over ${span(forwardLagMs)} late`,
    ]),
    ...(stream
      ? [
          listed("", [
            `stream: ${count(stream.messages, "message")}, ${formatByteSize(stream.bytes)} of ${formatByteSize(stream.maxBytes)}`,
            stream.messages > 0 && `the oldest ${span(stream.oldestMs)} old`,
            `${stream.replicasInPlace} of ${count(stream.replicas, "replica")} in place`,
          ]),
        ]
      : []),
    ...agents
      .toSorted((a, b) => (a.node < b.node ? -1 : 1))
      .map((agent) => listed("", [visible(`${agent.node}: ${memberText(agent)}`)])),
  ];
}

type AnsweredMember = NonNullable<AnsweredStatus["cluster"]>["agents"][number];

function memberText({ aliveMs, version, reads, forwardLagMs = 0 }: AnsweredMember): string {
  if (aliveMs === undefined) return "gone";
  const late = forwardLagMs > 1_000 ? `, hands over ${span(forwardLagMs)} late` : "";
  return `${reads.length === 0 ? "reads nothing" : `reads ${reads.join(", ")}`}, tagferry ${version}${late}`;
}

/** One line of the report with all facts that are texts. */
function listed(title: string, facts: readonly (string | false | undefined)[]): string {
  return `${title.padEnd(10)}${facts.filter((fact) => typeof fact === "string").join(", ")}`;
}

function signals({ upload: { signals: all }, time }: Pick<AnsweredStatus, "upload" | "time">): readonly string[] {
  if (!all || all.known === 0) return [];
  const { checkedAt, lost, changed, unconfigured, published } = all;
  const compared = checkedAt === undefined ? "not compared" : `compared ${span((time - checkedAt) / 1_000)} ago`;
  return [
    listed("signals", [
      `${all.saved} of ${all.known} saved`,
      `${compared} with the service`,
      lost + changed > 0 && `${lost} lost and ${changed} changed there, saved again`,
      unconfigured > 0 && `${unconfigured} there that are not configured, see tagferry signals diff`,
      published !== undefined && `${count(published, "item")} published`,
    ]),
  ];
}

function buffer({ buffer: { bytes, maxBytes, unsettledPoints, oldest }, time }: AnsweredStatus): readonly string[] {
  return [
    listed("buffer", [
      `${formatByteSize(bytes)} of ${formatByteSize(maxBytes)}`,
      `${count(unsettledPoints, "point")} to deliver`,
      oldest !== undefined && unsettledPoints > 0 && `the oldest ${span((time - oldest) / 1_000)} old`,
    ]),
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
    all.map(({ name, type, url = "", state, since, tags: tagged, readingsPerSecond, details }) => [
      name,
      type,
      `${wordOf(words.source, state)} for ${span((time - since) / 1_000)}${
        details?.["reader"] === undefined ? "" : `, read by ${visible(String(details["reader"]))}`
      }`,
      count(tagged, "tag"),
      `${number(readingsPerSecond)} readings/s`,
      url,
    ]),
  );
  return [
    "sources",
    ...all.flatMap((source, i) => [
      lines[i] ?? "",
      ...trouble(source, "      "),
      // Permanent findings about the configuration of the source and its device.
      ...["warning", "weakness", "advice"].flatMap((kind) => {
        const text = source.details?.[kind];
        return text === undefined ? [] : [`      ${kind}: ${visible(String(text))}`];
      }),
    ]),
  ];
}

function tags({ tags: all }: AnsweredStatus): readonly string[] {
  const bad = all.filter(({ quality }) => quality !== "good");
  if (bad.length === 0) return [];
  const more = bad.length - mostTags;
  const rows = bad
    .slice(0, mostTags)
    .map(({ source, input, address, quality = "nothing read yet", reason = quality }) => [
      source,
      input,
      address,
      reason,
    ]);
  return [
    "",
    `${count(bad.length, "tag")} of ${all.length} without a good value`,
    ...columns(rows),
    ...(more > 0 ? [`  and ${more} more; the status page lists them all`] : []),
  ];
}

function trouble(
  { error, remedy }: Pick<AnsweredStatus["upload"], "error" | "remedy">,
  indent = "",
): readonly string[] {
  if (error === undefined) return [];
  return [visible(error), ...(remedy === undefined ? [] : [`  ${visible(remedy)}`])].map((line) => indent + line);
}
