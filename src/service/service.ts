// The local service: the specified interface over HTTP on this machine, with its data in one folder.
import { readFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createSecureContext } from "node:tls";
import { AgentError, reasonOf } from "../core/errors.ts";
import type { Runtime } from "../core/runtime.ts";
import { repeat } from "../lib/flow/repeat.ts";
import { loadPageFiles, loadPlotFiles, type PageFile } from "../lib/network/page-files.ts";
import type { Fault } from "./config/fault.ts";
import type { LocalServiceOptions } from "./config/options.ts";
import { callAdmission } from "./http/admission.ts";
import { answerTokenRequest, authentication, signingKey, TokenSigner } from "./http/credentials.ts";
import { credentialBrake } from "./http/guess-brake.ts";
import { answeredCrossOrigin, type Listener, openListener, type ServerCertificate } from "./http/listener.ts";
import { HttpRefusal, refuse, send, sendCoded } from "./http/messages.ts";
import { rpcEndpoint } from "./http/rpc-endpoint.ts";
import { metricsText, metricsType, Traffic } from "./http/traffic.ts";
import { openStoreThreads, type StoreThreads } from "./worker/store-threads.ts";

export type Service = Awaited<ReturnType<typeof openService>>;

/**
 * Rejects with `CONFIG_INVALID` for an invalid certificate, `PORT_IN_USE`, `signal.reason`, or as `ServiceStore.open`
 * throws. Disposing waits for running writes.
 */
