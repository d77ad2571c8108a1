// Finds the running agent and calls it, with a token where it requires one.
import { readFile } from "node:fs/promises";
import { basename, isAbsolute, join } from "node:path";
import { z } from "zod";
import { controlTokenIn, controlTokenName } from "../../agent/process/control-token.ts";
import { type AgentPlace, agentPlace } from "../../config/agent-place.ts";
import { lineIn } from "../../config/files/environment.ts";
import type { Config } from "../../config/format/config.ts";
import { AgentError, codeOf, isAgentError, reasonOf } from "../../core/errors.ts";
import { attempt } from "../../lib/flow/attempt.ts";
import { bytesOf } from "../../lib/flow/bytes-of.ts";
import { hostInUrl, leavesMachine } from "../../lib/network/listen.ts";
import type { ListenAddress } from "../../lib/values/fields.ts";
import type { Console } from "../terminal/console.ts";
import { span } from "../terminal/text.ts";
import { type AgentReply, asker, flagFile, trust, trustAlso, trustExactly } from "./agent-trust.ts";

export interface AgentQuery {
  /** Address of the status page. Overrides `config`. */
  readonly url?: string;
  /** Configuration of the agent, which answers at `http.listen`. */
  readonly config?: string;
  /** File with `http.token`, for an agent on another machine or of another user. */
  readonly tokenFile?: string;
  /** Authorities or certificates in PEM to trust as well. */
  readonly caFile?: string;
  readonly json?: boolean;
}

const defaultUrl = "http://127.0.0.1:8421";
/** The agent answers within milliseconds. A hung agent must not hang the command. */
const timeoutMs = 5_000;
/** Calls with a token take longer: a reload waits for sources that stop slowly. */
const controlTimeoutMs = 60_000;

/** Ignores other errors in the file. Rejects as `loadConfig` does if the place is invalid. */
export async function placeOfAgent(file: string, environment: Console["environment"]): Promise<AgentPlace> {
  const place = await agentPlace(file, environment);
  if (place) return place;
  const { loadConfig } = await import("../../config/load.ts");
  const { http, agent } = await loadConfig(file, environment);
  const { listen, token, readToken, tls } = http;
  return { listen, token, readToken, tls, dataDir: agent.dataDir };
}

async function agentUrl({ url, config, caFile }: AgentQuery, { environment }: Console): Promise<string> {
  if (caFile !== undefined) await trustAlso(caFile);
  if (url !== undefined) return url;
  if (config === undefined) return defaultUrl;
  const { listen, tls } = await placeOfAgent(config, environment);
  const address = addressOf(listen, tls);
  // The configuration names the certificate of the agent on this machine, whatever its issuer and name.
  if (tls) {
    const pem = await lineIn(tls.certFile, `${config}: http.tls.certFile`, "CONFIG_INVALID");
    if (leavesMachine(address)) trust(pem);
    else await trustExactly(pem);
  }
  if (listen.port !== 0) return address;
  throw new AgentError("AGENT_UNREACHABLE", `${config}: http.listen takes any free port, so --url is needed`);
}

function addressOf({ host, port }: ListenAddress, tls?: Config["http"]["tls"]): string {
  const reachable = { "0.0.0.0": "127.0.0.1", "::": "::1" }[host] ?? host;
  return `${tls ? "https" : "http"}://${hostInUrl(reachable)}:${port}`;
}

interface AgentCall {
  readonly method?: "GET" | "POST" | undefined;
  readonly path: string;
  readonly token?: string | undefined;
  /** Timeout in milliseconds. */
  readonly withinMs?: number;
  /** Longest answer. */
  readonly mostBytes?: number;
}
interface AgentAnswer {
  readonly status: number;
  readonly text: string;
  readonly origin: string;
}

/** Resolves with the JSON at `path` and its parsed form. Rejects with `AGENT_UNREACHABLE` or `signal.reason`. */
export async function askAgent<Schema extends z.ZodType>(
  url: string,
  path: string,
  schema: Schema,
  signal: AbortSignal,
  call: Pick<AgentCall, "token" | "withinMs" | "mostBytes"> = {},
) {
  return parsedAnswer(schema, await callAgent(url, { ...call, path }, signal));
}

