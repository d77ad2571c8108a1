// POST /v1/rpc: handles a request from its headers to its response.
import { randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock, Runtime } from "../../core/runtime.ts";
import { orAbort } from "../../lib/flow/abort.ts";
import {
  isServedVersion,
  largestRequestBytes,
  newestStable,
  otherVersions,
  queueTimeouts,
  requestLimits,
  type ServedVersion,
  servedVersions,
  versionHeader,
} from "../../wire/method.ts";
import { scanEnvelope } from "../call/json-bytes.ts";
import { type Fault, type FaultKind, FaultPlan } from "../config/fault.ts";
import type { LocalServiceOptions } from "../config/options.ts";
import { methodOf, onlyReads } from "../method/dispatch.ts";
import type { StoreThreads } from "../worker/store-threads.ts";
import type { CallAdmission } from "./admission.ts";
import { type Authenticate, basicCredentials } from "./credentials.ts";
import type { CredentialBrake } from "./guess-brake.ts";
import { lateOutcomes, outcomeKey, withId } from "./late-outcomes.ts";
import {
  checkContentType,
  checkDeclaredBody,
  continueIfAsked,
  goneSignal,
  HttpRefusal,
  readBody,
  send,
  sendCoded,
  sendJson,
  tooLarge,
  within,
} from "./messages.ts";
import type { Traffic } from "./traffic.ts";

interface RpcEndpointParts {
  readonly options: LocalServiceOptions;
  readonly runtime: Runtime;
  readonly authenticate: Authenticate;
  readonly brake: CredentialBrake;
  readonly admission: CallAdmission;
  readonly traffic: Traffic;
  readonly store: StoreThreads;
}

/** Limit for the bodies of arriving, waiting and running calls in memory. */
const maxHeldBytes = 256 * 2 ** 20;
/** Limit for query responses in memory that clients have not read yet. */
const maxUnreadBytes = 128 * 2 ** 20;
/** Smaller responses are always sent. */
const largeAnswerBytes = 2 ** 17;
/** Time limit for a client that reads nothing of a large response. */
const unreadMs = 60_000;
/** A client that reads more slowly than this, after `unreadMs`, holds memory that other responses need. */
const slowestBytesPerMs = 32;

