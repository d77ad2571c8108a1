// The agent's HTTP server: status page, status as JSON, metrics and health. Without a token it is read-only.
import type { IncomingMessage, ServerResponse } from "node:http";
import { setImmediate } from "node:timers/promises";
import type { Status, StatusPart, StatusSample } from "../agent/status/status.ts";
import { checkGridMs, type Runtime } from "../core/runtime.ts";
import type { ListenAddress } from "../lib/fields.ts";
import { http } from "../lib/http.ts";
import { hostInUrl, listen } from "../lib/listen.ts";
import { repeat } from "../lib/repeat.ts";
import { answerJson, end, loadPage, start } from "./answer.ts";
import { type Control, denial, isAllowedHost, isLocal } from "./control.ts";
import { cachedFor, type DetailOptions, openDetails } from "./details.ts";
import { parseTagQuery, streamViews, type TagQuery, viewOf, viewOfPart } from "./events.ts";
import { History, historyStepMs, sampleOf } from "./history.ts";

export interface Health {
  readonly ok: boolean;
  /** Why not. */
  readonly reason?: string;
}

export interface WebOptions extends DetailOptions {
  readonly listen: ListenAddress;
  /** Names under which the page may be opened beside loopback and the listen address; without port. */
  readonly allowedHosts?: readonly string[];
  /** Called at most four times a second, however many pages are open. */
  readonly snapshot: () => Status;
  /** As `Agent.statusOf`, for pages that search nothing. Undefined: the snapshot has to do. */
  readonly part?: (first: number, count: number) => StatusPart;
  /** As `Agent.sample`, for the history. Undefined: the snapshot has to do. */
  readonly sample?: () => StatusSample;
  /** The text of `/metrics` in Prometheus' format. */
  readonly metrics: () => Promise<string>;
  /** Alive and making progress on its own side; an unreachable service is not ill health. */
  readonly health: () => Health;
  /** Configuration loaded, buffer open, sources started; a faulty source or an unreachable service does not make it unready. */
  readonly ready: () => Health;
  /** Handlers that require a token. Undefined: there are none. */
  readonly control?: Control;
}

export interface Web extends AsyncDisposable {
  /** Where it listens, with the port it really has. */
  readonly url: string;
}

const maxConnections = 128;
const maxStreams = 32;
const snapshotAgeMs = 250;

/**
 * Resolves when it listens. Rejects with `PORT_IN_USE` where it cannot (port taken, address not of this machine, no
 * right to the port). Disposing ends every connection.
 */
export async function openWeb(options: WebOptions, runtime: Runtime, signal: AbortSignal): Promise<Web> {
  const page = await loadPage();
  signal.throwIfAborted();
  const closing = new AbortController();
  const history = new History();
  const { control } = options;
  const { read: snapshot, forget, expire } = cachedFor(snapshotAgeMs, options.snapshot, runtime.clock);
  // Who has reloaded sees what came of it, not what there was a moment before.
  const reloading = control && { ...control, reload: () => control.reload().finally(forget) };
  const details = openDetails(options, runtime);
  const view = (query: TagQuery, past: History | undefined) =>
    options.part && query.search.trim() === ""
      ? viewOfPart(options.part(query.first, query.count), past)
      : viewOf(snapshot(), query, past);
  let streams = 0;

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (!isAllowedHost(request.headers.host, options.listen.host, options.allowedHosts ?? []))
      return end(response, 403, "text/plain; charset=utf-8", "this name is not allowed; see http.allowedHosts\n");
    const url = URL.parse(request.url ?? "/", "http://localhost");
    if (reloading && url && controlled.includes(url.pathname))
      return await command(request, response, url.pathname, reloading, runtime);
    if (request.method !== "GET" && request.method !== "HEAD") {
      response.setHeader("allow", "GET, HEAD");
      return end(response, 405, "text/plain; charset=utf-8", "only GET and HEAD\n");
    }
    if (!url) return end(response, 404, "text/plain; charset=utf-8", "not found\n");
    switch (url.pathname) {
      case "/api/status":
        return answerJson(response, 200, snapshot());
      case "/api/view":
        return answerJson(response, 200, view(parseTagQuery(url.searchParams), history));
      case "/api/events":
        if (streams >= maxStreams) return answerJson(response, 503, { ok: false, reason: "too many open pages" });
        start(response, 200, "text/event-stream; charset=utf-8");
        if (request.method === "HEAD") return void response.end();
        streams++;
        try {
          const query = parseTagQuery(url.searchParams);
          return await streamViews(
            response,
            (first) => view(query, first ? history : undefined),
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

  const server = http.createServer(
    {
      headersTimeout: 10_000,
      requestTimeout: 30_000,
      // How often Node looks; by default only every 30 s.
      connectionsCheckingInterval: 2_000,
      keepAliveTimeout: 15_000,
      maxHeaderSize: 16_384,
    },
    (request, response) => {
      answer(request, response).catch((error: unknown) => {
        runtime.log.warn({ part: "web", err: error }, "request failed");
        if (response.headersSent) response.destroy();
        else end(response, 500, "text/plain; charset=utf-8", "internal error; see the log\n");
      });
    },
  );
  server.maxConnections = maxConnections;
  const url = `http://${hostInUrl(options.listen.host)}:${await listen(server, options.listen, "http.listen")}`;

  const sample = async () => {
    // Whoever opened this has gone on by then: with what it starts next, not with what there was before.
    await setImmediate();
    history.sample(options.sample?.() ?? sampleOf(snapshot()));
    expire();
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

const controlled = ["/api/reload", "/api/log", "/api/security"];
/** Delay of an answer to a wrong token. */
const guessedMs = 1_000;

/** Answers what needs a token. */
async function command(
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
  control: Control,
  runtime: Runtime,
): Promise<void> {
  const method = path === "/api/reload" ? "POST" : "GET";
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
  runtime.log.info({ part: "web", path, from: request.socket.remoteAddress }, "asked for with a token");
  if (path === "/api/log")
    return end(
      response,
      200,
      "application/x-ndjson",
      control
        .log()
        .map((line) => `${line}\n`)
        .join(""),
    );
  if (path === "/api/security") return answerJson(response, 200, control.security());
  const result = await control.reload();
  return answerJson(response, result.ok ? 200 : 422, result);
}

function healthy(response: ServerResponse, health: Health): void {
  answerJson(response, health.ok ? 200 : 503, health);
}
