// Where the running agent answers, and how it is asked.
import { agentPlace } from "../../config/agent-place.ts";
import { loadConfig } from "../../config/load.ts";
import { AgentError } from "../../core/errors.ts";
import type { ListenAddress } from "../../lib/fields.ts";
import type { Console } from "../terminal/console.ts";
import { span } from "../terminal/figures.ts";

export interface AgentAddressOptions {
  /** Address of the status page. Goes before `config`. */
  readonly url?: string;
  /** Configuration of the agent: it answers at `http.listen`. */
  readonly config?: string;
}

const defaultUrl = "http://127.0.0.1:8421";
/** The agent answers within milliseconds; a hung one must not hang whoever asks. */
const timeoutMs = 5_000;

/** Rejects as `loadConfig` does where the file does not even say where the agent is. */
export async function agentUrl(
  { url, config }: AgentAddressOptions,
  { environment }: Pick<Console, "environment">,
): Promise<string> {
  if (url !== undefined) return url;
  if (config === undefined) return defaultUrl;
  // What else may be wrong in the file is no reason not to ask.
  const place = await agentPlace(config, environment);
  const { listen } = place ?? (await loadConfig(config, environment)).http;
  if (listen.port === 0)
    throw new AgentError("AGENT_UNREACHABLE", `${config}: http.listen takes any free port, so --url is needed`);
  return addressOf(listen);
}

/** Where an agent that listens there is asked. */
export function addressOf(listen: ListenAddress): string {
  return `http://${reachable(listen)}:${listen.port}`;
}

/** Where something that listens on every address is reached from here. */
function reachable({ host }: ListenAddress): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return host.includes(":") ? `[${host}]` : host;
}

/** Resolves with the JSON at `path`. Rejects with `AGENT_UNREACHABLE` or `signal.reason`. */
export async function askAgent(url: string, path: string, signal: AbortSignal): Promise<unknown> {
  const { ok, status, text, origin } = await callAgent(url, { path, method: "GET" }, signal);
  if (!ok)
    throw new AgentError(
      "AGENT_UNREACHABLE",
      `no agent answers at ${origin}: HTTP ${status} ${text.slice(0, 200).trim()}`,
    );
  return jsonOf(text, origin);
}

export interface AgentCall {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly token?: string | undefined;
  /** Milliseconds until nothing more is expected. */
  readonly withinMs?: number;
}
interface AgentAnswer {
  readonly ok: boolean;
  readonly status: number;
  readonly text: string;
  readonly origin: string;
}

/** Resolves with whatever is answered. Rejects with `AGENT_UNREACHABLE` or `signal.reason`. */
export async function callAgent(
  url: string,
  { method, path, token, withinMs = timeoutMs }: AgentCall,
  signal: AbortSignal,
): Promise<AgentAnswer> {
  const target = URL.parse(path, url);
  if (!target?.protocol.startsWith("http"))
    throw new AgentError("AGENT_UNREACHABLE", `${url} is no address of an agent; it begins with http://`);
  const { origin } = target;
  try {
    const answer = await fetch(target, {
      method,
      redirect: "error",
      headers: {
        ...(method === "POST" && { "content-type": "application/json" }),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      signal: AbortSignal.any([signal, AbortSignal.timeout(withinMs)]),
    });
    return { ok: answer.ok, status: answer.status, text: await answer.text(), origin };
  } catch (error) {
    signal.throwIfAborted();
    throw new AgentError("AGENT_UNREACHABLE", `no agent answers at ${origin}: ${causeOf(error, withinMs)}`, {
      cause: error,
    });
  }
}

/** Throws `AGENT_UNREACHABLE` where it is none. */
export function jsonOf(text: string, origin: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new AgentError("AGENT_UNREACHABLE", `what answers at ${origin} is no agent`, { cause: error });
  }
}

/** `fetch` says no more than "fetch failed"; why stands in its cause. */
function causeOf(error: unknown, withinMs: number): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === "TimeoutError") return `nothing came within ${span(withinMs)}`;
  const { cause } = error;
  if (cause instanceof Error && "code" in cause && cause.code === "ERR_SSL_WRONG_VERSION_NUMBER")
    return "it does not speak TLS; then its address begins with http://";
  return error.cause instanceof Error && error.cause.message !== "" ? error.cause.message : error.message;
}
