// `tagferry test`: shows raw and mapped values of every tag. Nothing is buffered, sent or acknowledged.
import { refusalWarnings } from "../../agent/status/warnings.ts";
import type { Config, ConfiguredSource } from "../../config/format/config.ts";
import { loadConfig } from "../../config/load.ts";
import { errorCodes, isAgentError } from "../../core/errors.ts";
import { isAbort } from "../../lib/flow/abort.ts";
import { visible } from "../../lib/text/visible.ts";
import { InputOwners } from "../../mapping/input-owners.ts";
import type { RefusedInput } from "../../mapping/mapping.ts";
import { formatTimestamp } from "../../wire/timestamp.ts";
import { commandRuntime } from "../shared/command-runtime.ts";
import { type FindingsListener, type ScanResult, scan } from "../shared/source-scan.ts";
import type { Console, Screen } from "../terminal/console.ts";
import { CommandFailed, type ExitStatus, exitStatus } from "../terminal/exit-status.ts";
import { columns, count, cut, exactNumber, span } from "../terminal/text.ts";

interface TestOptions {
  readonly config: string;
  /** Ends when every tag was read, or after `within`. */
  readonly once?: boolean;
  readonly json?: boolean;
  readonly source?: string;
  /** Milliseconds that `once` waits for silent tags. */
  readonly within: number;
}

/** Resolves with `failed` if a tag gave no good value, `unreachable` or `refused` if a source cannot be opened. */
export async function test(options: TestOptions, io: Console): Promise<ExitStatus> {
  const config = await loadConfig(options.config, io.environment);
  const sources = config.sources.filter(({ name }) => options.source === undefined || name === options.source);
  if (sources.length === 0) {
    const names = config.sources.map(({ name }) => name).join(", ");
    const has =
      names === ""
        ? "has no sources yet; tagferry browse URL --yaml lists what a device offers"
        : `has no source ${options.source}; there are: ${names}`;
    throw new CommandFailed(`${options.config} ${has}`, exitStatus.usage);
  }
  const owners = new InputOwners();
  const names = sources.map(({ name }) => name);
  const live =
    io.screen && options.once !== true && options.json !== true ? openLiveTable(io.screen, names) : undefined;
  const ends = await Promise.all(sources.map((source) => testSource(source, config, owners, options, live, io)));
  live?.end();
  return ends.find((end) => end !== exitStatus.done) ?? exitStatus.done;
}

async function testSource(
  source: ConfiguredSource,
  config: Config,
  owners: InputOwners,
  { once = false, json = false, within }: TestOptions,
  live: LiveTable | undefined,
  io: Console,
): Promise<ExitStatus> {
  const { name, rules, driver } = source;
  const runtime = commandRuntime();
  const ends = [io.unread, once ? AbortSignal.timeout(within) : undefined].filter((each) => each !== undefined);
  const stop = AbortSignal.any([io.signal, ...ends]);
  const silent = new Set(rules.keys());
  const bad = new Set<number>();
  let refused: readonly RefusedInput[] = [];
  let faults: readonly string[] = [];
  const onFindings: FindingsListener = (all, details = {}) => {
    refused = all;
    // Why messages arrived that gave no value.
    faults = ["lastMissing", "lastUnnamed", "lastMalformed"].flatMap((fault) =>
      fault in details ? [String(details[fault])] : [],
    );
  };
  try {
    for await (const readings of scan(source, config, owners, onFindings, runtime, stop)) {
      for (const reading of readings) {
        const { tag, value } = reading;
        const isFirst = silent.delete(tag);
        // A refused second address does not make the tag bad; another address feeds its input.
        if (value === undefined && (isFirst || !reading.refused)) bad.add(tag);
        else if (value !== undefined) bad.delete(tag);
      }
      if (live) live.add(name, readings);
      else for (const line of json ? readings.map(jsonOf) : columns(readings.map(cells))) io.print(line);
      if (once && silent.size === 0) break;
    }
  } catch (error) {
    if (!isAbort(error, stop)) {
      if (!isAgentError(error)) throw error;
      // The other sources go on.
      if (live) live.failed(name, `${error.message}; ${error.hint}`);
      else io.complain(`${visible(`tagferry: ${name}: ${error.message}`)}\n  ${error.hint}`);
      return errorCodes[error.code].exit;
    }
  }
  for (const tag of silent) {
    const input = rules[tag]?.input ?? "";
    if (json && once) io.print(JSON.stringify({ source: name, input, reason: "nothing came" }));
    else if (once) io.print(visible(`  ${name}  ${input}  nothing came within ${span(within)}`));
  }
  if (!once) return exitStatus.done;
  for (const fault of silent.size > 0 ? faults : []) io.complain(visible(`${name} (${driver.type}): ${fault}`));
  if (silent.size > faults.length && driver.silence !== undefined)
    io.complain(`${name} (${driver.type}): ${driver.silence}`);
  const wrong = silent.size + bad.size;
  io.complain(`${name} (${driver.type}): ${count(rules.length - wrong, "tag")} of ${rules.length} with a good value`);
  for (const { message, remedy = "" } of refusalWarnings(refused.map((each) => ({ source: name, ...each })))) {
    io.complain(visible(`${name} (${driver.type}): ${message}`));
    io.complain(visible(`  ${remedy}`));
  }
  return wrong + refused.length === 0 ? exitStatus.done : exitStatus.failed;
}