export async function openService(options: LocalServiceOptions, runtime: Runtime, signal: AbortSignal) {
  signal.throwIfAborted();
  await using opened = new AsyncDisposableStack();
  const certificate = await readCertificate(options);
  const store = opened.use(await openStoreThreads(options.data));
  const traffic = new Traffic();
  const signer = new TokenSigner(await signingKey(options.data));
  const origin = () => listener.origin;
  const brake = credentialBrake(runtime);
  const admission = callAdmission(runtime.clock, options.throttle);
  const tokens = { options, runtime, signer, brake, admission, origin };
  const rpc = rpcEndpoint({
    options,
    runtime,
    authenticate: authentication({ integrations: options.integrations, signer, clock: runtime.clock, origin }),
    brake,
    admission,
    traffic,
    store,
  });
  const pages = [...(await loadTimelineFiles(options.namespace))];
  const routes: Routes = {
    ...Object.fromEntries(pages.map(([path, file]) => [path, { GET: page(file), HEAD: page(file) }])),
    "/v1/rpc": { POST: (request, response) => rpc.handle(request, response) },
    "/metrics": {
      GET: async (_request, response) =>
        send(response, 200, { "content-type": metricsType }, await metricsText(traffic.counters())),
    },
    "/v1/oauth/token": { POST: (request, response) => answerTokenRequest(tokens, request, response) },
  };
  const listener: Listener = opened.use(
    await openListener(options.listen, certificate, (request, response) => {
      if (!answeredCrossOrigin(options.cors ?? [], request, response)) void answer(routes, request, response, runtime);
    }),
  );
  if (options.retention !== undefined) opened.use(expiry(store, options.retention, runtime));
  void store.failed.then((err) => runtime.log.error({ part: "service", err }, "the store has ended"));
  signal.throwIfAborted();
  runtime.log.info({ part: "service", url: `${listener.origin}/v1`, data: options.data }, "service is open");
  const owned = opened.move();
  return {
    /** Base address ending in `/v1`; requests go to `{url}/rpc`. */
    url: `${listener.origin}/v1`,
    pageUrl: `${listener.origin}/`,
    /** Stops listening and cuts all connections. Running calls continue without a response. */
    pause: () => listener.close(),
    /** Listens again on the same port. */
    resume: () => listener.open(),
    /** Resolves when the store has failed. The caller should then dispose of the service and start it again. */
    failed: store.failed,
    /** Replaces the faults from the next call on. */
    setFaults: (faults: readonly Fault[]) => rpc.setFaults(faults),
    /** Traffic so far by canonical method name; `other`: requests without a known method. */
    counters: () => traffic.counters(),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Undefined: the service listens without TLS. */
async function readCertificate({ tlsCert, tlsKey }: LocalServiceOptions): Promise<ServerCertificate | undefined> {
  if (tlsCert === undefined && tlsKey === undefined) return undefined;
  if (tlsCert === undefined || tlsKey === undefined)
    throw new AgentError("CONFIG_INVALID", "tlsCert and tlsKey must be given together");
  try {
    const [cert, key] = await Promise.all([readFile(tlsCert, "utf8"), readFile(tlsKey, "utf8")]);
    createSecureContext({ cert, key });
    return { cert, key };
  } catch (cause) {
    const files = `--tls-cert ${tlsCert} and --tls-key ${tlsKey}`;
    throw new AgentError("CONFIG_INVALID", `${files} are not a certificate and its key: ${reasonOf(cause)}`, { cause });
  }
}

const expireEveryMs = 600_000;

/** Deletes points older than the retention, now and every ten minutes, until disposed. */
function expiry(store: StoreThreads, retentionMs: number, runtime: Runtime): AsyncDisposable {
  const { clock, log } = runtime;
  const expire = async () => {
    const { failure } = await store.expire(clock.now() - retentionMs * 1_000);
    if (failure !== undefined) log.error({ part: "service", failure }, "old points could not be deleted");
  };
  return repeat(
    expire,
    { everyMs: expireEveryMs, first: "now", failure: "no old points are deleted any more" },
    runtime,
  );
}

const timelineFiles = [
  "timeline.css",
  ..."timeline chart csv lanes legend rpc series signal-list texts".split(" ").map((name) => `${name}.js`),
];
async function loadTimelineFiles(namespace: string): Promise<ReadonlyMap<string, PageFile>> {
  const at = (files: readonly string[]) => Object.fromEntries(files.map((file) => [`/timeline/${file}`, file]));
  const pages = [
    ...(await loadPageFiles(new URL("./timeline/", import.meta.url), { "/": "index.html", ...at(timelineFiles) })),
    ...(await loadPlotFiles("/timeline/", import.meta.url)),
  ];
  const settings = { type: "application/json", body: Buffer.from(JSON.stringify({ namespace })) };
  return new Map([...pages, ["/timeline/settings.json", settings]]);
}

/** By path and method. */
type Routes = Readonly<Record<string, Readonly<Record<string, Route>>>>;
type Route = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** Allows only our own scripts, styles and connections. */
const pagePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

function page({ type, body }: PageFile): Route {
  return async (request, response) => {
    const headers = {
      "content-type": type,
      "content-security-policy": pagePolicy,
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
    };
    await sendCoded(request, response, headers, body);
  };
}

async function answer(
  routes: Routes,
  request: IncomingMessage,
  response: ServerResponse,
  { log }: Runtime,
): Promise<void> {
  try {
    await route(routes, request)(request, response);
  } catch (error) {
    if (error instanceof HttpRefusal) refuse(request, response, error);
    else if (!response.destroyed && !request.destroyed) {
      log.error({ part: "service", err: error }, "a request could not be answered");
      send(response, 500, { "content-type": "text/plain" }, "internal error");
    }
  }
}

function route(routes: Routes, request: IncomingMessage): Route {
  // The address may be absolute (RFC 9112, 3.2.2).
  const path = URL.parse(request.url ?? "", "http://localhost")?.pathname ?? "";
  const verbs = Object.hasOwn(routes, path) ? routes[path] : undefined;
  if (!verbs) throw new HttpRefusal(404, "not_found", `there is nothing at ${path}; requests go to /v1/rpc`);
  const verb = request.method ?? "";
  const handler = Object.hasOwn(verbs, verb) ? verbs[verb] : undefined;
  if (handler) return handler;
  const allowed = Object.keys(verbs).join(", ");
  throw new HttpRefusal(405, "method_not_allowed", `${path} takes ${allowed}`, { allow: allowed });
}
