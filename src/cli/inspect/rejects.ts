// `tagferry rejects`: points the service refused for good, by its reasons; sent once more, or given up.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { lockFolder } from "../../buffer/disk/files/lock.ts";
import { loadConfig } from "../../config/load.ts";
import { AgentError, isAgentError } from "../../core/errors.ts";
import { countRejects, RejectFiles } from "../../upload/delivery/reject-files.ts";
import { retryRejects } from "../../upload/retry-rejects.ts";
import { openCatalog } from "../../upload/signals/catalog.ts";
import { commandRuntime } from "../shared/command-runtime.ts";
import type { Console } from "../terminal/console.ts";
import { type ExitStatus, exitStatus } from "../terminal/exit-status.ts";
import { count } from "../terminal/figures.ts";
import { progressBar } from "../terminal/progress-bar.ts";
import { columns, visible } from "../terminal/table.ts";
import { version } from "../terminal/version.ts";

export interface RejectsOptions {
  /** Configuration of the agent: its data directory holds them. */
  readonly config: string;
  readonly json?: boolean;
}

/** Inputs that are named for each reason. */
const mostInputs = 5;

/** Prints reasons and counts. May run beside the agent. */
export async function listRejects({ config: file, json = false }: RejectsOptions, io: Console): Promise<ExitStatus> {
  const { files } = await rejectsOf(file, io);
  const { reasons: groups, points, unreadable } = await countRejects(files.lines());
  if (json) {
    const reasons = groups.map(({ inputs, ...rest }) => ({ ...rest, inputs: Object.fromEntries(inputs) }));
    io.print(JSON.stringify({ file: files.path, points, unreadable, reasons }, undefined, 2));
    return exitStatus.done;
  }
  for (const { code, reason, points: refused, inputs, earliest, latest } of groups) {
    io.print(`${count(refused, "point")}: ${visible(reason)}${code === undefined ? ", never sent" : ""}`);
    const named = [...inputs].slice(0, mostInputs).map(([input, n]) => [input, count(n, "point")]);
    for (const line of columns(named)) io.print(line);
    if (inputs.size > mostInputs) io.print(`  and ${count(inputs.size - mostInputs, "input")} more`);
    if (earliest !== undefined) io.print(`  from ${earliest} to ${latest}`);
  }
  if (unreadable > 0) io.print(`${count(unreadable, "line")} of the files cannot be read`);
  io.print(points === 0 ? "no points were refused" : `${count(points, "refused point")} in ${files.path}`);
  return exitStatus.done;
}

/** Deletes them. May run beside the agent. */
export async function dropRejects({ config: file, json = false }: RejectsOptions, io: Console): Promise<ExitStatus> {
  const { files } = await rejectsOf(file, io);
  const { points } = await countRejects(files.lines());
  await files.drop();
  io.print(json ? JSON.stringify({ dropped: points }) : `${count(points, "refused point")} dropped`);
  return exitStatus.done;
}

/**
 * Sends them once more. Resolves with `failed` where some were refused again. Rejects with `DATA_DIR_IN_USE` beside a
 * running agent, since both together would ask more of the service than it permits, and as `retryRejects` does.
 */
export async function resendRejects({ config: file, json = false }: RejectsOptions, io: Console): Promise<ExitStatus> {
  const { config, files, stateDir } = await rejectsOf(file, io);
  const { points } = await countRejects(files.lines());
  if (points === 0) {
    io.print(json ? JSON.stringify({ accepted: 0, refused: 0, unsendable: 0 }) : "no points were refused");
    return exitStatus.done;
  }
  const buffer = join(config.agent.dataDir, "buffer");
  await mkdir(buffer, { recursive: true, mode: 0o700 });
  using _lock = lockedFor(buffer);
  const runtime = commandRuntime();
  await using catalog = await openCatalog(join(config.agent.dataDir, "signals.db"), runtime, io.signal);
  const { accepted, refused, unsendable } = await retryRejects(
    {
      options: config.service,
      catalog,
      stateDir,
      agent: `tagferry/${version()} (${config.agent.name})`,
      files,
      progress: (decided) => io.progress(progressBar(decided, points, "points")),
    },
    runtime,
    io.signal,
  );
  if (json) io.print(JSON.stringify({ accepted, refused, unsendable }));
  else
    io.print(
      [
        `${count(accepted, "point")} delivered`,
        ...(refused > 0 ? [`${count(refused, "point")} refused again, see tagferry rejects list`] : []),
        ...(unsendable > 0 ? [`${count(unsendable, "point")} cannot be sent at all`] : []),
      ].join(", "),
    );
  return refused + unsendable === 0 ? exitStatus.done : exitStatus.failed;
}

/** Throws with `DATA_DIR_IN_USE`, and what that means for whoever wants them sent. */
function lockedFor(buffer: string): Disposable {
  try {
    return lockFolder(buffer);
  } catch (error) {
    if (!isAgentError(error, "DATA_DIR_IN_USE")) throw error;
    throw new AgentError(
      "DATA_DIR_IN_USE",
      "the agent is running, and refused points are sent again only while it is stopped: stop it, retry, start it; nothing was sent",
      { cause: error },
    );
  }
}

async function rejectsOf(file: string, { environment }: Console) {
  const config = await loadConfig(file, environment);
  const stateDir = join(config.agent.dataDir, "upload");
  return { config, stateDir, files: new RejectFiles(stateDir) };
}