function cells({ source, input, raw, value, text, unit, time, clock, quality, reason, address }: ScanResult): string[] {
  const mapped = value === undefined ? "no point" : [value, unit, text].filter((part) => part !== undefined).join(" ");
  return [
    source,
    input,
    mapped,
    `raw ${raw === undefined ? "none" : cut(String(raw))}`,
    address,
    `${formatTimestamp(time)}${clock === "agent" ? " (here)" : ""}`,
    quality === "good" ? (reason ?? "good") : `${quality}: ${reason ?? "without a reason"}`,
  ];
}

function jsonOf({ tag: _tag, refused: _refused, time, raw, ...rest }: ScanResult): string {
  return JSON.stringify({ ...rest, raw, time: formatTimestamp(time) }, exactNumber);
}

/** Interval of redrawing, in milliseconds. */
const everyMs = 200;

type LiveTable = ReturnType<typeof openLiveTable>;

/** A table on the screen with the latest reading of each tag, the bad ones first. */
function openLiveTable(screen: Screen, sources: readonly string[]) {
  const rows = new Map<string, { readonly cells: readonly string[]; readonly good: boolean }>();
  const states = new Map(sources.map((source) => [source, "connecting"]));
  let count = 0;
  let due: NodeJS.Timeout | undefined;
  draw();

  function draw(): void {
    clearTimeout(due);
    due = undefined;
    const sorted = [...rows.values()].toSorted((a, b) => Number(a.good) - Number(b.good));
    const silent = [...states].filter(([, state]) => state !== "reads").map(([name, state]) => `${name}: ${state}`);
    // Lines for the head, silent sources, rows, and the number of hidden rows.
    const shown = sorted.slice(0, Math.max(1, screen.rows - 3 - silent.length));
    const good = sorted.filter((row) => row.good).length;
    screen.draw([
      `${good} of ${sorted.length} with a good value, ${count} readings; ^C ends it`,
      ...silent.map(visible),
      ...columns(shown.map((row) => row.cells)),
      ...(sorted.length > shown.length
        ? [`  and ${sorted.length - shown.length} more; --source shows one source`]
        : []),
    ]);
  }

  return {
    add(source: string, readings: readonly ScanResult[]): void {
      states.set(source, "reads");
      count += readings.length;
      for (const result of readings) {
        const { input, tag, address, value } = result;
        const key = `${source} ${value === undefined ? `${tag} ${address}` : input}`;
        // Without a value, the row is keyed by its address. It is replaced once the Input ID is known.
        if (value !== undefined) rows.delete(`${source} ${tag} ${address}`);
        rows.set(key, { cells: cells(result), good: value !== undefined });
      }
      due ??= setTimeout(draw, everyMs);
    },
    failed(source: string, message: string): void {
      states.set(source, message);
      due ??= setTimeout(draw, everyMs);
    },
    /** Draws the latest state. */
    end: draw,
  };
}