/** The agent that a command names. Its calls reject with `AGENT_UNREACHABLE`, `AGENT_REFUSED` or `io.signal.reason`. */
export async function findAgent(options: AgentQuery, io: Console) {
  const url = await agentUrl(options, io);
  const call = (of: AgentCall) => callAgent(url, of, io.signal);
  /** Any answer, with a token where the agent asks for one. */
  async function get(path: string): Promise<AgentAnswer> {
    const answer = await call({ path });
    return answer.status === 401 ? await callWithToken("read", path) : answer;
  }
  /** With `http.token` or the token in the data directory. */
  async function callWithToken(right: "read" | "change", path: string, method?: "POST"): Promise<AgentAnswer> {
    const callWith = (token: string | undefined) => call({ method, path, withinMs: controlTimeoutMs, token });
    let answer = await callWith(await knownToken(options, right, io));
    if (answer.status === 401) {
      const { reason, tokenFile } = answerAs(refusal, answer).data;
      // A token of this machine must not be sent to another one.
      if (tokenFile === undefined || leavesMachine(url)) throw refused(answer, reason);
      const token = await tokenIn(tokenFile);
      if (token === undefined) throw refused(answer, `${reason}; the one in ${tokenFile} cannot be read by this user`);
      answer = await callWith(token);
      if (answer.status === 401) throw refused(answer, reason);
    }
    const { status, text, origin } = answer;
    // 422: the request was handled, and the answer describes its error.
    if (status === 200 || status === 422) return answer;
    if (status === 403) throw refused(answer, text.slice(0, 200).trim());
    throw noAgent(`what answers at ${origin} cannot do that: HTTP ${status}`);
  }
  const control = (path: string, method?: "POST") => callWithToken("change", path, method);
  return {
    url,
    get,
    /** The JSON at `path` and its parsed form. */
    ask: async <Schema extends z.ZodType>(path: string, schema: Schema) => parsedAnswer(schema, await get(path)),
    /** What only clients with `http.token`, or the token in the data directory, may ask for. */
    control,
    askControl: async <Schema extends z.ZodType>(path: string, schema: Schema, method?: "POST") =>
      answerAs(schema, await control(path, method)),
  };
}

function parsedAnswer<Schema extends z.ZodType>(schema: Schema, answer: AgentAnswer) {
  const { status, text, origin } = answer;
  if (status >= 200 && status <= 299) return answerAs(schema, answer);
  const found = status === 401 ? refusal.safeParse(attempt(() => JSON.parse(text))).data : undefined;
  if (found) throw refused(answer, found.reason);
  throw noAgent(`no agent answers at ${origin}: HTTP ${status} ${text.slice(0, 200).trim()}`);
}

/** The JSON and its parsed form. Throws `AGENT_UNREACHABLE` if it is not the JSON of an agent. */
function answerAs<Schema extends z.ZodType>(schema: Schema, { text, origin }: AgentAnswer) {
  try {
    const answer: unknown = JSON.parse(text);
    return { answer, data: schema.parse(answer) };
  } catch (error) {
    throw noAgent(`what answers at ${origin} is no agent`, error);
  }
}

function noAgent(message: string, cause?: unknown): AgentError {
  return new AgentError("AGENT_UNREACHABLE", message, { cause });
}

