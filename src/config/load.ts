// Reads a configuration with all files it refers to. Returns a valid `Config` or all errors at once.
import { resolve } from "node:path";
import { z } from "zod";
import type { Driver } from "../core/driver.ts";
import { AgentError, isAgentError } from "../core/errors.ts";
import type { Secret } from "../core/secret.ts";
import { fileProblem } from "../lib/files/paths.ts";
import { isLoopback, leavesMachine } from "../lib/network/listen.ts";
import { drivers as allDrivers } from "../source/registry.ts";
import { dataDirOf, type Environment, nameOf, readTextFile } from "./files/environment.ts";
import { readIncludes } from "./files/include.ts";
import { replaceReferences } from "./files/references.ts";
import { readTables } from "./files/tag-table.ts";
import { parseYaml } from "./files/yaml-file.ts";
import type { Config, ConfiguredSource } from "./format/config.ts";
import { cascadedOptions, fileKeys, formatVersion, sections, sourceName } from "./format/file-schema.ts";
import { checkNode, nodeAt, unknownKeys, warnLiteralSecrets } from "./nodes/check-node.ts";
import { type ConfigIssue, Issues } from "./nodes/issue.ts";
import { type ConfigNode, childNode, type MapEntry, type MapNode, type ScalarNode } from "./nodes/node.ts";
import { shownValues } from "./nodes/shown-values.ts";
import { type Fields, mapsOf, pick } from "./sources/expand.ts";
import { type Claims, checkSource, type RefusedTags } from "./sources/source-config.ts";

/**
 * Loads `file` (relative to `environment.cwd`). Rejects with `CONFIG_INVALID`; see `configIssues`. `claims`: those of
 * other agents' configurations, to which this one's are added.
 */
export async function loadConfig(
  file: string,
  environment: Environment,
  drivers: readonly Driver[] = allDrivers,
  claims: Claims = new Map(),
  refused: RefusedTags = new Map(),
): Promise<Config> {
  const issues = new Issues();
  const root = await readRoot(file, environment, issues);
  const config = root && checkFile(root, { file, environment, drivers, issues, claims, refused });
  // Warnings about an invalid file are omitted; they often result from the errors.
  if (!config || issues.errors > 0)
    throw configError(
      file,
      issues.list().filter(({ severity }) => severity === "error"),
    );
  followFile(config.service.auth.basic?.password, nodeAt(root, ["service", "auth", "basic", "password"]), environment);
  return {
    ...config,
    file: resolve(environment.cwd, file),
    checksum: issues.checksum,
    files: issues.files,
    warnings: issues.list(),
  };
}

/** Lets a password that a file holds be read again once it is refused. */
function followFile(password: Secret | undefined, node: ConfigNode | undefined, environment: Environment): void {
  if (!password || node?.kind !== "scalar" || node.reference === undefined) return;
  const written = { ...node, text: node.reference };
  password.readAgain = async () => {
    const { text, broken } = await replaceReferences(written, environment, new Issues());
    return broken ? undefined : text;
  };
}

/** Resolves with the positions in `file` of tags that devices refuse. Rejects if the file cannot be read. */
export async function locateTags(
  file: string,
  environment: Environment,
  refused: RefusedTags,
): Promise<readonly ConfigIssue[]> {
  try {
    await loadConfig(file, environment, allDrivers, new Map(), refused);
    return [];
  } catch (error) {
    const issues = configIssues(error);
    if (issues.length === 0) throw error;
    return issues;
  }
}

/** Resolves with a warning for each file that an option names and that cannot be read here and now. */
export async function unreadableFiles(file: string, environment: Environment): Promise<readonly ConfigIssue[]> {
  const issues = new Issues();
  const root = await readRoot(file, environment, issues);
  for (const node of root ? namedFiles(root) : [])
    try {
      await environment.readFile(resolve(environment.cwd, node.text));
    } catch (error) {
      issues.warn(
        node,
        `cannot read ${node.text}: ${fileProblem(error)}`,
        "the user of the agent must be able to read it",
      );
    }
  return issues.list();
}

