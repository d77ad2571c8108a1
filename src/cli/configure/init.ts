// `tagferry init`: writes a commented, valid configuration from a few answers or from results of `browse`.
import { mkdir, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { packaged } from "../../config/files/environment.ts";
import type { Config, ConfiguredSource } from "../../config/format/config.ts";
import { configIssues, loadConfig } from "../../config/load.ts";
import { formatIssue } from "../../config/nodes/issue.ts";
import { configJsonSchema } from "../../config/reference/json-schema.ts";
import { AgentError, codeOf, isAgentError, shellWord } from "../../core/errors.ts";
import { confFolder, includeLine } from "../../discover/change/config-files.ts";
import { browsedJson } from "../../discover/tags/browsed.ts";
import { sourceText, yamlText } from "../../discover/tags/source-yaml.ts";
import { writeNewFile } from "../../lib/files/atomic-file.ts";
import { creationProblem, exists } from "../../lib/files/paths.ts";
import { isAbort } from "../../lib/flow/abort.ts";
import { visible } from "../../lib/text/visible.ts";
import { InputOwners } from "../../mapping/input-owners.ts";
import { drivers } from "../../source/registry.ts";
import { commandRuntime } from "../shared/command-runtime.ts";
import { type ScanResult, scan } from "../shared/source-scan.ts";
import type { Console } from "../terminal/console.ts";
import { CommandFailed, deviceFailure, type ExitStatus, exitStatus } from "../terminal/exit-status.ts";
import { count } from "../terminal/text.ts";
import { typedAs } from "../terminal/version.ts";
import { askAll, exampleIntegration, foundDevices, type Gathered } from "./init-questions.ts";
import type { InitOptions, Interview } from "./question.ts";

/** Rejects as `askAll` does, and with `CommandFailed` if the file exists; nothing is written then. */
export async function init(options: InitOptions, io: Console): Promise<ExitStatus> {
  const { config: file, unattended } = options;
  const toPrint = file === "-";
  const target = resolve(io.environment.cwd, file);
  if (!toPrint && (await exists(target)))
    throw new CommandFailed(`${file} is there already and stays as it is; -c names another file`);
  const interview = { io, unattended, target };
  const gathered = await (unattended || io.input.typed ? asked(options, interview) : piped(options, interview));
  const { secrets, ...answers } = gathered;
  const inFolder = (name: string) => resolve(dirname(target), name);
  const text = initFile({
    ...answers,
    // The unit of the package keeps /etc read-only, so that its operator decides whether a page may write there.
    includes: !toPrint && target !== packaged.config && (await makeFolder(inFolder(confFolder))),
    file: toPrint ? "tagferry.yaml" : file,
    exampleIntegration: answers.integration === exampleIntegration,
  });
  if (toPrint) {
    await io.write(text);
    return exitStatus.done;
  }
  // `writeNew` never overwrites a file that another process has just created.
  if (!(await writeNew(target, text, 0o644))) throw new CommandFailed(`${file} is there already and stays as it is`);
  const missing: string[] = [];
  for (const { file: name, value = "" } of secrets)
    if (name !== undefined && (await writeNew(inFolder(name), value === "" ? "" : `${value}\n`, 0o600)) && value === "")
      missing.push(name);
  await writeNew(
    inFolder("tagferry.schema.json"),
    `${JSON.stringify(configJsonSchema(drivers), undefined, 2)}\n`,
    0o644,
  );
  return await reportWritten(options, missing, io);
}

/** Reports the written file, checks it as the agent will, and reads a value of each source. */
async function reportWritten(
  { config: file, unattended, offline }: InitOptions,
  missing: readonly string[],
  io: Console,
) {
  try {
    const config = await loadConfig(file, io.environment);
    const tags = config.sources.reduce((sum, source) => sum + source.tags.length, 0);
    io.print(`${file} is written: ${count(config.sources.length, "source")}, ${count(tags, "tag")}`);
    for (const warning of config.warnings) io.complain(formatIssue(warning));
    for (const name of missing) io.print(`${name} is empty: put the password into it`);
    if (config.service.integration === exampleIntegration)
      io.print("service.integration is an example, as for a local service: put your Integration ID into it");
    const read = offline ? exitStatus.done : await readEach(config, io);
    io.print(nextSteps(file, io.environment.variables));
    return unattended ? read : exitStatus.done;
  } catch (error) {
    if (!isAgentError(error, "CONFIG_INVALID")) throw error;
    io.print(`${file} is written, and must be corrected before it can be used`);
    for (const issue of configIssues(error)) io.print(formatIssue(issue));
    return exitStatus.config;
  }
}

/** Asks the questions. An unattended run stops at a source that cannot be read. */
async function asked(options: InitOptions, interview: Interview): Promise<Gathered> {
  try {
    return await askAll(options, interview);
  } catch (error) {
    if (!isAgentError(error) || error.code === "CONFIG_INVALID") throw error;
    const flags =
      error.code === "SOURCE_REFUSED"
        ? "--username, --source-password-file, --ca-file, --trust and --security-mode say how to get in"
        : "--offline writes it without asking the sources";
    const hint = `${error.hint}\n  nothing is written; ${flags}`;
    throw new AgentError(error.code, error.message, { cause: error, hint });
  }
}

async function piped(options: InitOptions, interview: Interview): Promise<Gathered> {
  const devices = browsedJson(await interview.io.input.readAll());
  if (devices) return await foundDevices(devices, options, interview);
  const message = "standard input is neither a terminal nor what tagferry browse URL --json prints; --yes asks nothing";
  throw new CommandFailed(message, exitStatus.usage);
}

/** False: it is there already, and its files may belong to another configuration, or it cannot be made. */
async function makeFolder(folder: string): Promise<boolean> {
  return await mkdir(folder).then(
    () => true,
    () => false,
  );
}

/** False: the file exists already and was not changed. */
async function writeNew(file: string, text: string, mode: number): Promise<boolean> {
  try {
    await writeNewFile(file, text, mode, async (made) => {
      // If root assigned the folder to a group, as the package does for /etc/tagferry, that group may read the file.
      const { gid } = await stat(dirname(file));
      if (process.getuid?.() !== 0 || gid === 0) return;
      await made.chown(0, gid);
      await made.chmod(mode | 0o040);
    });
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw new CommandFailed(`${file} cannot be written: ${creationProblem(error, file)}`);
  }
}

/** Time limit for the first value of a source, in milliseconds. */
const withinMs = 15_000;

/** Reads all sources concurrently. Resolves with the first failure's exit status. Rejects with `io.signal.reason`. */
async function readEach(config: Config, io: Console): Promise<ExitStatus> {
  const results = await Promise.all(config.sources.map((source) => readOne(source, config, io.signal)));
  for (const { text, exit } of results)
    if (exit === exitStatus.done) io.print(text);
    else io.complain(text);
  return results.find(({ exit }) => exit !== exitStatus.done)?.exit ?? exitStatus.done;
}

async function readOne(
  source: ConfiguredSource,
  config: Config,
  signal: AbortSignal,
): Promise<{ readonly text: string; readonly exit: ExitStatus }> {
  const { name, tags, driver } = source;
  if (tags.length === 0)
    return { text: `${name} has no tags yet: tagferry browse lists what it offers`, exit: exitStatus.failed };
  const enough = AbortSignal.any([signal, AbortSignal.timeout(withinMs)]);
  let last: ScanResult | undefined;
  try {
    for await (const readings of scan(source, config, new InputOwners(), () => {}, commandRuntime(), enough)) {
      const good = readings.find(({ value }) => value !== undefined);
      if (good) {
        const full = [good.value, good.unit, good.text].filter((part) => part !== undefined).join(" ");
        return { text: visible(`${name} reads ${good.input} = ${full} (${good.address})`), exit: exitStatus.done };
      }
      last ??= readings[0];
    }
  } catch (error) {
    signal.throwIfAborted();
    if (!isAbort(error, enough)) {
      const { message, hint, exit } = deviceFailure(error);
      return { text: `${visible(`tagferry: ${name}: ${message}`)}\n  ${hint}`, exit };
    }
  }
  signal.throwIfAborted();
  const why = last
    ? `${last.input} is ${last.quality}: ${last.reason ?? "no reason given"}`
    : `nothing came within ${withinMs / 1_000} s${driver.silence === undefined ? "" : `; ${driver.silence}`}`;
  return { text: visible(`tagferry: ${name}: ${why}`), exit: exitStatus.failed };
}

/** One line. The service manager runs the agent of the packaged configuration, with another user and data directory. */
export function nextSteps(file: string, variables: Parameters<typeof typedAs>[0]): string {
  const typed = typedAs(variables);
  return file === packaged.config
    ? `next: ${typed} check --online, then systemctl start tagferry`
    : `next: ${typed} check -c ${shellWord(file)} --online, then ${typed} run -c ${shellWord(file)}`;
}

interface InitAnswers extends Omit<Gathered, "secrets"> {
  readonly file: string;
  readonly exampleIntegration: boolean;
  /** Whether the folder for files of the page "Add tags" is there, so that it can be included. */
  readonly includes: boolean;
}

/** The configuration, with comments for manual editing. Pure. */
export function initFile(answers: InitAnswers): string {
  const file = shellWord(answers.file);
  const { agent, service, integration, exampleIntegration, password, sources, includes } = answers;
  return `# yaml-language-server: $schema=./tagferry.schema.json
# Configuration of tagferry. Every option: tagferry schema --reference
#   tagferry check -c ${file}    every error with its line, or what it will cost
#   tagferry test -c ${file}     reads every tag and shows what comes, sends nothing
#   tagferry run -c ${file}      runs the agent; status page at http://127.0.0.1:8421
version: 1

agent:
  name: ${yamlText(agent)}    # in logs, metrics and the status page; another one for each agent of a plant
  # dataDir: /var/lib/tagferry    # the buffer; default: $STATE_DIRECTORY, else /var/lib/tagferry for the package, ./data elsewhere

service:
  url: ${yamlText(service)}    # requests go to {url}/rpc
  integration: ${yamlText(integration)}    # Integration ID${exampleIntegration ? ": an example, put yours here" : ""}
  auth:
${password.startsWith("${file:") ? "    # The file holds the password and nothing else; only the user of the agent needs to read it.\n" : ""}    basic: { password: ${yamlText(password)} }

# Points wait on disk until the service has them. Where that is too little, the oldest go, and are counted.
buffer: { maxSize: 2GiB, maxAge: 30d, whenFull: dropOldest }

http: { listen: 127.0.0.1:8421 }    # status page, /metrics, /healthz, /readyz

# Files with further sources. The page "Add tags" writes its own there; the folder has to exist.
${includes ? "" : "# "}${includeLine}

defaults:
  every: 1s    # how often tags are read that say nothing else
  # signal: { labels: { site: [north] } }    # to be published as an item, a signal needs labels, a name and a unit

${sources.length === 0 ? "sources: {}    # tagferry browse URL --yaml lists what a device offers\n" : `sources:\n${sources.map(sourceText).join("\n")}`}`;
}
