// Who may ask the agent for a change, or for what is not for everybody's eyes. A page in a browser never may: what it
// sends without being asked carries no token, and what it could be made to send is refused by where it comes from.
import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import type { Secret } from "../core/secret.ts";
import { sameText } from "../lib/same-text.ts";

export interface Control {
  /** A client that sends one of them may. */
  readonly tokens: readonly Secret[];
  /** Path of a file with a token, for users of this machine who may read it. */
  readonly tokenFile: string;
  /** Reloads the configuration. `ok: false`: it is invalid and nothing was changed. Never rejects. */
  readonly reload: () => Promise<{ readonly ok: boolean }>;
  /** The latest lines of the log, oldest first, each one JSON. */
  readonly log: () => readonly string[];
  /** How the process is hardened. */
  readonly security: () => object;
}

export interface Denial {
  readonly status: 401 | 403 | 415;
  readonly body: { readonly ok: false; readonly reason: string; readonly tokenFile?: string };
  /** A token was sent, and it is wrong. */
  readonly guessed: boolean;
}

/** Why this request is refused; undefined: it may. The Host header has been looked at already. */
export function denial(request: IncomingMessage, { tokens, tokenFile }: Control): Denial | undefined {
  const { origin, host = "", authorization } = request.headers;
  const site = request.headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin" && site !== "none")
    return denied(403, "a page of another site may ask for nothing");
  if (origin !== undefined && URL.parse(String(origin))?.host !== host)
    return denied(403, "a page of another origin may ask for nothing");
  // What a form of another site can send without being asked first is refused, should a browser leave its origin out.
  const type = request.headers["content-type"]?.split(";")[0]?.trim().toLowerCase();
  if (request.method === "POST" && type !== "application/json")
    return denied(415, "the content type must be application/json");
  const sent = /^Bearer (\S{1,1024})$/.exec(authorization ?? "")?.[1];
  if (sent !== undefined && tokens.some((token) => sameText(sent, token.reveal()))) return undefined;
  const reason = sent === undefined ? "a token is needed: http.token" : "invalid token";
  const body = { ok: false as const, reason, ...(isLocal(request) && { tokenFile }) };
  return { status: 401, body, guessed: sent !== undefined };
}

function denied(status: 403 | 415, reason: string): Denial {
  return { status, body: { ok: false, reason }, guessed: false };
}

/** Whether it comes from this machine. */
export function isLocal({ socket }: IncomingMessage): boolean {
  const address = socket.remoteAddress ?? "";
  return address === "::1" || /^(::ffff:)?127\./.test(address);
}

const loopback = ["localhost", "127.0.0.1", "::1"];
const wildcards = ["0.0.0.0", "::"];

/**
 * Whether a request with this Host header is meant for us: loopback, the address we listen on, or one of `allowed`
 * (names without port). Listening on every address, any IP address will do: rebinding needs a name.
 */
export function isAllowedHost(header: string | undefined, listenHost: string, allowed: readonly string[]): boolean {
  const host = hostOf(header ?? "");
  if (host === undefined) return false;
  if (loopback.includes(host) || host === listenHost.toLowerCase()) return true;
  if (allowed.some((name) => name.toLowerCase() === host)) return true;
  return wildcards.includes(listenHost) && isIP(host) !== 0;
}

/** `name:8421`, `[::1]:8421` → name or address in lower case. Undefined: no Host header at all. */
function hostOf(header: string): string | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:/@\s[\]]+))(?::\d{1,5})?$/.exec(header);
  return (match?.[1] ?? match?.[2])?.toLowerCase();
}
