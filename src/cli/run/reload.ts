// `tagferry reload`: the running agent takes up its changed configuration, and it is told what that did.
import { z } from "zod";
import { formatIssue } from "../../config/issue.ts";
import { AgentError } from "../../core/errors.ts";
import { type AgentAddressOptions, agentUrl } from "../shared/agent-address.ts";
import { askWithToken } from "../shared/agent-token.ts";
import type { Console } from "../terminal/console.ts";
import { type ExitStatus, exitStatus } from "../terminal/exit-status.ts";
import { count } from "../terminal/figures.ts";
import { visible } from "../terminal/table.ts";

export interface ReloadOptions extends AgentAddressOptions {
  readonly json?: boolean;
  /** File with `http.token` in it, for an agent on another machine. */
  readonly tokenFile?: string;
}

const issue = z.object({
  severity: z.enum(["error", "warning"]),
  file: z.string(),
  line: z.number(),
  column: z.number(),
  path: z.string(),
  message: z.string(),
  hint: z.string().exactOptional(),
  excerpt: z.string().exactOptional(),
});
const names = z.array(z.string());
const answered = z.union([
  z.object({
    ok: z.literal(true),
    started: names,
    restarted: names,
    stopped: names,
    unchanged: names,
    needRestart: names,
    warnings: z.array(issue),
  }),
  z.object({ ok: z.literal(false), reason: z.string(), errors: z.array(issue) }),
]);
type Answered = z.output<typeof answered>;

/**
 * Resolves with `config` where the file is wrong, after every error was printed: then nothing was changed. Rejects with
 * `AGENT_UNREACHABLE`, or with `AGENT_REFUSED` where it may not be asked.
 */
export async function reload(options: ReloadOptions, io: Console): Promise<ExitStatus> {
  const url = await agentUrl(options, io);
  const answer = await askWithToken(url, { method: "POST", path: "/api/reload" }, options, io);
  const parsed = answered.safeParse(answer);
  if (!parsed.success) throw new AgentError("AGENT_UNREACHABLE", `what answers at ${url} is no agent that can reload`);
  if (options.json === true) io.print(JSON.stringify(answer, undefined, 2));
  else for (const line of report(parsed.data).flatMap((text) => text.split("\n"))) io.print(visible(line));
  if (parsed.data.ok) return exitStatus.done;
  return parsed.data.errors.length > 0 ? exitStatus.config : exitStatus.failed;
}

function report(answer: Answered): readonly string[] {
  if (!answer.ok)
    return [...answer.errors.map(formatIssue), `${answer.reason}; nothing was changed, the agent runs on as before`];
  const { started, restarted, stopped, unchanged, needRestart, warnings } = answer;
  const changes = [
    ["started", started],
    ["started anew", restarted],
    ["stopped", stopped],
  ] as const;
  const told = changes.filter(([, sources]) => sources.length > 0);
  return [
    ...warnings.map(formatIssue),
    ...told.map(([what, sources]) => `${what}: ${sources.join(", ")}`),
    told.length === 0 ? "no source has changed" : `${count(unchanged.length, "source")} did not notice`,
    ...(needRestart.length === 0
      ? []
      : [`not in effect before the agent is started anew: changes of ${needRestart.join(", ")}`]),
  ];
}