/** Such as `caFile` of a source, or `file` of `clientCredentials`. Metadata, variables, words and headers may have any key. */
function namedFiles(node: ConfigNode, name = ""): readonly ScalarNode[] {
  if (node.kind === "scalar") return /^file$|File$|^serverCertificate$/.test(name) && node.text !== "" ? [node] : [];
  if (node.kind === "list" || ["signal", "vars", "values", "headers"].includes(name)) return [];
  return [...node.entries].flatMap(([key, { value }]) => namedFiles(value, key));
}

/** The issues in `error`. Empty if `loadConfig` did not throw it. */
export function configIssues(error: unknown): readonly ConfigIssue[] {
  if (!isAgentError(error, "CONFIG_INVALID")) return [];
  const carried = z.object({ issues: z.array(z.custom<ConfigIssue>()) }).safeParse(error.cause);
  return carried.success ? carried.data.issues : [];
}

function configError(file: string, issues: readonly ConfigIssue[]): AgentError {
  const count = `${issues.length} ${issues.length === 1 ? "error" : "errors"}`;
  return new AgentError("CONFIG_INVALID", `${file}: ${count}`, { cause: { issues } });
}

async function readRoot(file: string, environment: Environment, issues: Issues): Promise<MapNode | undefined> {
  const text = await readTextFile(file, { at: { file, line: 1, column: 1 }, path: "" }, environment, issues);
  const node = text === undefined ? undefined : parseYaml(text, file, issues);
  if (node && node.kind !== "map")
    issues.error(
      node,
      "must be a map with the sections agent, service and sources",
      "see the reference of the configuration",
    );
  if (node?.kind !== "map") return undefined;
  const own = await replaceReferences(withoutEmpty(node), environment, issues);
  return await readTables(await readIncludes(own, environment, issues), environment, issues);
}

/** Removes sections whose lines are all commented out. */
function withoutEmpty(root: MapNode): MapNode {
  const empty = ({ value: node }: MapEntry) =>
    node.kind === "scalar" && node.text === "" && node.value === null && !node.broken && node.note === undefined;
  return { ...root, entries: new Map([...root.entries].filter(([, entry]) => !empty(entry))) };
}

interface CheckParts {
  readonly file: string;
  readonly environment: Environment;
  readonly drivers: readonly Driver[];
  readonly issues: Issues;
  readonly claims: Claims;
  readonly refused: RefusedTags;
}

function checkFile(
  root: MapNode,
  { file, environment, drivers, issues, claims, refused }: CheckParts,
): Omit<Config, "warnings"> | undefined {
  // This variable silently disables every certificate check in the whole process.
  if (environment.variables["NODE_TLS_REJECT_UNAUTHORIZED"] === "0")
    issues.error(
      root,
      "the environment has NODE_TLS_REJECT_UNAUTHORIZED=0, by which anybody can pass for the service",
      "take it out; an authority of your own is trusted by caFile",
    );
  unknownKeys(root, fileKeys, issues);
  // Checking all sections as one object also finds missing ones.
  const own = z.strictObject({ version: formatVersion, ...sections });
  const checked = checkNode(own, pick(root, Object.keys(own.shape)), issues);
  warnLiteralSecrets([own], root, issues);
  const defaults = defaultsOf(root, issues);
  const templates = { nodes: templatesOf(root, issues), used: new Set<string>() };
  const inputs = new Map();
  const connections = new Map();
  const agentName = checked?.agent.name ?? nameOf(environment.hostname);
  const known = {
    agent: agentName,
    integration: checked?.service.integration ?? "",
    isClustered: childNode(root, "cluster") !== undefined,
  };
  const parts = { drivers, defaults, templates, issues, inputs, connections, claims, refused, ...known };
  const sources = entriesOf(root, "sources", issues).flatMap(([name, { key, value }]): ConfiguredSource[] => {
    const good = sourceName.safeParse(name);
    if (!good.success)
      issues.error(
        { at: key, path: value.path },
        good.error.issues[0]?.message ?? "is not a valid name",
        "the name stands in logs, metrics and status",
      );
    const source = checkSource(name, value, parts);
    const driver = drivers.find(({ type }) => type === source?.driver.type);
    if (driver) warnLiteralSecrets([driver.schema], value, issues);
    return source ? [source] : [];
  });
  for (const [name, node] of templates.nodes)
    if (!templates.used.has(name)) issues.warn(node, `template ${name} is not used`);
  if (!childNode(root, "sources")) issues.warn(root, "has no sources: nothing will be read");
  if (!checked) return undefined;
  const { version: _version, agent, service, ...rest } = checked;
  const place = (...path: readonly string[]) => nodeAt(root, ["service", ...path]) ?? root;
  if (service.confirmation === "status")
    issues.warn(
      place("confirmation"),
      "counts points as delivered though no answer names their inputs: what the service drops without an error is lost",
      "named, where the service names the inputs it stored",
    );
  if (service.auth.basic?.password.reveal() === "")
    issues.warn(
      place("auth", "basic", "password"),
      "is empty: the service will refuse it",
      "what it refers to holds nothing yet",
    );
  warnOfClearText(checked, root, issues);
  const dataDir = dataDirOf(agent.dataDir, file, environment);
  const named = z.strictObject({ ...sections, defaults: cascadedOptions.optional() });
  const values = shownValues([named], pick(root, Object.keys(named.shape)), "", {
    agent: { name: agentName, dataDir },
  });
  return { ...rest, agent: { ...agent, name: agentName, dataDir }, service, sources, values };
}

