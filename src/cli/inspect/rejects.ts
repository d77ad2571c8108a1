// `tagferry rejects`: lists refused points by reason, sends them again, or drops them.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { lockFolder } from "../../buffer/disk/files/lock.ts";
import { loadConfig } from "../../config/load.ts";
import { AgentError, isAgentError } from "../../core/errors.ts";
import { countRejects, RejectFiles } from "../../upload/delivery/reject-files.ts";
import { retryRejects } from "../../upload/retry-rejects.ts";
import { openCatalog } from "../../upload/signals/catalog.ts";
import type { ConfigOptions } from "../shared/arguments.ts";
import { commandRuntime } from "../shared/command-runtime.ts";
import type { Console } from "../terminal/console.ts";
import { type ExitStatus, exitStatus } from "../terminal/exit-status.ts";
import { columns, count, printResult, progressBar, visible } from "../terminal/text.ts";
import { version } from "../terminal/version.ts";

const mostInputs = 5;

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

/**
 * Resolves with `failed` if some were refused again. Rejects as `retryRejects` does, or with `DATA_DIR_IN_USE` if an
 * agent runs, since both together would exceed the service's limits.
 */
async function resendRejects({ config: file, json = false }: ConfigOptions, io: Console): Promise<ExitStatus> {
  const { config, files, stateDir } = await rejectsOf({ config: file }, io);
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

function lockedFor(buffer: string): Disposable {
  try {
    return lockFolder(buffer);
  } catch (error) {
    if (!isAgentError(error, "DATA_DIR_IN_USE")) throw error;
    const message =
      "the agent is running, and refused points are sent again only while it is stopped: stop it, retry, start it; nothing was sent";
    throw new AgentError("DATA_DIR_IN_USE", message, { cause: error });
  }
}

async function rejectsOf({ config: file }: ConfigOptions, { environment }: Console) {
  const config = await loadConfig(file, environment);
  const stateDir = join(config.agent.dataDir, "upload");
  return { config, stateDir, files: new RejectFiles(stateDir) };
}

export const rejects = { list: listRejects, retry: resendRejects, drop: dropRejects };
