// Values of the `Authorization` header: the password, or an OAuth token for the client credentials of a file. A token is
// cached across restarts and renewed shortly before it expires, since fetching is limited.
import { readFile, stat } from "node:fs/promises";
import { z } from "zod";
import { AgentError, isAgentError } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import { Secret } from "../../core/secret.ts";
import { writeAtomically } from "../../lib/files/atomic-file.ts";
import { fileProblem } from "../../lib/files/paths.ts";
import { readStateFile } from "../../lib/files/state-file.ts";
import { orAbort } from "../../lib/flow/abort.ts";
import { BackOff } from "../../lib/flow/repeat.ts";
import type { NetworkBytes } from "./connections.ts";
import { type HttpPost, type HttpPostOptions, openHttpPost } from "./http-post.ts";
import type { ServiceOptions } from "./options.ts";

export interface Credentials extends AsyncDisposable {
  /**
   * Resolves with the value of the header. Rejects with `SERVICE_REFUSED` if credentials are missing or refused, with
   * `SERVICE_UNREACHABLE` if their issuer does not answer, or with `signal.reason`.
   */
  authorization(signal: AbortSignal): Promise<string>;
  /** Reports a refused value. Returns whether the next one will be another, possibly with new rights. */
  renew(authorization: string, lacking: "validity" | "rights"): boolean;
}

export function basicAuthorization(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`, "utf8").toString("base64")}`;
}

/** Replacing shorter secrets would destroy much of the text. */
const shortest = 4;

/** Removes credentials that the other side may echo: the header value without its scheme, and the password. */
export function withoutCredentials(text: string, authorization: string): string {
  const [scheme, credential = ""] = authorization.split(" ");
  const decoded = scheme === "Basic" ? Buffer.from(credential, "base64").toString("utf8") : "";
  const password = decoded.slice(decoded.indexOf(":") + 1);
  const known = [credential, password, JSON.stringify(password).slice(1, -1), encodeURIComponent(password)];
  return known.filter(({ length }) => length >= shortest).reduce((shown, one) => shown.replaceAll(one, "***"), text);
}

/** `tokenPath`: file that keeps the token across restarts. */
export async function openCredentials(
  options: ServiceOptions,
  tokenPath: string,
  runtime: Runtime,
  traffic?: NetworkBytes,
): Promise<Credentials> {
  const { auth, integration, proxy, caFile } = options;
  const parts = { integration, proxy, caFile, tokenPath, traffic };
  if (auth.clientCredentials) return clientCredentials({ ...auth.clientCredentials, ...parts }, runtime);
  const { username = integration, password } = auth.basic ?? {};
  let isRefused = false;
  return {
    async authorization() {
      // A file with the password may have been replaced since.
      if (isRefused) await password?.renew();
      isRefused = false;
      return basicAuthorization(username, password?.reveal() ?? "");
    },
    renew() {
      isRefused = true;
      return false;
    },
    async [Symbol.asyncDispose]() {},
  };
}

export interface ClientCredentialsOptions extends Pick<HttpPostOptions, "proxy" | "caFile" | "traffic"> {
  readonly file: string;
  readonly tokenUrl?: string | undefined;
  readonly integration: string;
  readonly tokenPath: string;
}

const tokenAnswer = z.object({
  access_token: z.string().min(1),
  expires_in: z.number().positive(),
  token_type: z
    .string()
    .regex(/^bearer$/i)
    .default("Bearer"),
});
const keptToken = z.object({
  /** Client and issuer of the token. A token of another owner is not used. */
  owner: z.string(),
  token: z.string(),
  /** Wall time in milliseconds. */
  issuedAt: z.number(),
  lifetimeMs: z.number(),
});
type Token = z.output<typeof keptToken>;

