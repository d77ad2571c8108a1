// `tagferry init`: writes a commented configuration that is right, from a few answers or from what `browse` found.
import { type FileHandle, open, stat } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { formatIssue } from "../../config/issue.ts";
import { configJsonSchema } from "../../config/json-schema.ts";
import { configIssues, loadConfig } from "../../config/load.ts";
import { AgentError, isAgentError } from "../../core/errors.ts";
import { drivers } from "../../source/registry.ts";
import { browsedJson } from "../discover/browsed-json.ts";
import type { Console } from "../terminal/console.ts";
import { type ExitStatus, exitStatus } from "../terminal/exit-status.ts";
import { count } from "../terminal/figures.ts";
import { initFile } from "./init-file.ts";
import type { InitOptions } from "./init-options.ts";
import { askAll, exampleIntegration, foundDevices, type Gathered } from "./init-questions.ts";
import { readEach } from "./init-reading.ts";
import { nextSteps } from "./next-steps.ts";
import { InputEnded } from "./question.ts";

/**
 * Resolves with `failed` where the file is there already, or the questions were left unanswered: then nothing was written. Rejects
 * as `askAll` does.
 */
export async function init(options: InitOptions, io: Console): Promise<ExitStatus> {
  const { config: file, unattended } = options;
  const toPrint = file === "-";
  const target = resolve(io.environment.cwd, file);
  if (!toPrint && (await exists(target))) {
    io.complain(`tagferry: ${file} is there already and stays as it is; -c names another file`);
    return exitStatus.failed;
  }
  const gathered = unattended || io.input.typed ? await asked(options, target, io) : await piped(options, target, io);
  if (typeof gathered === "number") return gathered;
  const { secrets, ...answers } = gathered;
  const text = initFile({
    ...answers,
    file: toPrint ? "tagferry.yaml" : file,
    exampleIntegration: answers.integration === exampleIntegration,
  });
  if (toPrint) {
    await io.write(text);
    return exitStatus.done;
  }
  // Another one may have been quicker; what is there is never written over.
  if (!(await writeNew(target, text, 0o644))) {
    io.complain(`tagferry: ${file} is there already and stays as it is`);
    return exitStatus.failed;
  }
  const beside = (name: string) => resolve(dirname(target), name);
  const missing: string[] = [];
  for (const { file: name, value = "" } of secrets)
    if (name !== undefined && (await writeNew(beside(name), value === "" ? "" : `${value}\n`, 0o600)) && value === "")
      missing.push(name);
  await writeNew(beside("tagferry.schema.json"), `${JSON.stringify(configJsonSchema(drivers), undefined, 2)}\n`, 0o644);
  return await told(options, missing, io);
}

/** What was written, checked as the agent will, and a value of each source. */
async function told({ config: file, unattended, offline }: InitOptions, missing: readonly string[], io: Console) {
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

/** The exit status where there are no answers. An unattended run stops at a source that cannot be read. */
async function asked(options: InitOptions, target: string, io: Console): Promise<Gathered | ExitStatus> {
  const { unattended } = options;
  try {
    return await askAll(options, target, { io, unattended });
  } catch (error) {
    if (error instanceof InputEnded) {
      io.complain(`\ntagferry: ${error.message}, nothing is written`);
      return exitStatus.failed;
    }
    if (!isAgentError(error) || error.code === "CONFIG_INVALID") throw error;
    const flags =
      error.code === "SOURCE_REFUSED"
        ? "--username, --source-password-file, --ca-file, --trust and --security-mode say how to get in"
        : "--offline writes it without asking the sources";
    throw new AgentError(error.code, error.message, {
      cause: error,
      hint: `${error.hint}\n  nothing is written; ${flags}`,
    });
  }
}

async function piped(options: InitOptions, target: string, io: Console): Promise<Gathered | ExitStatus> {
  const devices = browsedJson(await io.input.readAll());
  if (devices) return await foundDevices(devices, options, target, io);
  io.complain(
    "tagferry: standard input is neither a terminal nor what tagferry browse URL --json prints; --yes asks nothing",
  );
  return exitStatus.usage;
}

async function exists(file: string): Promise<boolean> {
  try {
    await using _file = await open(file, "r");
    return true;
  } catch (error) {
    return !(error instanceof Error && "code" in error && error.code === "ENOENT");
  }
}

/** In a folder that root keeps for a group, as the package's /etc/tagferry for the service, that group may read. */
async function letReadersIn(file: FileHandle, folder: string, mode: number): Promise<void> {
  const { gid } = await stat(folder);
  if (process.getuid?.() !== 0 || gid === 0) return;
  await file.chown(0, gid);
  await file.chmod(mode | 0o040);
}

/** False: there is such a file already, and it stays as it is. */
async function writeNew(file: string, text: string, mode: number): Promise<boolean> {
  try {
    await using made = await open(file, "wx", mode);
    await letReadersIn(made, dirname(file), mode);
    await made.writeFile(text);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw new Error(`${basename(file)} cannot be written: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}
