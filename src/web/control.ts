// Authorises changes and confidential requests by token, and answers them. Requests from pages of other origins are refused.
import type { IncomingMessage, ServerResponse } from "node:http";
import { isIP } from "node:net";
import type { LogLines } from "../agent/log/log.ts";
import type { ShownConfig } from "../config/format/config.ts";
import type { Runtime } from "../core/runtime.ts";
import type { Secret } from "../core/secret.ts";
import type { Discover } from "../discover/discover.ts";
import { attempt } from "../lib/flow/attempt.ts";
import { bytesOf } from "../lib/flow/bytes-of.ts";
import { sameText } from "../lib/text/without-secrets.ts";
import { answerJson, end } from "./answer.ts";
import { hasChanged, viewConfig, viewLines } from "./config-view.ts";

export interface Control {
  /** Tokens that authorise a client. */
  readonly tokens: readonly Secret[];
  /** Path of a token file, for users of this machine who can read it. */
  readonly tokenFile: string;
  /** Reloads the configuration. `ok: false`: it is invalid and nothing was changed. Never rejects. */
  readonly reload: () => Promise<{ readonly ok: boolean }>;
  /** What `reload` would change. `ok: false`: the configuration is invalid. Never rejects. Undefined: not offered. */
  readonly plan?: () => Promise<{ readonly ok: boolean }>;
  /** Sends refused points again. `ok: false`: they cannot be sent at present. Never rejects. */
  readonly retryRejects: () => Promise<{ readonly ok: boolean }>;
  /** The latest log lines as JSON, oldest first. */
  readonly log: () => readonly string[];
  /** Those after the first `after` lines of this process; of dropped ones none. Undefined: not offered. */
  readonly logSince?: (after: number) => LogLines;
  readonly security: () => object;
  /** Undefined: not offered. */
  readonly config?: () => ShownConfig;
  /** Requests of the page that finds and adds tags. Undefined: there is no such page. */
  readonly discover?: Pick<Discover, "answer">;
}

interface Command {
  readonly method: "GET" | "POST";
  /** Whether an open page repeats it, so that it is not logged. */
  readonly isRepeated?: (query: URLSearchParams) => boolean;
  /** A text is sent as lines, anything else as JSON. `ok: false` gives status 422, undefined 404. */
  readonly answer: (control: Control, query: URLSearchParams) => unknown;
}

/** Requests that take a token, by path. */
const commands: ReadonlyMap<string, Command> = new Map<string, Command>([
  ["/api/reload", { method: "POST", answer: ({ reload }) => reload() }],
  ["/api/plan", { method: "GET", answer: ({ plan }) => plan?.() }],
  ["/api/rejects/retry", { method: "POST", answer: ({ retryRejects }) => retryRejects() }],
  ["/api/security", { method: "GET", answer: ({ security }) => security() }],
  [
    "/api/log",
    {
      method: "GET",
      // The page, whose first request would add a line to what it shows.
      isRepeated: (query) => query.has("after"),
      answer: (control, query) => {
        const after = query.get("after");
        if (after === null)
          return control
            .log()
            .map((line) => `${line}\n`)
            .join("");
        return control.logSince?.(Math.max(0, Number(after) || 0));
      },
    },
  ],
  [
    "/api/config",
    {
      method: "GET",
      isRepeated: (query) => query.has("repeated"),
      async answer({ config }, query) {
        const shown = config?.();
        return shown && { ...viewConfig(shown, query), changed: await hasChanged(shown) };
      },
    },
  ],
  [
    "/api/config/lines",
    { method: "GET", answer: ({ config }, query) => (config ? viewLines(config(), query) : undefined) },
  ],
]);

export function isControl(path: string): boolean {
  return commands.has(path) || path.startsWith(discoverPrefix);
}

/** Delay of the response to a wrong token, in milliseconds. */
export const guessedMs = 1_000;

/** Answers a request for which `isControl` holds, if its token authorises it. */
export async function answerControl(
  request: IncomingMessage,
  response: ServerResponse,
  { pathname: path, searchParams }: URL,
  control: Control,
  runtime: Runtime,
): Promise<void> {
  const { method = "POST", answer, isRepeated } = commands.get(path) ?? {};
  if (request.method !== method) {
    response.setHeader("allow", method);
    return answerJson(response, 405, { ok: false, reason: `only ${method}` });
  }
  const denied = denial(request, control);
  if (denied) {
    runtime.log.warn({ part: "web", path, from: request.socket.remoteAddress, status: denied.status }, "refused");
    if (denied.guessed) await runtime.clock.sleep(guessedMs, new AbortController().signal);
    return answerJson(response, denied.status, denied.body);
  }
  if (path.startsWith(discoverPrefix)) return await answerDiscover(request, response, path, control.discover);
  if (!isRepeated?.(searchParams))
    runtime.log.info({ part: "web", path, from: request.socket.remoteAddress }, "authenticated request");
  const result = await answer?.(control, searchParams);
  if (typeof result === "string") return end(response, 200, "application/x-ndjson", result);
  if (typeof result !== "object" || result === null)
    return answerJson(response, 404, { ok: false, reason: "not offered" });
  return answerJson(response, "ok" in result && result.ok === false ? 422 : 200, result);
}