export function rpcEndpoint({ options, runtime, authenticate, brake, admission, traffic, store }: RpcEndpointParts) {
  const { clock } = runtime;
  const late = lateOutcomes(clock);
  let faultPlan = new FaultPlan(options.faults ?? []);
  let heldBytes = 0;
  let unreadBytes = 0;

  /** Responds, or rejects with `HttpRefusal`. Rejects with another error if the client disconnects. */
  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let bytes = 0;
    const hold = (more: number) => {
      if (heldBytes - bytes > maxHeldBytes)
        throw new HttpRefusal(503, "busy", "too many calls wait already", { "retry-after": "5" });
      bytes += more;
      heldBytes += more;
    };
    try {
      await answer(await receive(request, response, hold), request, response);
    } finally {
      heldBytes -= bytes;
    }
  }

  /** `hold` counts bytes of the body. It throws if other bodies take too much memory. */
  async function receive(request: IncomingMessage, response: ServerResponse, hold: (bytes: number) => void) {
    const arrival = clock.monotonic();
    const version = versionOf(request);
    const caller = authenticate(request);
    if (!caller) {
      // Only wrong passwords are delayed; tokens cannot be guessed.
      if (basicCredentials(request.headers.authorization)) await brake(request, response);
      throw unauthorized(request);
    }
    checkContentType(request, "application/json");
    const largest = Math.max(largestRequestBytes(version), options.maxInsert ?? 0);
    checkDeclaredBody(request, largest);
    hold(0);
    continueIfAsked(request, response);
    const limitOfStart = (bytes: Buffer) => limitOf(scanEnvelope(bytes).method, version);
    const body = await readBody(request, largest, limitOfStart, hold);
    const envelope = scanEnvelope(body);
    const method = methodOf(envelope.method, options.namespace);
    traffic.record(method ?? "other", arrival, body.length);
    const limit = limitOf(envelope.method, version);
    if (body.length > limit) throw tooLarge(limit);
    // From here on, since a repeated call over a slow line must not time out again.
    return { body, envelope, method, version, caller, start: clock.monotonic() };
  }

  async function answer(
    received: Awaited<ReturnType<typeof receive>>,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const { body, envelope, method, version, caller, start } = received;
    const gone = goneSignal(response);
    const faults = faultPlan.next(method);
    const fault = (kind: FaultKind) => faults.find((candidate) => candidate.kind === kind);
    if (await failBefore(faults, response, clock, gone)) return;
    if (method) await admission.admit(caller.integration, method, version, gone);
    if (fault("cutBefore")) return void response.destroy();
    const left = start + queueTimeouts.totalMs - clock.monotonic();
    if (left <= 0) throw new HttpRefusal(504, "timeout", "the call took more than 15 s; it was not run");
    const trace = randomBytes(10).toString("hex");
    const id = envelope.id === "null" ? undefined : envelope.id;
    // Computed before the call, which transfers the body to another thread.
    const written = method !== undefined && !onlyReads(method) ? method : undefined;
    const key = written && id !== undefined ? await outcomeKey(body, caller, version, written) : undefined;
    const abandoned = new AbortController();
    const call = (written && late.take(written, key)) ?? {
      id: id ?? "",
      method: written,
      answer: store.call(
        {
          body,
          method: envelope.method,
          id,
          caller,
          version,
          namespace: options.namespace,
          now: clock.now() + (fault("skew")?.value ?? 0) * 1_000,
          trace,
          refusedInputs: fault("partial")?.inputs ?? [],
        },
        abandoned.signal,
      ),
    };
    // The hosted service times out after 15 s in total, whether or not the call has run.
    const tooLate = "the call took more than 15 s; it may have been run";
    const { body: outcome, failure } = await within(left, tooLate, clock, gone, (ended) =>
      orAbort(call.answer, ended),
    ).catch((error: unknown) => {
      abandoned.abort(error);
      if (key !== undefined) late.keep(key, call);
      throw error;
    });
    if (!written && outcome) keepUntilRead(outcome.length, gone);
    const answered = outcome && id !== undefined && id !== call.id ? withId(outcome, call.id, id) : outcome;
    if (failure !== undefined) runtime.log.error({ part: "service", trace, failure }, "a request failed");
    if (fault("cutAfter")) return void response.destroy();
    // Clients log the trace from this W3C header.
    const headers = { [versionHeader]: version, traceparent: `00-${trace.padStart(32, "0")}-${trace.slice(-16)}-00` };
    if (fault("garbage")) sendJson(response, 200, '{"jsonrpc":"2.0","id":', headers);
    else if (answered === undefined) send(response, 204, headers, undefined);
    else {
      const sent = await sendCoded(request, response, { "content-type": "application/json", ...headers }, answered);
      limitReading(sent, response, gone);
    }
  }

  /** Cuts the connection of a client that has not read a large response in time. */
  function limitReading(bytes: number, response: ServerResponse, gone: AbortSignal): void {
    if (bytes < largeAnswerBytes) return;
    response.setTimeout(unreadMs, () => response.destroy());
    clock.sleep(unreadMs + bytes / slowestBytesPerMs, gone).then(
      () => response.destroy(),
      () => {},
    );
  }

  /** Counts a large response until it is read. Throws `HttpRefusal` 503 if unread ones take too much memory. */
  function keepUntilRead(bytes: number, gone: AbortSignal): void {
    gone.throwIfAborted();
    if (bytes < largeAnswerBytes) return;
    if (unreadBytes > maxUnreadBytes)
      throw new HttpRefusal(503, "busy", "too many large answers are being sent", { "retry-after": "5" });
    unreadBytes += bytes;
    gone.addEventListener("abort", () => (unreadBytes -= bytes), { once: true });
  }

  function limitOf(name: string | undefined, version: ServedVersion): number {
    const { maxInsert, namespace } = options;
    const method = methodOf(name, namespace);
    if (method === undefined) return largestRequestBytes(version);
    if (method === "integration.insert" && maxInsert !== undefined) return maxInsert;
    return requestLimits(method, version).maxRequestBytes;
  }
  return {
    handle,
    /** Replaces the faults from the next call on. */
    setFaults(faults: readonly Fault[]): void {
      faultPlan = new FaultPlan(faults);
    },
  };
}

/** Without the header, clients get the newest stable version. */
function versionOf(request: IncomingMessage): ServedVersion {
  const header = request.headers[versionHeader];
  const text = (Array.isArray(header) ? header[0] : header)?.trim() ?? "";
  if (text === "") return newestStable;
  if (isServedVersion(text)) return text;
  const release = Object.hasOwn(otherVersions, text) ? otherVersions[text] : undefined;
  if (release) return release;
  throw new HttpRefusal(
    400,
    "unknown_version",
    `X-API-Version ${JSON.stringify(text)} is unknown; it may be ${servedVersions.join(", ")}, or left out for ${newestStable}`,
  );
}

/** For Basic, a browser would open its own login dialog over the page. */
function unauthorized(request: IncomingMessage): HttpRefusal {
  const schemes = request.headers["sec-fetch-mode"] === undefined ? ["Basic", "Bearer"] : ["Bearer"];
  return new HttpRefusal(401, "access_denied", "Unauthorized", {
    "www-authenticate": schemes.map((scheme) => `${scheme} realm="service"`).join(", "),
  });
}

/** Applies faults before the call. Resolves with true if one of them replaces the call. */
async function failBefore(
  faults: readonly Fault[],
  response: ServerResponse,
  clock: Clock,
  gone: AbortSignal,
): Promise<boolean> {
  for (const { kind, value } of faults)
    if (kind === "delay") await clock.sleep(value, gone);
    else if (kind === "refuse") {
      response.destroy();
      return true;
    } else if (kind === "html") {
      send(response, 200, { "content-type": "text/html" }, "<!doctype html><title>Sign in to the network</title>");
      return true;
    } else if (kind === "status")
      throw new HttpRefusal(value, "fault", "this answer was asked for", value === 429 ? { "retry-after": "3" } : {});
  return false;
}
