// `tagferry reload`: the running agent applies its changed configuration, and the result is printed.
import { z } from "zod";
import { formatIssue } from "../../config/nodes/issue.ts";
import { visible } from "../../lib/text/visible.ts";
import { type AgentQuery, findAgent } from "../shared/agent-client.ts";
import type { Console } from "../terminal/console.ts";
import { type ExitStatus, exitStatus } from "../terminal/exit-status.ts";
import { count, printResult } from "../terminal/text.ts";

export const answeredIssues = z.array(
  z.object({
    severity: z.enum(["error", "warning"]),
    file: z.string(),
    line: z.number(),
    column: z.number(),
    path: z.string(),
    message: z.string(),
    hint: z.string().exactOptional(),
    excerpt: z.string().exactOptional(),
  }),
);
const names = z.array(z.string());
const changed = { started: names, restarted: names, stopped: names, unchanged: names, needRestart: names };
const answered = z.union([
  z.object({ ok: z.literal(true), ...changed, warnings: answeredIssues }),
  z.object({ ok: z.literal(false), reason: z.string(), errors: answeredIssues }),
]);
type Answered = z.output<typeof answered>;

/**
 * Resolves with `config` if the file is invalid. Rejects with `AGENT_UNREACHABLE`, or `AGENT_REFUSED` without
 * permission.
 */
export async function reload(options: AgentQuery, io: Console): Promise<ExitStatus> {
  const { answer, data } = await (await findAgent(options, io)).askControl("/api/reload", answered, "POST");
  const lines = () => report(data).flatMap((text) => text.split("\n").map(visible));
  printResult(options, answer, lines, io);
  if (data.ok) return exitStatus.done;
  return data.errors.length > 0 ? exitStatus.config : exitStatus.failed;
}

function report(answer: Answered): readonly string[] {
  if (!answer.ok)
    return [...answer.errors.map(formatIssue), `${answer.reason}; nothing was changed, the agent runs on as before`];
  const { started, restarted, stopped, unchanged, needRestart, warnings } = answer;
  const changes = [
    ["started", started],
    ["restarted", restarted],
    ["stopped", stopped],
  ] as const;
  const changed = changes.filter(([, sources]) => sources.length > 0);
  return [
    ...warnings.map(formatIssue),
    ...changed.map(([what, sources]) => `${what}: ${sources.join(", ")}`),
    changed.length === 0 ? "no source has changed" : `${count(unchanged.length, "source")} unchanged`,
    ...(needRestart.length === 0
      ? []
      : [`not in effect until the agent is restarted: changes of ${needRestart.join(", ")}`]),
  ];
}
