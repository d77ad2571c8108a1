// The agent's HTTP server: status page, status as JSON, metrics and health. Without a token it is read-only.

import { readFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { setImmediate } from "node:timers/promises";
import type { Status, StatusPart, StatusSample } from "../agent/status/status.ts";
import type { Config } from "../config/format/config.ts";
import { AgentError, reasonOf } from "../core/errors.ts";
import { checkGridMs, type Runtime } from "../core/runtime.ts";
import { fileProblem } from "../lib/files/paths.ts";
import { repeat } from "../lib/flow/repeat.ts";
import { http } from "../lib/network/http.ts";
import { hostInUrl, listen } from "../lib/network/listen.ts";
import { answerJson, end, start } from "./answer.ts";
import { answerControl, type Control, guessedMs, hasReadToken, isAllowedHost, isControl, isLocal } from "./control.ts";
import { configFileFor, type DetailOptions, openDetails, RecentValues } from "./details.ts";
import { figureHistory, History, historyStepMs, sampleOf } from "./history.ts";
import { loadPages } from "./pages.ts";
import { intervalOf, isPlain, parseTagQuery, streamViews, type TagQuery, viewOf, viewOfPart } from "./tag-view.ts";

export interface Health {
  readonly ok: boolean;
  readonly reason?: string;
}

type HttpOptions = Config["http"];

/** `readToken` is required for all but health and readiness. Tokens of `control` are taken as well. */
export interface WebOptions
  extends DetailOptions,
    Pick<HttpOptions, "listen" | "readToken" | "tls">,
    Partial<Pick<HttpOptions, "allowedHosts">> {
  /** Called at most four times a second, regardless of open pages. */
  readonly snapshot: () => Status;
  /** See `Agent.statusOf`; for pages without a search. Undefined: the snapshot is used. */
  readonly part?: (first: number, count: number) => StatusPart;
  /** See `Agent.sample`; for the history. Undefined: the snapshot is used. */
  readonly sample?: () => StatusSample;
  /** The response of `/metrics` in the Prometheus format. */
  readonly metrics: () => Promise<string>;
  /** Liveness: the agent itself makes progress. An unreachable service does not matter. */
  readonly health: () => Health;
  /** Readiness: configuration loaded, buffer open, sources started. A failing source or service does not matter. */
  readonly ready: () => Health;
  /** Handlers that require a token. Undefined: none. */
  readonly control?: Control;
}

export interface Web extends AsyncDisposable {
  /** Address with the actual port. */
  readonly url: string;
}

const maxConnections = 128;
const maxStreams = 32;
const snapshotAgeMs = 250;

/** Rejects with `PORT_IN_USE` (in use, foreign address or no permission). Disposing closes every connection. */
export async function openWeb(options: WebOptions, runtime: Runtime, signal: AbortSignal): Promise<Web> {
  const page = await loadPages();
  signal.throwIfAborted();
  const closing = new AbortController();
  const history = new History();
  const { control } = options;
  const snapshots = new RecentValues<Status>(snapshotAgeMs, runtime.clock);
  const snapshot = () => snapshots.read("", options.snapshot);
  // After a reload, the client must not see a cached status.
  const reloading = control && { ...control, reload: () => control.reload().finally(() => snapshots.clear()) };
  const details = openDetails(options, history, runtime);
  const view = (query: TagQuery, configFile: string | undefined) =>
    options.part && isPlain(query)
      ? viewOfPart(options.part(query.first, query.count), configFile)
      : viewOf(snapshot(), query, configFile);
  const readers = options.readToken && [options.readToken, ...(control?.tokens ?? [])];
  let streams = 0;

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (!isAllowedHost(request.headers.host, options.listen.host, options.allowedHosts ?? []))
      return end(response, 403, "text/plain; charset=utf-8", "this name is not allowed; see http.allowedHosts\n");
    const url = URL.parse(request.url ?? "/", "http://localhost");
    if (readers && url && !withoutToken.includes(url.pathname) && !hasReadToken(request, readers))
      return await askForToken(request, response, runtime);
    if (reloading && url && isControl(url.pathname))
      return await answerControl(request, response, url, reloading, runtime);
    if (request.method !== "GET" && request.method !== "HEAD") {
      response.setHeader("allow", "GET, HEAD");
      return end(response, 405, "text/plain; charset=utf-8", "only GET and HEAD\n");
    }
    if (!url) return end(response, 404, "text/plain; charset=utf-8", "not found\n");
    switch (url.pathname) {
      case "/api/status":
        return answerJson(response, 200, snapshot());
      case "/api/view":
        return answerJson(
          response,
          200,
          view(parseTagQuery(url.searchParams), configFileFor(options, isLocal(request))),
        );
      case "/api/history":
        return answerJson(response, 200, figureHistory(history));
      case "/api/events":
        if (streams >= maxStreams) return answerJson(response, 503, { ok: false, reason: "too many open pages" });
        start(response, 200, "text/event-stream; charset=utf-8");
        if (request.method === "HEAD") return void response.end();
        streams++;
        try {
          const query = parseTagQuery(url.searchParams);
          const configFile = configFileFor(options, isLocal(request));
          return await streamViews(
            response,
            () => view(query, configFile),
            (seen) => intervalOf(query, seen),
            runtime.clock,
            closing.signal,
          );
        } finally {
          streams--;
        }
      case "/metrics":
        return end(response, 200, "text/plain; version=0.0.4; charset=utf-8", await options.metrics());
      case "/healthz":
        return healthy(response, options.health());
      case "/readyz":
        return healthy(response, options.ready());
      default: {
        const detail = Object.hasOwn(details, url.pathname) ? details[url.pathname] : undefined;
        if (detail) return answerJson(response, 200, await detail(url.searchParams, isLocal(request)));
        const file = page.get(url.pathname);
        if (!file) return end(response, 404, "text/plain; charset=utf-8", "not found\n");
        return end(response, 200, file.type, file.body);
      }
    }
  };

  const limits = {
    headersTimeout: 10_000,
    requestTimeout: 30_000,
    // Node's check interval; the default is 30 s.
    connectionsCheckingInterval: 2_000,
    keepAliveTimeout: 15_000,
    maxHeaderSize: 16_384,
  };
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    answer(request, response).catch((error: unknown) => {
      runtime.log.warn({ part: "web", err: error }, "request failed");
      if (response.headersSent) response.destroy();
      else end(response, 500, "text/plain; charset=utf-8", "internal error; see the log\n");
    });
  };
  const server = options.tls
    ? https().createServer({ ...limits, ...(await identity(options.tls)) }, handle)
    : http.createServer(limits, handle);
  server.maxConnections = maxConnections;
  const url = `${options.tls ? "https" : "http"}://${hostInUrl(options.listen.host)}:${await listen(server, options.listen, "http.listen")}`;

  const sample = async () => {
    // Lets the caller continue starting the agent before the first sample.
    await setImmediate();
    history.sample(options.sample?.() ?? sampleOf(snapshot()));
    snapshots.expire();
  };
  const work = { everyMs: historyStepMs, gridMs: checkGridMs, first: "now", failure: "history stopped" } as const;
  const sampling = repeat(sample, work, { ...runtime, log: runtime.log.child({ part: "web" }) });

  return {
    url,
    async [Symbol.asyncDispose]() {
      closing.abort();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await Promise.all([closed, sampling[Symbol.asyncDispose]()]);
    },
  };
}