/** Resolves with any answer. Rejects with `AGENT_UNREACHABLE` or `signal.reason`. */
async function callAgent(
  url: string,
  { method = "GET", path, token, withinMs = timeoutMs, mostBytes = allTagsBytes }: AgentCall,
  signal: AbortSignal,
): Promise<AgentAnswer> {
  const target = URL.parse(path, url);
  if (!target?.protocol.startsWith("http")) throw noAgent(`${url} is no address of an agent; it begins with http://`);
  const { origin } = target;
  try {
    const ask = await asker();
    const answer = await ask(target, {
      method,
      redirect: "error",
      headers: {
        ...(method === "POST" && { "content-type": "application/json" }),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      signal: AbortSignal.any([signal, AbortSignal.timeout(withinMs)]),
    });
    return { status: answer.status, text: await textOf(answer, mostBytes), origin };
  } catch (error) {
    signal.throwIfAborted();
    throw noAgent(`no agent answers at ${origin}: ${causeOf(error, withinMs)}`, error);
  }
}

/** Longest answer; 10,000 tags take about 4 MiB. */
const allTagsBytes = 64 * 2 ** 20;

async function textOf(answer: AgentReply, mostBytes: number): Promise<string> {
  const bytes = answer.body ? await bytesOf(answer.body, mostBytes) : Buffer.alloc(0);
  if (!bytes) throw new Error(`the answer is longer than ${mostBytes / 2 ** 20} MiB`);
  return bytes.toString("utf8");
}

export async function tokenOf(tokenFile: string): Promise<string> {
  return (await flagFile(tokenFile, "--token-file")).trim();
}

/** `fetch` only says "fetch failed"; its cause has the reason. */
function causeOf(error: unknown, withinMs: number): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === "TimeoutError") return `nothing came within ${span(withinMs)}`;
  const { cause } = error;
  const code = String(codeOf(cause));
  if (code === "ERR_SSL_WRONG_VERSION_NUMBER") return "it does not speak TLS; then its address begins with http://";
  if (cause instanceof Error && cause.message === "other side closed")
    return "it may speak TLS; then its address begins with https://";
  if (untrusted.test(code))
    return `its certificate is not trusted (${reasonOf(cause)}); --ca-file names it, or its authority`;
  return cause instanceof Error && cause.message !== "" ? cause.message : error.message;
}

/** Codes of Node for a certificate that no known authority has issued. */
const untrusted = /SELF_SIGNED_CERT|UNABLE_TO_(VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT)|CERT_SIGNATURE_FAILURE/;

const refusal = z.object({ reason: z.string(), tokenFile: z.string().optional() });

function refused({ origin }: AgentAnswer, reason: string): AgentError {
  return new AgentError("AGENT_REFUSED", `the agent at ${origin} refuses: ${reason}`);
}

async function knownToken(
  { tokenFile, config }: AgentQuery,
  right: "read" | "change",
  io: Console,
): Promise<string | undefined> {
  if (tokenFile !== undefined) return await tokenOf(tokenFile);
  const place = config === undefined ? undefined : await agentPlace(config, io.environment);
  if (!place) return undefined;
  const { token, readToken, dataDir } = place;
  const known = token ?? (right === "read" ? readToken : undefined);
  return known?.reveal() ?? (await tokenIn(join(dataDir, controlTokenName)));
}

/** The token in a file. The path comes from the network, so only `control.token` files are read and sent. */
async function tokenIn(file: string): Promise<string | undefined> {
  if (!isAbsolute(file) || basename(file) !== controlTokenName) return undefined;
  return await readFile(file, "utf8").then(controlTokenIn, () => undefined);
}

const text = z.string().optional();
const takeoverStatus = z.object({
  agent: z.object({ name: z.string() }),
  sources: z.array(z.object({ name: z.string(), code: text, error: text, remedy: text })),
});

/**
 * Errors of sources whose session another client recently took over, by source. Only the agent can know: no broker
 * tells, and a test would disconnect the agent. Empty if it does not run.
 */
export async function runningTakeovers(
  { agent, http }: Pick<Config, "agent" | "http">,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, AgentError>> {
  if (http.listen.port === 0) return new Map();
  try {
    const { data } = await askAgent(addressOf(http.listen, http.tls), "/api/status", takeoverStatus, signal, {
      token: http.readToken?.reveal(),
    });
    if (data.agent.name !== agent.name) return new Map();
    return new Map(
      data.sources.flatMap(({ name, code, error = "", remedy }) =>
        code === "SOURCE_TAKEN_OVER"
          ? [[name, new AgentError(code, error, { ...(remedy !== undefined && { hint: remedy }) })] as const]
          : [],
      ),
    );
  } catch (error) {
    if (isAgentError(error)) return new Map();
    throw error;
  }
}
