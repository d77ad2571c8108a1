// `tagferry init`: writes a commented configuration that is right, from a few answers or from what `browse` found.
import { type FileHandle, open, stat } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { nameOf } from "../config/file-schema.ts";
import { formatIssue } from "../config/issue.ts";
import { configJsonSchema } from "../config/json-schema.ts";
import { configIssues, loadConfig } from "../config/load.ts";
import { isAgentError } from "../core/errors.ts";
import { drivers } from "../source/registry.ts";
import { browsedJson } from "./browsed-json.ts";
import type { Console } from "./console.ts";
import { type ExitStatus, exitStatus } from "./exit-status.ts";
import { count } from "./figures.ts";
import { initFile } from "./init-file.ts";
import { askAll, foundSources, type Gathered } from "./init-questions.ts";
import { nextSteps } from "./next-steps.ts";

export interface InitOptions {
  /** Where it is written; `-`: standard output. */
  readonly config: string;
  readonly service?: string;
  readonly integration?: string;
  readonly passwordFile?: string;
}

export const exampleIntegration = "c8ktonqsahsmemfs7lv0";
const localService = "http://127.0.0.1:8420/v1";
const usualPasswordFile = "service_password";

/** Resolves with `failed` where the file is there already, or the questions were left unanswered: then nothing was written. */
export async function init(options: InitOptions, io: Console): Promise<ExitStatus> {
  const { config: file } = options;
  const toPrint = file === "-";
  const target = resolve(io.environment.cwd, file);
  if (!toPrint && (await exists(target))) {
    io.complain(`tagferry: ${file} is there already and stays as it is; -c names another file`);
    return exitStatus.failed;
  }
  const given: Gathered = {
    agent: nameOf(io.environment.hostname),
    service: options.service ?? localService,
    integration: options.integration ?? exampleIntegration,
    passwordFile: options.passwordFile ?? usualPasswordFile,
    sources: [],
    secrets: new Map(),
  };
  const gathered = io.input.typed ? await askAll(given, options, target, io) : await piped(given, io);
  if (gathered === undefined) return io.input.typed ? exitStatus.failed : exitStatus.usage;
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
  const files = new Map(
    [answers.passwordFile, ...answers.sources.flatMap(({ passwordFile = [] }) => passwordFile)].map((name) => [
      name,
      secrets.get(name) ?? "",
    ]),
  );
  const missing: string[] = [];
  for (const [name, secret] of files)
    if ((await writeNew(beside(name), secret === "" ? "" : `${secret}\n`, 0o600)) && secret === "") missing.push(name);
  await writeNew(beside("tagferry.schema.json"), `${JSON.stringify(configJsonSchema(drivers), undefined, 2)}\n`, 0o644);
  return await told(file, missing, io);
}

/** What was written, checked as the agent will. */
async function told(file: string, missing: readonly string[], io: Console): Promise<ExitStatus> {
  try {
    const config = await loadConfig(file, io.environment);
    const tags = config.sources.reduce((sum, source) => sum + source.tags.length, 0);
    io.print(`${file} is written: ${count(config.sources.length, "source")}, ${count(tags, "tag")}`);
    for (const name of missing) io.print(`${name} is empty: put the password into it`);
    if (config.service.integration === exampleIntegration)
      io.print("service.integration is an example, as for a local service: put your Integration ID into it");
    io.print(nextSteps(file, io.environment.variables));
    return exitStatus.done;
  } catch (error) {
    if (!isAgentError(error, "CONFIG_INVALID")) throw error;
    io.print(`${file} is written, and must be corrected before it can be used`);
    for (const issue of configIssues(error)) io.print(formatIssue(issue));
    return exitStatus.config;
  }
}

async function piped(given: Gathered, io: Console): Promise<Gathered | undefined> {
  const devices = browsedJson(await io.input.readAll());
  if (devices) return { ...given, sources: foundSources(devices) };
  io.complain("tagferry: standard input is neither a terminal nor what tagferry browse URL --json prints");
  return undefined;
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