/** Loaded only with `tls`. */
const https = () => process.getBuiltinModule("node:https");

/** The contents of both files. Rejects with `CONFIG_INVALID` if one cannot be read or they do not belong together. */
async function identity({ certFile, keyFile }: NonNullable<WebOptions["tls"]>) {
  const read = async (file: string) =>
    await readFile(file).catch((cause: unknown) => {
      throw new AgentError("CONFIG_INVALID", `http.tls: ${file} cannot be read: ${fileProblem(cause)}`, {
        cause,
        hint: "correct http.tls, or let the user of the agent read the file",
      });
    });
  const [cert, key] = await Promise.all([read(certFile), read(keyFile)]);
  try {
    const { createSecureContext } = process.getBuiltinModule("node:tls");
    createSecureContext({ cert, key });
  } catch (cause) {
    const message = `http.tls: ${certFile} and ${keyFile} are no certificate and its key in PEM: ${reasonOf(cause)}`;
    throw new AgentError("CONFIG_INVALID", message, { cause });
  }
  return { cert, key, minVersion: "TLSv1.2", handshakeTimeout: 10_000 } as const;
}

/** For load balancers and service managers; they tell nothing but the state. */
const withoutToken = ["/healthz", "/readyz"];

async function askForToken(request: IncomingMessage, response: ServerResponse, runtime: Runtime): Promise<void> {
  if (request.headers.authorization !== undefined) {
    runtime.log.warn({ part: "web", from: request.socket.remoteAddress }, "refused: invalid token");
    await runtime.clock.sleep(guessedMs, new AbortController().signal);
  }
  // The password of a browser.
  response.setHeader("www-authenticate", 'Basic realm="tagferry", charset="UTF-8"');
  const problem = request.headers.authorization === undefined ? "a token is needed" : "invalid token";
  const reason = `${problem}: http.readToken, as a bearer token or as the password of any user`;
  answerJson(response, 401, { ok: false, reason });
}

function healthy(response: ServerResponse, health: Health): void {
  answerJson(response, health.ok ? 200 : 503, health);
}
