// `tagferry support-bundle`: an archive with the data for diagnosing a problem, without secrets.

import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { arch, cpus, freemem, hostname, release, totalmem, uptime } from "node:os";
import { basename, join, resolve } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { controlTokenName } from "../../agent/process/control-token.ts";
import type { Config } from "../../config/format/config.ts";
import { configIssues, loadConfig } from "../../config/load.ts";
import { shownFile } from "../../config/nodes/shown-values.ts";
import { isAgentError } from "../../core/errors.ts";
import { Secret } from "../../core/secret.ts";
import { creationProblem, fileProblem } from "../../lib/files/paths.ts";
import { withoutSecrets } from "../../lib/text/without-secrets.ts";
import { formatByteSize } from "../../lib/values/byte-size.ts";
import { type AgentQuery, findAgent } from "../shared/agent-client.ts";
import type { Console } from "../terminal/console.ts";
import { CommandFailed } from "../terminal/exit-status.ts";
import { progressBar } from "../terminal/text.ts";
import { version } from "../terminal/version.ts";

interface SupportBundleOptions extends AgentQuery {
  readonly config: string;
  readonly output?: string;
}

export type RunCommand = (args: readonly string[], io: Console) => Promise<number>;

/** Returns the text of one file of the bundle. Rejects with the reason if there is none. */
type Gather = () => Promise<string>;

/**
 * Resolves once the archive is written, even incompletely. Rejects with `CommandFailed` if it exists. Without a
 * configuration file and an agent, rejects as `loadConfig` does or with `AGENT_UNREACHABLE`.
 */
export async function supportBundle(runCommand: RunCommand, options: SupportBundleOptions, io: Console): Promise<void> {
  const config = await loadConfig(options.config, io.environment).catch((error: unknown) =>
    insteadOfConfig(error, options, io),
  );
  const time = new Date();
  const stamp = time.toISOString().replace(/[-:]|\.\d+/g, "");
  const agent = config?.agent.name.slice(0, 32) ?? "agent";
  const folder = `tagferry-support-${agent}-${stamp}`;
  const scrub = scrubber(await knownSecrets(config));
  const parts = partsOf(options, config, io, runCommand);
  const files = new Map<string, string>();
  const missing = new Map<string, string>();
  for (const [i, [name, gather]] of Object.entries(parts).entries()) {
    io.progress(progressBar(i, Object.keys(parts).length, `files, now ${name}`));
    try {
      files.set(name, scrub(await gather()));
    } catch (error) {
      io.signal.throwIfAborted();
      missing.set(name, scrub(reason(error)));
    }
  }
  io.progress(undefined);
  files.set("about.txt", about(time, [...files.keys()], missing));
  const archive = tar(
    [...files].map(([name, text]) => ({ name: `${folder}/${name}`, data: Buffer.from(text) })),
    time.getTime() / 1_000,
  );
  const packed = await promisify(gzip)(archive);
  const output = options.output ?? `${folder}.tar.gz`;
  const path = resolve(io.environment.cwd, output);
  try {
    await writeFile(path, packed, { mode: 0o600, flag: "wx" });
  } catch (error) {
    throw new CommandFailed(`${output} cannot be written: ${creationProblem(error, path)}`);
  }
  io.print(`${output}: ${files.size} files, ${formatByteSize(packed.length)}`);
  // Grouped, since one cause may explain several missing files.
  for (const [why, names] of Map.groupBy(missing.keys(), (name) => missing.get(name) ?? ""))
    io.print(`  not in it: ${names.join(", ")}: ${why}`);
  io.print(
    "Secrets are not in it; names of tags and devices, addresses and values are. Look at it before you send it.",
  );
}

/** Continues with an invalid configuration, or with an agent only; otherwise the archive would be empty. */
async function insteadOfConfig(error: unknown, { config: file, url }: SupportBundleOptions, io: Console) {
  if (await io.environment.readFile(resolve(io.environment.cwd, file)).catch(() => undefined)) return undefined;
  if (url === undefined) throw error;
  await (await findAgent({ url }, io)).get("/healthz");
  return undefined;
}