interface Denial {
  readonly status: 401 | 403 | 415;
  readonly body: { readonly ok: false; readonly reason: string; readonly tokenFile?: string };
  /** An invalid token was sent. */
  readonly guessed: boolean;
}

/** Why this request is refused; undefined: it is authorised. The Host header was checked before. */
function denial(request: IncomingMessage, { tokens, tokenFile }: Control): Denial | undefined {
  const { origin, host = "", authorization } = request.headers;
  const site = request.headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin" && site !== "none")
    return denied(403, "a page of another site may ask for nothing");
  if (origin !== undefined && URL.parse(String(origin))?.host !== host)
    return denied(403, "a page of another origin may ask for nothing");
  // Requires JSON, which a form of another site cannot send without a preflight, even if a browser omits the origin.
  const type = request.headers["content-type"]?.split(";")[0]?.trim().toLowerCase();
  if (request.method === "POST" && type !== "application/json")
    return denied(415, "the content type must be application/json");
  const sent = /^Bearer (\S{1,1024})$/.exec(authorization ?? "")?.[1];
  if (sent !== undefined && tokens.some((token) => sameText(sent, token.reveal()))) return undefined;
  const reason = sent === undefined ? "a token is needed: http.token" : "invalid token";
  const body = { ok: false as const, reason, ...(isLocal(request) && { tokenFile }) };
  return { status: 401, body, guessed: sent !== undefined };
}

/** Whether a request may read: it carries one of the tokens, as a bearer token or as the password of any user. */
export function hasReadToken({ headers: { authorization = "" } }: IncomingMessage, tokens: readonly Secret[]): boolean {
  const [, scheme = "", sent = ""] = /^(Bearer|Basic) (\S{1,2048})$/.exec(authorization) ?? [];
  const token =
    scheme === "Basic"
      ? Buffer.from(sent, "base64")
          .toString("utf8")
          .replace(/^[^:]*:/, "")
      : sent;
  return token !== "" && tokens.some((each) => sameText(token, each.reveal()));
}

function denied(status: 403 | 415, reason: string): Denial {
  return { status, body: { ok: false, reason }, guessed: false };
}

export function isLocal({ socket }: IncomingMessage): boolean {
  const address = socket.remoteAddress ?? "";
  return address === "::1" || /^(::ffff:)?127\./.test(address);
}

const loopback = ["localhost", "127.0.0.1", "::1"];
const wildcards = ["0.0.0.0", "::"];

/** Whether the Host header is ours. A listener on all addresses accepts any IP, since DNS rebinding needs a name. */
export function isAllowedHost(header: string | undefined, listenHost: string, allowed: readonly string[]): boolean {
  const host = hostOf(header ?? "");
  if (host === undefined) return false;
  if (loopback.includes(host) || host === listenHost.toLowerCase()) return true;
  if (allowed.some((name) => name.toLowerCase() === host)) return true;
  return wildcards.includes(listenHost) && isIP(host) !== 0;
}

/** `name:8421`, `[::1]:8421` → name or address in lower case. Undefined: an invalid header. */
function hostOf(header: string): string | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:/@\s[\]]+))(?::\d{1,5})?$/.exec(header);
  return (match?.[1] ?? match?.[2])?.toLowerCase();
}

const discoverPrefix = "/api/discover/";
/** Several thousand chosen nodes. */
const mostBytes = 4 * 2 ** 20;

/** Reads a bounded body. The work ends when the client closes the connection. */
async function answerDiscover(
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
  discover: Pick<Discover, "answer"> | undefined,
): Promise<void> {
  if (!discover)
    return answerJson(response, 404, {
      ok: false,
      reason: "this agent adds no tags from its page, like a demo with a duration",
    });
  const left = new AbortController();
  response.once("close", () => left.abort(new Error("the client has closed the connection")));
  const bytes = await bytesOf(request as AsyncIterable<Buffer>, mostBytes);
  if (!bytes) {
    // The rest of the body is not read.
    response.setHeader("connection", "close");
    return answerJson(response, 413, { ok: false, reason: `a request may have ${mostBytes} bytes` });
  }
  const body: unknown = attempt(() => JSON.parse(bytes.toString("utf8")));
  if (body === undefined) return answerJson(response, 400, { ok: false, reason: "the body is not JSON" });
  const { status, body: answer } = await discover.answer(path.slice(discoverPrefix.length), body, left.signal);
  if (!response.destroyed) answerJson(response, status, answer);
}
