// `tagferry security`: reports the protection of the configuration, the files, the process and its connections.
import { stat } from "node:fs/promises";
import { z } from "zod";
import type { Config } from "../../config/format/config.ts";
import { loadConfig } from "../../config/load.ts";
import { isAgentError } from "../../core/errors.ts";
import { fileProblem } from "../../lib/files/paths.ts";
import { isLoopback, leavesMachine } from "../../lib/network/listen.ts";
import { visible } from "../../lib/text/visible.ts";
import { type AgentQuery, findAgent } from "../shared/agent-client.ts";
import type { Console } from "../terminal/console.ts";
import { columns, count, printResult } from "../terminal/text.ts";

type SecurityOptions = AgentQuery & { readonly config: string };

interface Finding {
  /** `service`, `source hall`, `page`, `files`, `process`, `configuration`. */
  readonly about: string;
  /** `unknown`: only the running process knows, and it does not answer. */
  readonly state: "good" | "weak" | "unknown";
  readonly message: string;
  readonly remedy?: string;
}

const answeredProcess = z.object({
  root: z.boolean(),
  debuggerSignal: z.boolean(),
  codeFromText: z.boolean(),
  proto: z.boolean(),
  node: z.string(),
});
const answeredSources = z.object({
  sources: z.array(
    z.object({ name: z.string(), state: z.string(), details: z.record(z.string(), z.union([z.string(), z.number()])) }),
  ),
});

/** Resolves whatever is found. Rejects as `loadConfig` does. */
export async function security(options: SecurityOptions, io: Console): Promise<void> {
  const config = await loadConfig(options.config, io.environment);
  const findings = [
    serviceFinding(config),
    ...sourceFindings(config),
    pageFinding(config),
    ...(await fileFindings(config)),
    ...config.warnings.map(({ path, message, hint }) => weak("configuration", `${path}: ${message}`, hint)),
    ...(await runningFindings(options, io)),
  ];
  const ok = !findings.some(({ state }) => state === "weak");
  printResult(options, { ok, findings }, () => report(findings), io);
}

function report(findings: readonly Finding[]): readonly string[] {
  const lines = columns(findings.map(({ state, about, message }) => [state, about, message]));
  const weaknesses = findings.filter(({ state }) => state === "weak").length;
  return [
    ...findings.flatMap(({ remedy }, i) => [
      lines[i] ?? "",
      ...(remedy === undefined ? [] : [visible(`    ${remedy}`)]),
    ]),
    weaknesses === 0 ? "nothing weak was found" : count(weaknesses, "weak place"),
  ];
}

function weak(about: string, message: string, remedy?: string): Finding {
  return { about, state: "weak", message, ...(remedy !== undefined && { remedy }) };
}

function good(about: string, message: string): Finding {
  return { about, state: "good", message };
}

function serviceFinding({ service: { url } }: Config): Finding {
  if (url.startsWith("https:")) return good("service", "TLS, issuer and name are checked");
  if (!leavesMachine(url)) return good("service", "not encrypted, and it does not leave this machine");
  return weak("service", "not encrypted", "service.url with https://");
}

/** Findings from the options of a source. For some protocols, the running agent knows more. */
function sourceFindings({ sources }: Config): readonly Finding[] {
  return sources.flatMap(({ name, driver, options }) =>
    (driver.findings?.(options) ?? []).map((finding) => ({ about: `source ${name}`, ...finding })),
  );
}

function pageFinding({ http: { listen, token, readToken, tls } }: Config): Finding {
  const changes = token === undefined ? "changes nothing without control.token" : "changes nothing without a token";
  if (isLoopback(listen.host)) return good("page", `for this machine alone, and ${changes}`);
  if (readToken && tls) return good("page", `TLS and a token to look, and ${changes}`);
  if (readToken) return weak("page", "a token to look, but not encrypted", "http.tls");
  const remedy = "http.readToken with http.tls, or http.listen on 127.0.0.1";
  return weak("page", `everybody who reaches ${listen.host}:${listen.port} may look, and ${changes}`, remedy);
}

/** Whether other users can access the data directory. */
async function fileFindings({ agent: { dataDir } }: Config): Promise<readonly Finding[]> {
  // Windows has no permission bits, and Node reports those of everybody.
  if (process.platform === "win32")
    return [{ about: "files", state: "unknown", message: `${dataDir}: see its permissions in its properties` }];
  try {
    const { mode } = await stat(dataDir);
    return (mode & 0o077) === 0
      ? [good("files", `${dataDir} is for its user alone`)]
      : [weak("files", `others may look into ${dataDir}`, `chmod 0700 ${dataDir}`)];
  } catch (error) {
    return [{ about: "files", state: "unknown", message: `${dataDir}: ${fileProblem(error)}` }];
  }
}

async function runningFindings(options: SecurityOptions, io: Console): Promise<readonly Finding[]> {
  try {
    const agent = await findAgent(options, io);
    const { data: status } = await agent.ask("/api/status", answeredSources);
    const { data: running } = await agent.askControl("/api/security", answeredProcess);
    return [...processFindings(running), ...status.sources.flatMap(connectionFinding)];
  } catch (error) {
    if (!isAgentError(error)) throw error;
    return [{ about: "process", state: "unknown", message: error.message }];
  }
}

function processFindings({ root, debuggerSignal, codeFromText, proto, node }: z.output<typeof answeredProcess>) {
  const flags = "start Node with the flags of the unit; tagferry install-service does";
  const checks = [
    [root, "runs as root", "not root", "give it a user of its own, as the unit does"],
    [debuggerSignal, "a signal opens the debugger", "no debugger by signal", flags],
    [codeFromText, "text can become code", "no code made of text", "start main.js, as the unit does"],
    [proto, "__proto__ can be reached", "no __proto__", flags],
  ] as const;
  return [
    ...checks.map(([isWeak, bad, fine, remedy]) => (isWeak ? weak("process", bad, remedy) : good("process", fine))),
    good("process", `Node ${node}`),
  ];
}

function connectionFinding({ name, state, details }: z.output<typeof answeredSources>["sources"][number]) {
  const { warning, security: channel } = details;
  const about = `source ${name}`;
  if (warning !== undefined) return [weak(about, `its connection: ${warning}`)];
  if (channel !== undefined) return [good(about, `its connection: ${channel}`)];
  return state === "online" ? [] : [{ about, state: "unknown" as const, message: "not connected" }];
}
