// How `tagferry init` ends: one value of each source, read as the agent will read it.
import type { Config, ConfiguredSource } from "../../config/config.ts";
import { AgentError, errorCodes, isAgentError } from "../../core/errors.ts";
import { isAbort } from "../../lib/abort.ts";
import { InputOwners } from "../../mapping/input-owners.ts";
import { commandRuntime } from "../shared/command-runtime.ts";
import { type Looked, look } from "../shared/source-look.ts";
import type { Console } from "../terminal/console.ts";
import { type ExitStatus, exitStatus } from "../terminal/exit-status.ts";
import { visible } from "../terminal/table.ts";

/** How long a source may take until its first value, in milliseconds. */
const withinMs = 15_000;

/** Reads all sources at once. Resolves with the exit status of the first that gave no value. Rejects with `io.signal.reason`. */
export async function readEach(config: Config, io: Console): Promise<ExitStatus> {
  const results = await Promise.all(config.sources.map((source) => readOne(source, config, io.signal)));
  for (const { text, status } of results)
    if (status === exitStatus.done) io.print(text);
    else io.complain(text);
  return results.find(({ status }) => status !== exitStatus.done)?.status ?? exitStatus.done;
}

interface Read {
  readonly text: string;
  readonly status: ExitStatus;
}

async function readOne(source: ConfiguredSource, config: Config, signal: AbortSignal): Promise<Read> {
  const { name, tags, driver } = source;
  if (tags.length === 0)
    return { text: `${name} has no tags yet: tagferry browse lists what it offers`, status: exitStatus.failed };
  const enough = AbortSignal.any([signal, AbortSignal.timeout(withinMs)]);
  let last: Looked | undefined;
  try {
    for await (const readings of look(source, config, new InputOwners(), () => {}, commandRuntime(), enough)) {
      const good = readings.find(({ value }) => value !== undefined);
      if (good) return { text: visible(shown(name, good)), status: exitStatus.done };
      last ??= readings[0];
    }
  } catch (error) {
    signal.throwIfAborted();
    if (!isAbort(error, enough)) return failed(name, error);
  }
  signal.throwIfAborted();
  const why = last
    ? `${last.input} is ${last.quality}: ${last.reason ?? "no reason given"}`
    : `nothing came within ${withinMs / 1_000} s${driver.silence === undefined ? "" : `; ${driver.silence}`}`;
  return { text: visible(`tagferry: ${name}: ${why}`), status: exitStatus.failed };
}

function shown(name: string, { input, value, unit, text, address }: Looked): string {
  const full = [value, unit, text].filter((part) => part !== undefined).join(" ");
  return `${name} reads ${input} = ${full} (${address})`;
}

function failed(name: string, error: unknown): Read {
  const known = isAgentError(error)
    ? error
    : new AgentError("SOURCE_UNREACHABLE", error instanceof Error ? error.message : String(error), { cause: error });
  const { exit } = errorCodes[known.code];
  const status = Object.values(exitStatus).find((each) => each === exit) ?? exitStatus.failed;
  return { text: `${visible(`tagferry: ${name}: ${known.message}`)}\n  ${known.hint}`, status };
}
