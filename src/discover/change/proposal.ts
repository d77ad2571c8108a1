// Proposes a change of the configuration for the chosen nodes: the file, its difference, and the result of a check.
// Writes exactly what the person has seen, and restores the file if the agent refuses the new configuration.
import { rm, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { Environment } from "../../config/files/environment.ts";
import type { Config } from "../../config/format/config.ts";
import { configIssues } from "../../config/load.ts";
import { type ConfigIssue, formatIssue } from "../../config/nodes/issue.ts";
import { AgentError, isAgentError } from "../../core/errors.ts";
import { ownAs, writeAtomically, writeNewFile } from "../../lib/files/atomic-file.ts";
import type { Look } from "../device/looks.ts";
import type { ProposeRequest } from "../device/requests.ts";
import { deviceLines, literal, tagEntry } from "../tags/browsed.ts";
import { inputFrom, uniqueInput } from "../tags/input-names.ts";
import { configuredUrl, sourceText } from "../tags/source-yaml.ts";
import { addTags, type NewTag, tagsLike } from "./add-tags.ts";
import {
  assertFree,
  difference,
  fileOfSource,
  loadWith,
  newFile,
  type Obstacle,
  type Overlay,
  obstacleTo,
  textHash,
  textOf,
} from "./config-files.ts";

export interface Proposal {
  /** Absolute path of the file to write. */
  readonly file: string;
  readonly source: string;
  /** Content of the file now; undefined: there is none. */
  readonly before: string | undefined;
  readonly after: string;
  /** A password that goes into a file of its own, which must not exist yet. */
  readonly secret: { readonly file: string; readonly value: string } | undefined;
  /** Hashes of `before` and `after`. */
  readonly base: string;
  readonly result: string;
  readonly difference: string;
  /** What is added, to be copied if it cannot be written. */
  readonly yaml: string;
  /** The Input ID of each chosen node, in order. */
  readonly inputs: readonly string[];
  /** Not empty: the configuration would be invalid. */
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
  readonly obstacle: Obstacle | undefined;
  /** Checksum of the configuration as it is on disk, without the change. */
  readonly checksum: string | undefined;
}

/** Input IDs that a warning names. */
const mostNamed = 5;

export interface ConfigPlace {
  /** The configuration, as named by the user. */
  readonly file: string;
  readonly environment: Environment;
}

/** Rejects with `CONFIG_INVALID` if the present configuration is invalid. */
export async function propose(
  look: Look,
  { name, source: existing = look.source, template, nodes }: ProposeRequest,
  { file: main, environment }: ConfigPlace,
): Promise<Proposal> {
  const { config, files } = await loadWith(main, environment);
  const source = existing ?? name;
  if (source === undefined) throw new AgentError("CONFIG_INVALID", "a new source needs a name");
  const typed = nodes.flatMap(({ input }) => input ?? []);
  const taken = new Set([...config.sources.flatMap(({ rules }) => rules.map(({ input }) => input)), ...typed]);
  const inputs = nodes.map((node) => node.input ?? uniqueInput(inputFrom(template, { ...node, source }), taken));
  const tags = nodes.map(({ tag, signal }, i): NewTag => {
    const { unit } = tag;
    return { unit: typeof unit === "number" ? unit : undefined, text: tagEntry({ tag, signal }, inputs[i] ?? "") };
  });
  const { refusal, ...written } =
    existing === undefined
      ? await asNewSource(look, source, tags, { file: main, environment }, config)
      : await asAddition(existing, tags, files);
  const { file, before, after, secret } = written;
  const wanted = nodes.map(({ tag }) => tag);
  const repeated = before === undefined ? [] : tagsLike(before, source, wanted);
  const overlay = new Map([[file, after], ...(secret ? [[secret.file, secret.value] as const] : [])]);
  const checked = await check(main, environment, overlay, file);
  return {
    ...written,
    source,
    base: textHash(before),
    result: textHash(after),
    difference: difference(file, before, after),
    inputs,
    errors: refusal === undefined ? checked.errors : [refusal],
    warnings: [...(repeated.length > 0 ? [twice(repeated)] : []), ...checked.warnings],
    obstacle: await obstacleTo(file, resolve(environment.cwd, main), checked.included),
    checksum: config.checksum,
  };
}

function twice(inputs: readonly string[]): string {
  const more = inputs.length > mostNamed ? ` and ${inputs.length - mostNamed} more` : "";
  return `recorded already, and twice with this change: ${inputs.slice(0, mostNamed).join(", ")}${more}`;
}

interface Written extends Pick<Proposal, "file" | "before" | "after" | "secret" | "yaml"> {
  /** Why the tags cannot be added to the file, which stays as it is. */
  readonly refusal?: string;
}

async function asAddition(source: string, tags: readonly NewTag[], files: Iterable<string>): Promise<Written> {
  const file = await fileOfSource(files, source);
  const before = file === undefined ? undefined : await textOf(file);
  if (file === undefined || before === undefined)
    throw new AgentError("CONFIG_INVALID", `source ${source} is in no file of the configuration`);
  const same = { file, before, secret: undefined, yaml: tagsText(tags) };
  try {
    return { ...same, after: addTags(before, source, tags) };
  } catch (error) {
    if (!isAgentError(error, "CONFIG_INVALID")) throw error;
    return { ...same, after: before, refusal: `${error.message}: ${error.hint}; the YAML below can be copied` };
  }
}

async function asNewSource(
  { driver, target }: Look,
  source: string,
  tags: readonly NewTag[],
  { file: main, environment }: ConfigPlace,
  config: Config,
): Promise<Written> {
  const file = newFile(main, environment, source);
  await assertFree(file, source, config);
  const { username, password, security, options = {} } = target;
  const secret = password === undefined ? undefined : await freeSecret(dirname(file), source, password);
  const url = configuredUrl(target.url);
  const needsPassword = username !== undefined && !driver.schema.safeParse({ url, username }).success;
  const yaml = `sources:\n${sourceText({
    name: source,
    type: driver.type,
    url: literal(url),
    username: username && literal(username),
    password: secret ? `\${file:${secret.name}}` : needsPassword ? "" : undefined,
    securityMode: security?.["mode"],
    anyUnit: /[?&]replyUnit=any(&|$)/.test(target.url),
    allowInsecurePassword: options["allowInsecurePassword"] === true,
    tags: tagsText(tags),
  })}`;
  return { file, before: undefined, after: yaml, secret, yaml };
}

/** A file for a password that is not there yet. */
async function freeSecret(folder: string, source: string, value: string) {
  const wanted = `${source}_password`;
  let name = wanted;
  for (let n = 2; (await textOf(join(folder, name)).catch(() => "")) !== undefined; n++) name = `${wanted}${n}`;
  return { name, file: join(folder, name), value };
}

/** `tags:`, or `devices:` for tags of units. */
function tagsText(tags: readonly NewTag[]): string {
  const lines = [...Map.groupBy(tags, ({ unit }) => unit)].flatMap(([unit, ofUnit]) => {
    const entries = ofUnit.map(({ text }) => `- ${text}`);
    return unit === undefined ? entries : deviceLines(unit, entries);
  });
  const key = tags.some(({ unit }) => unit !== undefined) ? "devices" : "tags";
  return [`${key}:`, ...lines.map((line) => `  ${line}`)].join("\n");
}

/** As `tagferry check` does, with the change. */
async function check(main: string, environment: Environment, overlay: Overlay, file: string) {
  const own = (issues: readonly ConfigIssue[]) =>
    issues.filter((issue) => resolve(environment.cwd, issue.file) === file).map(formatIssue);
  try {
    const { config, files } = await loadWith(main, environment, overlay);
    return { errors: [], warnings: own(config.warnings), included: files.has(file) };
  } catch (error) {
    const issues = configIssues(error);
    if (issues.length === 0) throw error;
    return { errors: issues.map(formatIssue), warnings: [], included: true };
  }
}

/** As the running agent reports a reload. */
export interface ReloadResult {
  readonly ok: boolean;
  readonly reason?: string;
}

export type WriteResult =
  /** The file is not the one that the difference was made against. Nothing was written. */
  | { readonly outcome: "stale" }
  | { readonly outcome: "written"; readonly reload: ReloadResult }
  /** The agent refused the configuration. The file is as it was before. */
  | { readonly outcome: "refused"; readonly reload: ReloadResult };

/** Everyone may read a new file: passwords are in files of their own. */
const newFileMode = 0o644;

/**
 * Call it for one proposal at a time. Rejects as `node:fs` does; the file is then as it was. After a crash the file has
 * its old or its new content, and the new one was checked.
 */
export async function write(proposal: Proposal, reload: () => Promise<ReloadResult>): Promise<WriteResult> {
  const { file, before, after, secret } = proposal;
  const folder = dirname(file);
  if (textHash(await textOf(file)) !== proposal.base) return { outcome: "stale" };
  const mode = before === undefined ? { mode: newFileMode } : await stat(file);
  try {
    // A file that is there already belongs to something else.
    if (secret) await writeNewFile(secret.file, `${secret.value}\n`, 0o600, async () => ownAs(folder, secret.file));
    await writeAtomically(file, after, mode);
    if (before === undefined) ownAs(folder, file);
    const result = await reload();
    if (result.ok) return { outcome: "written", reload: result };
    await takeBack(proposal, mode);
    // The status shows the failed reload until another one succeeds.
    await reload();
    return { outcome: "refused", reload: result };
  } catch (error) {
    await takeBack(proposal, mode);
    throw error;
  }
}

/** Leaves the file alone if another program has changed it since. */
async function takeBack({ file, before, result, secret }: Proposal, like: { readonly mode: number }): Promise<void> {
  if (textHash(await textOf(file)) === result) {
    if (before === undefined) await rm(file);
    else await writeAtomically(file, before, like);
  }
  if (secret && (await textOf(secret.file)) === `${secret.value}\n`) await rm(secret.file);
}