function partsOf(
  options: SupportBundleOptions,
  config: Config | undefined,
  io: Console,
  runCommand: RunCommand,
): Record<string, Gather> {
  const { config: file } = options;
  const outputOf = (...args: string[]) => ran(runCommand, [...args, "--json"], io);
  const agent = () => findAgent(options, io);
  const asked = async (path: string) => (await (await agent()).get(path)).text;
  const hasCertificates = config?.sources.some(({ driver }) => driver.certificates) === true;
  return {
    "versions.json": async () => versions(),
    "config.yaml": () => shown(file, io),
    ...(config && { "config-effective.json": async () => effective(config) }),
    "check.json": () => outputOf("check", "-c", file),
    "status.json": () => asked("/api/status"),
    "health.json": async () => `${await asked("/healthz")}\n${await asked("/readyz")}`,
    "metrics.txt": () => asked("/metrics"),
    "log.ndjson": async () => {
      try {
        return (await (await agent()).control("/api/log")).text;
      } catch (error) {
        // The journal may tell why the agent is not running.
        return await journalLines(io.signal).catch(() => Promise.reject(error));
      }
    },
    ...(config && {
      "buffer.json": () => outputOf("buffer", "stat", config.agent.dataDir),
      "rejects.json": () => outputOf("rejects", "list", "-c", file),
      "gaps.json": () => outputOf("gaps", "-c", file),
    }),
    ...(hasCertificates && { "trust.json": () => outputOf("trust", "list", "-c", file) }),
  };
}

async function ran(runCommand: RunCommand, args: readonly string[], io: Console): Promise<string> {
  let printed = "";
  let complaints = "";
  const status = await runCommand(args, {
    ...io,
    print: (line) => void (printed += `${line}\n`),
    complain: (line) => void (complaints += `${line}\n`),
    async write(text) {
      printed += text;
      return true;
    },
    progress() {},
    interactive: false,
  });
  // The hints are for a user who runs the command directly.
  if (printed === "") throw new Error(complaints.split("\n")[0]?.replace(/^tagferry: /, "") || `exit status ${status}`);
  return printed;
}

