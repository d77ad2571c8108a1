// `tagferry rejects`: lists refused points by reason, sends them again, or drops them.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { z } from "zod";
import { lockFolder } from "../../buffer/disk/files/lock.ts";
import { loadConfig } from "../../config/load.ts";
import { AgentError, isAgentError } from "../../core/errors.ts";
import { visible } from "../../lib/text/visible.ts";
import { countRejects, RejectFiles } from "../../upload/rejects/reject-files.ts";
import { openCatalog } from "../../upload/signals/catalog.ts";
import { type Retried, retryRejects } from "../../upload/uploader.ts";
import { type AgentQuery, findAgent } from "../shared/agent-client.ts";
import type { ConfigOptions } from "../shared/arguments.ts";
import { commandRuntime } from "../shared/command-runtime.ts";
import type { Console } from "../terminal/console.ts";
import { type ExitStatus, exitStatus } from "../terminal/exit-status.ts";
import { columns, count, printResult, progressBar } from "../terminal/text.ts";
import { version } from "../terminal/version.ts";

const mostInputs = 5;

type RetryOptions = ConfigOptions & Pick<AgentQuery, "url" | "tokenFile">;

/** Prints reasons and counts. The agent may be running. */
async function listRejects(options: ConfigOptions, io: Console): Promise<void> {
  const { files } = await rejectsOf(options, io);
  const { reasons: groups, points, unreadable } = await countRejects(files.lines());
  const reasons = groups.map(({ inputs, ...rest }) => ({ ...rest, inputs: Object.fromEntries(inputs) }));
  const lines = () => [
    ...groups.flatMap(({ code, reason, points: refused, inputs, earliest, latest }) => [
      `${count(refused, "point")}: ${visible(reason)}${code === undefined ? ", never sent" : ""}`,
      ...columns([...inputs].slice(0, mostInputs).map(([input, n]) => [input, count(n, "point")])),
      ...(inputs.size > mostInputs ? [`  and ${count(inputs.size - mostInputs, "input")} more`] : []),
      ...(earliest === undefined ? [] : [`  from ${earliest} to ${latest}`]),
    ]),
    ...(unreadable > 0 ? [`${count(unreadable, "line")} of the files cannot be read`] : []),
    points === 0 ? "no points were refused" : `${count(points, "refused point")} in ${files.path}`,
  ];
  printResult(options, { file: files.path, points, unreadable, reasons }, lines, io);
}

/** Deletes the refused points. The agent may be running. */
async function dropRejects({ config: file, json = false }: ConfigOptions, io: Console): Promise<void> {
  const { files } = await rejectsOf({ config: file }, io);
  const { points } = await countRejects(files.lines());
  await files.drop();
  io.print(json ? JSON.stringify({ dropped: points }) : `${count(points, "refused point")} dropped`);
}

/** Resolves with `failed` if some were refused again. A running agent sends them, otherwise this command. */
async function resendRejects(options: RetryOptions, io: Console): Promise<ExitStatus> {
  const { config, files, stateDir } = await rejectsOf(options, io);
  const { points } = await countRejects(files.lines());
  if (points === 0) {
    io.print(
      options.json ? JSON.stringify({ accepted: 0, refused: 0, unsendable: 0, held: 0 }) : "no points were refused",
    );
    return exitStatus.done;
  }
  const buffer = join(config.agent.dataDir, "buffer");
  await mkdir(buffer, { recursive: true, mode: 0o700 });
  using lock = lockIfFree(buffer);
  if (!lock) return ended(await askedOfAgent(options, io), options, io);
  const runtime = commandRuntime();
  await using catalog = await openCatalog(join(config.agent.dataDir, "signals.db"), runtime, io.signal);
  const retried = await retryRejects(
    {
      options: config.service,
      catalog,
      stateDir,
      agent: `tagferry/${version()} (${config.agent.name})`,
      progress: (decided) => io.progress(progressBar(decided, points, "points")),
    },
    runtime,
    io.signal,
  );
  return ended(retried, options, io);
}

/** `accepted`, `refused` and `unsendable` are final once `running` is false. */
const progressOfAgent = z.object({
  running: z.boolean(),
  points: z.number(),
  accepted: z.number(),
  refused: z.number(),
  unsendable: z.number(),
  held: z.number(),
  heldReason: z.string().optional(),
});
const begun = z.union([
  progressOfAgent.extend({ ok: z.literal(true) }),
  z.object({ ok: z.literal(false), reason: z.string() }),
]);
const pollMs = 300;

/** Has the running agent send them, and waits for its decisions. Rejects as the calls of `findAgent` do. */
async function askedOfAgent(options: RetryOptions, io: Console): Promise<Retried> {
  const agent = await findAgent(options, io);
  const { data } = await agent.askControl("/api/rejects/retry", begun, "POST");
  if (!data.ok) throw new AgentError("SERVICE_UNREACHABLE", `the agent at ${agent.url}: ${data.reason}`);
  let progress: z.output<typeof progressOfAgent> = data;
  const answered = z.object({ retry: progressOfAgent.optional() });
  while (progress.running) {
    io.progress(progressBar(progress.accepted + progress.refused, progress.points, "points"));
    await setTimeout(pollMs, undefined, { signal: io.signal });
    const { retry } = (await agent.ask("/api/rejects", answered)).data;
    if (!retry)
      throw new AgentError("AGENT_UNREACHABLE", "the agent has stopped delivering; undecided points stay refused");
    progress = retry;
  }
  io.progress(undefined);
  return progress;
}

type Ended = Retried & Partial<Pick<z.output<typeof progressOfAgent>, "held" | "heldReason">>;

function ended(
  { accepted, refused, unsendable, held = 0, heldReason = "" }: Ended,
  { json = false }: RetryOptions,
  io: Console,
): ExitStatus {
  if (json) io.print(JSON.stringify({ accepted, refused, unsendable, held }));
  else
    io.print(
      [
        `${count(accepted, "point")} delivered`,
        ...(refused > 0 ? [`${count(refused, "point")} refused again, see tagferry rejects list`] : []),
        ...(held > 0
          ? [
              `${count(held, "point")} ${held === 1 ? "stays" : "stay"} refused: the service still refuses their inputs (${visible(heldReason)})`,
            ]
          : []),
        ...(unsendable > 0 ? [`${count(unsendable, "point")} cannot be sent at all`] : []),
      ].join(", "),
    );
  return refused + unsendable + held === 0 ? exitStatus.done : exitStatus.failed;
}

/** Undefined: an agent runs. */
function lockIfFree(buffer: string): Disposable | undefined {
  try {
    return lockFolder(buffer);
  } catch (error) {
    if (isAgentError(error, "DATA_DIR_IN_USE")) return undefined;
    throw error;
  }
}

async function rejectsOf({ config: file }: Pick<ConfigOptions, "config">, { environment }: Console) {
  const config = await loadConfig(file, environment);
  const stateDir = join(config.agent.dataDir, "upload");
  return { config, stateDir, files: new RejectFiles(stateDir) };
}

export const rejects = { list: listRejects, retry: resendRejects, drop: dropRejects };
