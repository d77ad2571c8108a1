// `tagferry fleet status`: one table of many agents.
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import PQueue from "p-queue";
import { z } from "zod";
import { isAgentError } from "../../core/errors.ts";
import { fileProblem } from "../../lib/files/paths.ts";
import { visible } from "../../lib/text/visible.ts";
import { type AgentQuery, askAgent, tokenOf } from "../shared/agent-client.ts";
import { trustAlso } from "../shared/agent-trust.ts";
import type { Console } from "../terminal/console.ts";
import { CommandFailed, type ExitStatus, exitStatus } from "../terminal/exit-status.ts";
import { columns, count, number, printResult, span } from "../terminal/text.ts";

interface FleetOptions extends Pick<AgentQuery, "tokenFile" | "caFile" | "json"> {
  /** Milliseconds for each agent. */
  readonly timeout: number;
}

/** A text of an agent, which may be any program. */
const shortText = z.string().transform((text) => text.slice(0, mostLength));
const mostLength = 300;

/** The parts of `/api/view` that are used. Other versions of the agent may send more, or less. */
const answeredView = z.object({
  status: z.object({
    overall: z.object({ level: z.enum(["good", "warn", "bad"]), text: shortText }),
    agent: z.object({ name: shortText, version: shortText, config: z.object({ checksum: shortText }).optional() }),
    sources: z.array(z.object({ state: z.string() })),
    buffer: z.object({ losses: z.array(z.object({ points: z.number() })).default([]) }),
    upload: z.object({ lagMs: z.number().optional(), backlogPoints: z.number(), refusedPoints: z.number() }),
  }),
});

/** One agent. All but `url`, `level` and `text` are left out if it does not answer. */
interface FleetRow {
  readonly url: string;
  readonly level: "good" | "warn" | "bad" | "unreachable";
  /** The headline of its status, or why it does not answer. */
  readonly text: string;
  readonly name?: string;
  readonly version?: string;
  /** Left out by versions that do not know it, like `lagMs` before the first delivery. */
  readonly checksum?: string;
  readonly sources?: { readonly online: number; readonly configured: number };
  readonly lagMs?: number;
  readonly backlogPoints?: number;
  /** Points that will never be delivered, since the buffer was created. */
  readonly lostPoints?: number;
  /** Since the agent started. */
  readonly refusedPoints?: number;
}

/** Agents that are asked at the same time. */
const atATime = 16;
/** Of an answer without tags. A source takes about 200 bytes in it, more with an error. */
const mostBytes = 4 * 2 ** 20;

/** Resolves with `unreachable` if any agent does not answer, with `failed` if one needs an operator. */
export async function fleetStatus(
  targets: readonly string[],
  { timeout, tokenFile, caFile, json = false }: FleetOptions,
  io: Console,
): Promise<ExitStatus> {
  const urls = [...new Set((await Promise.all(targets.map((target) => urlsOf(target, io)))).flat())];
  if (urls.length === 0) throw new CommandFailed(`${targets.join(", ")}: no addresses of agents`, exitStatus.usage);
  if (caFile !== undefined) await trustAlso(caFile);
  const token = tokenFile === undefined ? undefined : await tokenOf(tokenFile);
  const queue = new PQueue({ concurrency: atATime });
  const rows = await queue.addAll(urls.map((url) => () => rowOf(url, timeout, token, io.signal)));
  const has = (...levels: FleetRow["level"][]) => rows.some(({ level }) => levels.includes(level));
  printResult({ json }, { ok: !has("bad", "unreachable"), agents: rows }, () => report(rows), io);
  return has("unreachable") ? exitStatus.unreachable : has("bad") ? exitStatus.failed : exitStatus.done;
}

/** A file has an address a line; what follows # is a comment. */
async function urlsOf(target: string, { environment }: Console): Promise<readonly string[]> {
  if (/^https?:\/\//i.test(target)) return [target];
  const text = await readFile(resolve(environment.cwd, target), "utf8").catch((error: unknown) => {
    throw new CommandFailed(`${target} is no address (http://…) and no file with addresses: ${fileProblem(error)}`, 2);
  });
  return text.split("\n").flatMap((line, index) => {
    const url = line.replace(/(^|\s)#.*/, "").trim();
    if (url === "") return [];
    if (/^https?:\/\/\S+$/i.test(url)) return [url];
    throw new CommandFailed(`${target}:${index + 1}: expected an address such as http://10.0.0.9:8421, got ${url}`, 2);
  });
}

async function rowOf(url: string, withinMs: number, token: string | undefined, signal: AbortSignal): Promise<FleetRow> {
  try {
    const { data } = await askAgent(url, "/api/view?count=0", answeredView, signal, {
      withinMs,
      token,
      mostBytes,
    });
    const { agent, overall, sources, buffer, upload } = data.status;
    return {
      url,
      ...overall,
      name: agent.name,
      version: agent.version,
      ...(agent.config && { checksum: agent.config.checksum }),
      sources: { online: sources.filter(({ state }) => state === "online").length, configured: sources.length },
      ...(upload.lagMs !== undefined && { lagMs: upload.lagMs }),
      backlogPoints: upload.backlogPoints,
      lostPoints: buffer.losses.reduce((sum, { points }) => sum + points, 0),
      refusedPoints: upload.refusedPoints,
    };
  } catch (error) {
    if (!isAgentError(error)) throw error;
    return { url, level: "unreachable", text: error.message };
  }
}

const header = ["agent", "version", "configuration", "sources", "lag", "backlog", "lost", "refused", "state"];

function report(rows: readonly FleetRow[]): readonly string[] {
  const of = (wanted: FleetRow["level"]) => rows.filter(({ level }) => level === wanted).length;
  const different = (facts: readonly (string | undefined)[]) =>
    new Set(facts.filter((fact) => fact !== undefined)).size;
  return [
    ...columns([header, ...rows.map(cellsOf)]),
    [
      count(rows.length, "agent"),
      `${of("good")} well`,
      ...(["warn", "bad", "unreachable"] as const).flatMap((level) =>
        of(level) === 0 ? [] : [`${of(level)} ${of(level) === 1 ? words[level].one : words[level].many}`],
      ),
      count(different(rows.map(({ version }) => version)), "version"),
      count(different(rows.map(({ checksum }) => checksum)), "configuration"),
    ].join(", "),
  ].map(visible);
}

const words = {
  warn: { one: "late or incomplete", many: "late or incomplete" },
  bad: { one: "needs an operator", many: "need an operator" },
  unreachable: { one: "not reachable", many: "not reachable" },
} as const;

function cellsOf(row: FleetRow): readonly string[] {
  const { url, level, text, name, version = "", checksum = "", sources, lagMs } = row;
  if (level === "unreachable") return [url, "", "", "", "", "", "", "", text];
  return [
    name ?? url,
    version,
    checksum,
    sources ? `${sources.online}/${sources.configured}` : "",
    lagMs === undefined ? "" : span(lagMs),
    ...[row.backlogPoints, row.lostPoints, row.refusedPoints].map((points = 0) =>
      points === 0 ? "0" : number(points),
    ),
    text,
  ];
}