/** The file without secrets and comments. Its lines have the numbers of `check.json`. */
async function shown(file: string, { environment }: Console): Promise<string> {
  const text = new TextDecoder().decode(await environment.readFile(resolve(environment.cwd, file)));
  const lines = shownFile(text);
  if (!lines) throw new Error("it is not valid YAML; check.json has the position");
  return lines.map((line) => line.replace(/(?:^|\s+)#\s*\*\*\*$/, "")).join("\n");
}

/** The configuration with all defaults, included files and expanded tags. */
function effective(config: Config): string {
  const plain = (_key: string, value: unknown) => (typeof value === "string" ? withoutSecrets(value) : value);
  const sources = config.sources.map(({ driver, ...source }) => ({ ...source, driver: driver.type }));
  return `${JSON.stringify({ ...config, sources }, plain, 1)}\n`;
}

function versions(): string {
  const found = {
    tagferry: version(),
    node: process.versions,
    platform: `${process.platform} ${arch()} ${release()}`,
    hostname: hostname(),
    uptimeSeconds: Math.round(uptime()),
    memory: { total: totalmem(), free: freemem() },
    cpus: cpus().map(({ model }) => model),
    zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  };
  return `${JSON.stringify(found, undefined, 2)}\n`;
}

function about(time: Date, names: readonly string[], missing: ReadonlyMap<string, string>): string {
  return `tagferry ${version()}, ${time.toISOString()}

${names.map((name) => `  ${name}`).join("\n")}

Passwords, tokens and keys are *** wherever they stood; comments of the configuration are left out.
${missing.size === 0 ? "" : `\nNot in it:\n${[...missing].map((entry) => `  ${entry.join(": ")}`).join("\n")}\n`}`;
}

async function knownSecrets(config: Config | undefined): Promise<ReadonlySet<string>> {
  const found = secretsIn(config);
  if (!config) return found;
  const { agent, service } = config;
  const { basic, clientCredentials } = service.auth;
  if (basic) found.add(`${basic.username ?? service.integration}:${basic.password.reveal()}`);
  const files = [join(agent.dataDir, controlTokenName), join(agent.dataDir, "upload", "token.json")];
  for (const file of clientCredentials ? [...files, clientCredentials.file] : files)
    for (const text of await secretsOf(file)) found.add(text);
  return found;
}

/** The secrets in a secret file: its whole text, or the secret members of its JSON. */
async function secretsOf(file: string): Promise<readonly string[]> {
  try {
    const text = (await readFile(file, "utf8")).trim();
    if (basename(file) === controlTokenName) return [text];
    const held: string[] = [];
    JSON.parse(text, (key, value: unknown) => {
      if (typeof value === "string" && /secret|token|key|password/i.test(key)) held.push(value);
      return value;
    });
    return held;
  } catch {
    return [];
  }
}

/** The first error of an invalid configuration, since "1 error" would not help. */
function reason(error: unknown): string {
  const [issue] = isAgentError(error, "CONFIG_INVALID") ? configIssues(error) : [];
  if (issue) return `${issue.file}: ${issue.message}`;
  return fileProblem(error);
}

const blockBytes = 512;

/**
 * A ustar archive (POSIX.1-1988): each file has a header of 512 bytes, its content is zero-padded to a multiple of 512, and
 * two empty blocks end the archive. Files have less than 8 GiB. `seconds`: modification time since 1970. Throws `RangeError`
 * if a name has more than 100 bytes.
 */
export function tar(files: readonly { readonly name: string; readonly data: Uint8Array }[], seconds: number): Buffer {
  const parts = files.flatMap(({ name, data }) => [
    header(name, data.length, seconds),
    data,
    Buffer.alloc((blockBytes - (data.length % blockBytes)) % blockBytes),
  ]);
  return Buffer.concat([...parts, Buffer.alloc(2 * blockBytes)]);
}

function header(name: string, size: number, seconds: number): Buffer {
  const block = Buffer.alloc(blockBytes);
  if (Buffer.byteLength(name) > 100) throw new RangeError(`too long for a tar archive: ${name}`);
  const octal = (value: number, at: number, digits: number) =>
    block.write(`${Math.floor(value).toString(8).padStart(digits, "0")}\0`, at);
  block.write(name, 0);
  octal(0o600, 100, 7);
  octal(0, 108, 7);
  octal(0, 116, 7);
  octal(size, 124, 11);
  octal(seconds, 136, 11);
  // The checksum counts its own field as blanks.
  block.write("        ", 148);
  block.write("0", 156);
  block.write("ustar\x0000", 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}

/** Masking shorter secrets would destroy half of the text. */
const shortest = 4;

/** All secrets in `value`, at any depth. */
export function secretsIn(value: unknown, found: Set<string> = new Set(), seen: Set<unknown> = new Set()): Set<string> {
  if (value instanceof Secret) found.add(value.reveal());
  else if (typeof value === "object" && value !== null && !seen.has(value)) {
    seen.add(value);
    for (const inner of Object.values(value)) secretsIn(inner, found, seen);
  }
  return found;
}

/** Replaces the secrets by `***`: literal, base64, hexadecimal, URL-encoded and JSON-escaped. */
export function scrubber(secrets: Iterable<string>): (text: string) => string {
  const forms = new Set<string>();
  for (const secret of secrets) {
    if (secret.length < shortest) continue;
    const bytes = Buffer.from(secret);
    const base64 = bytes.toString("base64");
    const json = JSON.stringify(secret).slice(1, -1);
    const all = [secret, base64, base64.replace(/=+$/, ""), bytes.toString("base64url"), bytes.toString("hex")];
    all.push(bytes.toString("hex").toUpperCase());
    for (const form of [...all, encodeURIComponent(secret), json]) forms.add(form);
  }
  if (forms.size === 0) return (text) => text;
  // Longest first, since a secret may be the prefix of another.
  const ordered = [...forms].toSorted((a, b) => b.length - a.length);
  const any = new RegExp(ordered.map((form) => form.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|"), "g");
  return (text) => text.replace(any, "***");
}

/** Rejects if the journal is missing, unreadable for this user, or empty. */
async function journalLines(signal: AbortSignal): Promise<string> {
  const args = ["--unit", "tagferry", "--lines", "5000", "--output", "cat", "--no-pager", "--quiet"];
  const { stdout } = await promisify(execFile)("journalctl", args, { signal, timeout: 20_000, maxBuffer: 2 ** 26 });
  if (stdout.trim() === "") throw new Error("the journal has nothing");
  return stdout;
}
