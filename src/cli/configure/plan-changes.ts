// `tagferry plan`: what a changed configuration would do, compared with another file or with the running agent.
import { resolve } from "node:path";
import { z } from "zod";
import { type ConfigPlan, configPlan, planOf } from "../../agent/config-plan.ts";
import { type Environment, packaged } from "../../config/files/environment.ts";
import type { Config } from "../../config/format/config.ts";
import { configIssues, loadConfig } from "../../config/load.ts";
import { formatIssue } from "../../config/nodes/issue.ts";
import { commandLine } from "../../core/errors.ts";
import { leavesMachine } from "../../lib/network/listen.ts";
import { visible } from "../../lib/text/visible.ts";
import { formatByteSize } from "../../lib/values/byte-size.ts";
import { answeredIssues } from "../run/reload.ts";
import { type AgentQuery, findAgent } from "../shared/agent-client.ts";
import type { Console } from "../terminal/console.ts";
import { CommandFailed, type ExitStatus, exitStatus } from "../terminal/exit-status.ts";
import { columns, count, number, printResult } from "../terminal/text.ts";
import { printErrors } from "./check.ts";

interface PlanOptions extends AgentQuery {
  readonly from?: string;
}

const answered = z.union([
  configPlan.extend({ ok: z.literal(true), file: z.string() }),
  z.object({ ok: z.literal(false), reason: z.string(), errors: answeredIssues }),
]);

/** Resolves with `config` if the changed file is invalid. Without `from`, rejects as `reload` does. */
export async function planChanges(options: PlanOptions, io: Console): Promise<ExitStatus> {
  return options.from === undefined ? await planOfAgent(options, io) : await planOfFiles(options.from, options, io);
}

async function planOfFiles(from: string, { config: file, json = false }: PlanOptions, io: Console) {
  if (file === undefined) throw new CommandFailed("the changed configuration is required: -c FILE", exitStatus.usage);
  // A copy of the file elsewhere belongs to the same data directory.
  const variables = { STATE_DIRECTORY: packaged.dataDir, ...io.environment.variables };
  const environment: Environment = { ...io.environment, variables };
  let to: Config;
  try {
    to = await loadConfig(file, environment);
  } catch (error) {
    return printErrors(error, file, json, io);
  }
  const before = await loadConfig(from, environment).catch((error: unknown) => {
    const errors = count(configIssues(error).length, "error");
    throw new CommandFailed(
      `nothing to compare ${file} with: ${from} has ${errors}; ${commandLine(["check"], from)} lists them`,
    );
  });
  const planned = planOf(before, to);
  printResult({ json }, { ok: true, ...planned }, () => report(planned).map(visible), io);
  return exitStatus.done;
}

async function planOfAgent(options: PlanOptions, io: Console): Promise<ExitStatus> {
  const { url, askControl } = await findAgent(options, io);
  const { answer, data } = await askControl("/api/plan", answered);
  if (data.ok && options.url === undefined && options.config !== undefined && !leavesMachine(url)) {
    const file = resolve(io.environment.cwd, options.config);
    // The agent reads its own file, as at a reload.
    if (file !== data.file)
      throw new CommandFailed(
        `the agent at ${url} has ${data.file}, not ${file}; compare the files: --from ${data.file}`,
        exitStatus.usage,
      );
  }
  const lines = () => (data.ok ? report(data) : [...data.errors.map(formatIssue), data.reason]);
  printResult(options, answer, () => lines().flatMap((text) => text.split("\n").map(visible)), io);
  if (data.ok) return exitStatus.done;
  return data.errors.length > 0 ? exitStatus.config : exitStatus.failed;
}

/** Names in a line. All of them are in the JSON. */
const mostNames = 8;
const mostLines = 100;

function report({ sources, needRestart, settings, inputs, forecast: { from, to } }: ConfigPlan): readonly string[] {
  const { added, removed, renamed, changed } = inputs;
  const arrow = (each: { readonly from: string | null; readonly to: string | null }) =>
    `${each.from ?? "(none)"} → ${each.to ?? "(none)"}`;
  const marked = (meaning: boolean) => changed.filter((each) => each.meaning === meaning);
  const grouped = (changes: typeof changed) =>
    [...Map.groupBy(changes, (each) => `${each.field}: ${arrow(each)}`)].map(
      ([what, of]) => `  ${what}, of ${listed(of.map(({ input }) => input))}`,
    );
  const sections: readonly (readonly [title: string, lines: readonly string[]])[] = [
    ["may change the meaning of values; recorded ones stay as they are", grouped(marked(true))],
    [
      "Input IDs renamed at the same address: each is a new signal, recorded values stay at the old one",
      renamed.map((each) => `  ${arrow(each)}`),
    ],
    ["Input IDs removed: their signals and values stay at the service", removed.map((input) => `  ${input}`)],
    ["Input IDs added", added.map((input) => `  ${input}`)],
    ["other changes of Input IDs", grouped(marked(false))],
    ["settings", columns(settings.map((each) => [each.path, arrow(each)]))],
  ];
  const lines = [
    ...(["stopped", "restarted", "started"] as const).flatMap((what) =>
      sources[what].length === 0 ? [] : [`sources ${what}: ${sources[what].join(", ")}`],
    ),
    ...(needRestart.length === 0 ? [] : [`the agent must be restarted for changes of ${needRestart.join(", ")}`]),
    ...sections.flatMap(([title, all]) => (all.length === 0 ? [] : [title, ...shortened(all)])),
  ];
  if (lines.length === 0) return ["nothing changes"];
  const load = (of: typeof from) =>
    `${number(of.pointsPerDay)} points a day, ${formatByteSize(of.bytesPerMonth)} a month`;
  return [
    ...lines,
    load(from) === load(to) ? `at most ${load(to)}, as before` : `at most ${load(to)}; before: ${load(from)}`,
  ];
}

function shortened(lines: readonly string[]): readonly string[] {
  const more = lines.length - mostLines;
  return more > 0 ? [...lines.slice(0, mostLines), `  and ${more} more; --json has all`] : lines;
}

function listed(names: readonly string[]): string {
  const more = names.length - mostNames;
  return names.slice(0, mostNames).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