const mostAnswerBytes = 64 * 1024;
/** Wait for a new token while the old one is valid. The issuer may need longer, or not answer for half a minute. */
const renewalPatienceMs = 1_000;
/** Least age of a token before it is renewed for new rights, since fetching is limited. Doubles with each renewal. */
const rightsAgeMs = { least: 600_000, most: 7_200_000 } as const;

/** Loads the token of the last run; a damaged one is ignored. The credentials file is read on first use. */
export async function clientCredentials(options: ClientCredentialsOptions, runtime: Runtime): Promise<Credentials> {
  const readContent = credentialsFile(options.file);
  const backOff = new BackOff({ minMs: 5_000, maxMs: 60_000, random: runtime.random });
  let kept = await readStateFile(options.tokenPath, keptToken);
  let leastAgeMs: number = rightsAgeMs.least;
  let fetching: Promise<Token> | undefined;
  let http: { readonly url: string; readonly post: HttpPost } | undefined;
  /** No request before `until` (monotonic milliseconds); callers get `error` meanwhile. */
  let pause: { readonly until: number; readonly error: unknown } | undefined;

  function leftMs({ issuedAt, lifetimeMs }: Token): number {
    const age = runtime.clock.now() / 1_000 - issuedAt;
    // After the clock was set back, the computed age would keep the token beyond its lifetime.
    return age < 0 ? 0 : lifetimeMs - age;
  }

  async function fetchToken(content: CredentialsContent, owner: string): Promise<Token> {
    const { clock, log } = runtime;
    if (pause && clock.monotonic() < pause.until) throw pause.error;
    try {
      const token = { ...(await tokenOf(content)), owner };
      kept = token;
      backOff.reset();
      // No further request for a while, even if the service refuses this token; but one of seconds has to be renewed.
      const error = new AgentError("SERVICE_REFUSED", "the service refuses a token that was issued just now");
      pause = { until: clock.monotonic() + Math.min(5_000, token.lifetimeMs - renewAheadMs(token)), error };
      await writeAtomically(options.tokenPath, JSON.stringify(token)).catch((cause: unknown) =>
        log.warn({ err: cause }, "the token cannot be kept for the next start"),
      );
      return token;
    } catch (error) {
      pause = { until: clock.monotonic() + backOff.next(), error };
      throw error;
    }
  }

  async function tokenOf({ apiUrl, credentials }: CredentialsContent): Promise<Omit<Token, "owner">> {
    const base = apiUrl.replace(/\/+$/, "");
    const url = options.tokenUrl ?? `${base}/oauth/token`;
    const form = new URLSearchParams({
      grant_type: "client_credentials",
      client_id: credentials.clientId,
      client_secret: credentials.clientSecret.reveal(),
      audience: `${base}/`,
    });
    const issuedAt = runtime.clock.now() / 1_000;
    const post = await postTo(url);
    const headers = { "content-type": "application/x-www-form-urlencoded", accept: "application/json" };
    const body = Buffer.from(form.toString(), "utf8");
    const answer = await post.post(body, headers, mostAnswerBytes, new AbortController().signal);
    if (!answer.ok) {
      const refused = answer.status >= 300 && answer.status < 500 && answer.status !== 408 && answer.status !== 429;
      throw new AgentError(
        refused ? "SERVICE_REFUSED" : "SERVICE_UNREACHABLE",
        `${url} gives no token: HTTP ${answer.status}`,
      );
    }
    try {
      const { access_token, expires_in } = tokenAnswer.parse(JSON.parse(answer.text));
      return { token: access_token, issuedAt, lifetimeMs: expires_in * 1_000 };
    } catch (cause) {
      if (isAgentError(cause)) throw cause;
      // The cause could contain the token.
      throw new AgentError("SERVICE_UNREACHABLE", `${url} answers, but not with a token`);
    }
  }

  async function postTo(url: string): Promise<HttpPost> {
    if (http?.url === url) return http.post;
    const { proxy, caFile, traffic } = options;
    const post = await openHttpPost({ url, proxy, caFile, connections: 1, traffic }, runtime.clock);
    await http?.post[Symbol.asyncDispose]();
    http = { url, post };
    return post;
  }

  return {
    async authorization(signal: AbortSignal): Promise<string> {
      const content = await readContent();
      const { credentials, integration, apiUrl } = content;
      if (integration !== options.integration)
        throw new AgentError(
          "SERVICE_REFUSED",
          `credentials file ${options.file} is for integration ${integration}, service.integration is ${options.integration}`,
        );
      if (credentials.type === "basic-auth")
        return basicAuthorization(credentials.clientId, credentials.clientSecret.reveal());
      const owner = `${credentials.clientId} ${apiUrl}`;
      if (kept?.owner !== owner) kept = undefined;
      const left = kept ? leftMs(kept) : 0;
      if (kept && left > renewAheadMs(kept)) return `Bearer ${kept.token}`;
      const over = new AbortController();
      try {
        // All waiting callers share one request. It continues if one of them aborts.
        fetching ??= fetchToken(content, owner).finally(() => (fetching = undefined));
        const tokens = [orAbort(fetching, signal)];
        if (kept && left > 0) {
          const valid = kept;
          tokens.push(runtime.clock.sleep(renewalPatienceMs, over.signal).then(() => valid));
        }
        const { token } = await Promise.race(tokens);
        return `Bearer ${token}`;
      } catch (error) {
        if (signal.aborted || !kept || left <= 0) throw error;
        return `Bearer ${kept.token}`;
      } finally {
        over.abort(new Error("there is a token"));
      }
    },
    renew(authorization: string, lacking: "validity" | "rights"): boolean {
      if (kept && authorization === `Bearer ${kept.token}`) {
        const ageMs = kept.lifetimeMs - leftMs(kept);
        if (lacking === "rights") {
          if (ageMs < leastAgeMs) return false;
          leastAgeMs = Math.min(rightsAgeMs.most, leastAgeMs * 2);
        }
        kept = undefined;
      }
      // True if another call has renewed the token, or the next one will. False right after a new token was refused.
      return kept !== undefined || pause === undefined || runtime.clock.monotonic() >= pause.until;
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await http?.post[Symbol.asyncDispose]();
      await fetching?.catch(() => {});
    },
  };
}