/** Warns of each connection over which secrets leave the machine without encryption. */
function warnOfClearText(
  { service, http, otlp, cluster }: Pick<Config, "service" | "http" | "otlp" | "cluster">,
  root: MapNode,
  issues: Issues,
): void {
  const inClear = (urls: readonly string[]) => urls.some((url) => /^(http|nats):/i.test(url) && leavesMachine(url));
  const https = (whose: string) => `https:// where the ${whose} offers it, with caFile where its authority is your own`;
  const servers = "tls:// where the servers offer it, with tls.caFile where their authority is your own";
  const hasHeaders = otlp !== undefined && Object.keys(otlp.headers).length > 0;
  const isPageInClear = !http.tls && (http.readToken ?? http.token) !== undefined && !isLoopback(http.listen.host);
  for (const [path, isExposed, exposed, remedy] of [
    [["service", "url"], inClear([service.url]), "the credentials and all values", https("service")],
    [["otlp", "url"], hasHeaders && inClear([otlp.url]), "the headers, metrics and log lines", https("collector")],
    [
      ["cluster", "servers"],
      cluster?.password && !cluster.tls && inClear(cluster.servers),
      "the password and all values",
      servers,
    ],
    [["http", "listen"], isPageInClear, "tokens and all values", "http.tls with a certificate of this agent"],
  ] as const)
    if (isExposed)
      issues.warn(
        nodeAt(root, path) ?? root,
        `is not encrypted: ${exposed} can be read by anyone on the network`,
        remedy,
      );
}

/** The `defaults`, validated even if no tag uses them. */
function defaultsOf(root: MapNode, issues: Issues): Fields {
  const node = childNode(root, "defaults");
  if (!node || (node.kind === "scalar" && node.broken)) return new Map();
  checkNode(cascadedOptions, node, issues);
  return node.kind === "map" ? node.entries : new Map();
}

function templatesOf(root: MapNode, issues: Issues): ReadonlyMap<string, ConfigNode> {
  const templates = entriesOf(root, "templates", issues).map(([name, { value }]): [string, ConfigNode] => {
    if (value.kind === "list") {
      for (const tag of mapsOf(value, issues))
        for (const key of ["template", "vars"])
          if (tag.entries.has(key))
            issues.error(
              { at: tag.entries.get(key)?.key ?? tag.at, path: `${tag.path}.${key}` },
              "must not stand in a template",
            );
    } else issues.error(value, "must be a list of tags");
    return [name, value];
  });
  return new Map(templates);
}

function entriesOf(root: MapNode, key: string, issues: Issues): readonly [string, MapEntry][] {
  const node = childNode(root, key);
  if (!node) return [];
  if (node.kind === "map") return [...node.entries];
  if (!(node.kind === "scalar" && node.broken))
    issues.error(
      { at: root.entries.get(key)?.key ?? node.at, path: key },
      "must be a map of names",
      `as in ${key}: { name: ... }`,
    );
  return [];
}
