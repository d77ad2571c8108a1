// POST /v1/rpc: from the headers of a request to its answer.
import { randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Runtime } from "../../core/runtime.ts";
import type { ApiVersion } from "../../wire/api-version.ts";
import { apiVersions, isApiVersion, newestStable, versionHeader } from "../../wire/api-version.ts";
import { largestRequestBytes, queueTimeouts, requestLimits } from "../../wire/limits.ts";
import { methodOf } from "../method/dispatch.ts";
import type { ServiceOptions } from "../options.ts";
import type { Answer, StoreThread } from "../store-thread.ts";
import type { Admission } from "./admission.ts";
import type { Authenticate } from "./authenticate.ts";
import { scanEnvelope } from "./envelope.ts";
import { HttpRefusal, send } from "./http-answer.ts";
import { continueIfAsked } from "./listener.ts";
import { checkDeclaredBody, readBody, tooLarge } from "./request-body.ts";
import type { Traffic } from "./traffic.ts";

export interface RpcEndpointParts {
  readonly options: ServiceOptions;
  readonly runtime: Runtime;
  readonly authenticate: Authenticate;
  readonly admission: Admission;
  readonly traffic: Traffic;
  readonly store: StoreThread;
}

export class RpcEndpoint {
  readonly #parts: RpcEndpointParts;

  constructor(parts: RpcEndpointParts) {
    this.#parts = parts;
  }

  /** Answers, or rejects with `HttpRefusal`. Rejects with another error when the client went away. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { runtime, authenticate, admission, traffic, store, options } = this.#parts;
    const { clock } = runtime;
    const start = clock.monotonic();
    const version = versionOf(request);
    const caller = authenticate(request);
    if (!caller) throw unauthorized(request);
    checkContentType(request);
    const largest = Math.max(largestRequestBytes(version), options.maxInsert ?? 0);
    checkDeclaredBody(request, largest);
    continueIfAsked(request, response);
    const limitOf = (bytes: Buffer) => this.#limitOf(scanEnvelope(bytes).method, version);
    const body = await readBody(request, largest, limitOf);
    const envelope = scanEnvelope(body);
    const method = methodOf(envelope.method, options.namespace);
    traffic.record(method ?? "other", start, body.length);
    const limit = this.#limitOf(envelope.method, version);
    if (body.length > limit) throw tooLarge(limit);
    const gone = new AbortController();
    response.once("close", () => gone.abort(new Error("the client went away")));
    if (method) await admission.admit(caller.integration, method, version, gone.signal);
    const trace = randomBytes(10).toString("hex");
    const { namespace } = options;
    const id = envelope.id === "null" ? undefined : envelope.id;
    const answer = store.call({ body, id, caller, version, namespace, now: clock.now(), trace });
    const left = start + queueTimeouts.totalMs - clock.monotonic();
    const { body: answered, failure } = await within(answer, left, runtime, gone.signal);
    if (failure !== undefined) runtime.log.error({ part: "service", trace, failure }, "a request failed");
    const headers = { [versionHeader]: version, "x-trace": trace };
    if (answered === undefined) send(response, 204, headers, undefined);
    else send(response, 200, { ...headers, "content-type": "application/json" }, answered);
  }

  #limitOf(name: string | undefined, version: ApiVersion): number {
    const { maxInsert, namespace } = this.#parts.options;
    const method = methodOf(name, namespace);
    if (method === undefined) return largestRequestBytes(version);
    if (method === "integration.insert" && maxInsert !== undefined) return maxInsert;
    return requestLimits(method, version).maxRequestBytes;
  }
}

/** Clients may leave the header out and get the newest stable version. */
function versionOf(request: IncomingMessage): ApiVersion {
  const header = request.headers[versionHeader];
  const text = (Array.isArray(header) ? header[0] : header)?.trim() ?? "";
  if (text === "") return newestStable;
  if (isApiVersion(text)) return text;
  throw new HttpRefusal(
    400,
    "unknown_version",
    `X-API-Version ${JSON.stringify(text)} is unknown; it may be ${apiVersions.join(", ")}, or left out for ${newestStable}`,
  );
}

/** A browser that is offered Basic would ask by a window of its own, over the page that made the request. */
function unauthorized(request: IncomingMessage): HttpRefusal {
  const schemes = request.headers["sec-fetch-mode"] === undefined ? ["Basic", "Bearer"] : ["Bearer"];
  return new HttpRefusal(401, "access_denied", "Unauthorized", {
    "www-authenticate": schemes.map((scheme) => `${scheme} realm="service"`).join(", "),
  });
}

function checkContentType(request: IncomingMessage): void {
  const type = (request.headers["content-type"] ?? "").split(";")[0]?.trim().toLowerCase();
  if (type !== "application/json")
    throw new HttpRefusal(415, "unsupported_media_type", "the header content-type must be application/json");
}

/** The hosted service gives up on a call after 15 s in all, whether or not it has run. */
async function within(answer: Promise<Answer>, ms: number, { clock }: Runtime, gone: AbortSignal): Promise<Answer> {
  const timer = new AbortController();
  const late = clock.sleep(Math.max(0, ms), AbortSignal.any([timer.signal, gone])).then(() => {
    throw new HttpRefusal(504, "timeout", "the call took more than 15 s; it may have been run");
  });
  late.catch(() => {});
  try {
    return await Promise.race([answer, late]);
  } finally {
    timer.abort();
  }
}