/** A tenth of the lifetime, at most 5 minutes. */
function renewAheadMs({ lifetimeMs }: Token): number {
  return Math.min(300_000, lifetimeMs / 10);
}

const fileContent = z.object({
  apiUrl: z.url(),
  integration: z.string(),
  credentials: z.object({
    /** `basic-auth`: the client ID is the user name, the client secret the password. */
    type: z.enum(["client-credentials", "basic-auth"]),
    clientId: z.string().min(1),
    clientSecret: z
      .string()
      .min(1)
      .transform((text) => new Secret(text)),
  }),
});
type CredentialsContent = z.output<typeof fileContent>;

/**
 * Returns a function that resolves with the current content of the credentials file. It returns the same object while
 * the file is unchanged, and rejects with `SERVICE_REFUSED`.
 */
function credentialsFile(path: string): () => Promise<CredentialsContent> {
  let version = "";
  let content: CredentialsContent | undefined;
  return async () => {
    try {
      const { mtimeMs, size, ino } = await stat(path);
      const found = `${mtimeMs} ${size} ${ino}`;
      if (content && found === version) return content;
      content = parse(await readFile(path, "utf8"));
      version = found;
      return content;
    } catch (error) {
      throw new AgentError("SERVICE_REFUSED", `credentials file ${path}: ${fileProblem(error)}`, { cause: error });
    }
  };
}

/** Errors never contain content of the file. */
function parse(text: string): CredentialsContent {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new Error("is not JSON");
  }
  const parsed = fileContent.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new Error(`${issue?.path.join(".") ?? "it"} is missing or not as the service writes it`);
}
