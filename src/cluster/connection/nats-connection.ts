// The connection of an agent to the NATS servers, which connects and reconnects automatically, and the requests and
// messages to other agents that pass over it.
import { readFileSync } from "node:fs";
import type { JetStreamClient, JetStreamManager } from "@nats-io/jetstream";
import type { Kvm } from "@nats-io/kv";
import type { Authenticator, Msg, NatsConnection, NodeConnectionOptions } from "@nats-io/transport-node";
import { AgentError, isAgentError, reasonOf } from "../../core/errors.ts";
import type { Clock, Runtime } from "../../core/runtime.ts";
import { deadline, isAbort, orAbort } from "../../lib/flow/abort.ts";
import { RateLimitedLog } from "../../lib/flow/rate-limited-log.ts";
import { BackOff } from "../../lib/flow/repeat.ts";
import type { Broadcast, RequestChannel } from "./jetstream.ts";
import type { ClusterOptions } from "./options.ts";

/** Timeout of a request: electing a leader of a stream takes up to about 4 s. */
export const answerWithinMs = 5_000;
/** Timeout of a call with several requests. Without it, listing a bucket never ends if its server fails meanwhile. */
const longestAnswerMs = 8_000;
/** A partition that drops packets is detected after at most three intervals; the next server is tried then. */
const pingEveryMs = 1_500;
const longestWaitMs = 5_000;

export interface NatsClient {
  readonly connection: NatsConnection;
  readonly jetstream: JetStreamClient;
  readonly manager: JetStreamManager;
  readonly buckets: Kvm;
}

interface ConnectionState {
  readonly isConnected: boolean;
  readonly server: { readonly name: string; readonly version: string } | undefined;
  readonly reason: string | undefined;
}

export class NatsLink implements AsyncDisposable {
  readonly #options: ClusterOptions;
  readonly #name: string;
  readonly #runtime: Runtime;
  /** One for each heartbeat where the servers forbid its subject. */
  readonly #errors: RateLimitedLog;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  #client: NatsClient | undefined;
  #isConnected = false;
  #reason: string | undefined = "not connected yet";
  #server: ConnectionState["server"];
  #changed = Promise.withResolvers<void>();

  /** Starts connecting and returns. `name`: the agent's name in the servers' list of connections. */
  constructor(options: ClusterOptions, name: string, runtime: Runtime) {
    this.#options = options;
    this.#name = name;
    this.#runtime = { ...runtime, log: runtime.log.child({ part: "cluster" }) };
    this.#errors = new RateLimitedLog(this.#runtime);
    this.#running = this.#keepConnected();
  }

  get state(): ConnectionState {
    return { isConnected: this.#isConnected, server: this.#server, reason: this.#reason };
  }

  async connected(signal: AbortSignal): Promise<void> {
    while (!this.#isConnected) await orAbort(this.#changed.promise, signal);
  }

  /**
   * Resolves as `call` does. Without a connection, rejects at once with `CLUSTER_UNREACHABLE`: the client would queue
   * the request and send it much later. `what` is the start of the error message.
   */
  async use<T>(what: string, call: (client: NatsClient) => Promise<T>): Promise<T> {
    if (!this.#client || !this.#isConnected)
      throw new AgentError("CLUSTER_UNREACHABLE", `${what}: no connection to ${this.#addresses}: ${this.#reason}`);
    const expired = () => new Error(`no answer within ${longestAnswerMs} ms`);
    using limit = deadline(longestAnswerMs, this.#stop.signal, expired);
    try {
      return await orAbort(call(this.#client), limit.signal);
    } catch (cause) {
      throw clusterFailure(what, cause);
    }
  }

  /** Leaves the server and connects to the next one of the list. Without a connection it has no effect. */
  changeServer(): void {
    void this.#client?.connection.reconnect().catch(() => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new Error("the cluster connection closes"));
    await this.#running;
  }

  get #addresses(): string {
    return this.#options.servers.join(", ");
  }

  async #keepConnected(): Promise<void> {
    const { clock, log, random } = this.#runtime;
    const backOff = new BackOff({ minMs: 500, maxMs: longestWaitMs, random });
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        await this.#connectOnce(() => backOff.reset());
      } catch (error) {
        if (signal.aborted) return;
        const refusal = isRefused(error);
        if (this.#reason !== reasonOf(error))
          log.warn({ reason: reasonOf(error), servers: this.#addresses }, "cannot connect to the cluster");
        this.#disconnected(refusal ? `refused: ${reasonOf(error)}` : reasonOf(error));
        await clock.sleep(backOff.next(), signal).catch(() => {});
      }
    }
  }

  /** Resolves when the connection is closed for good. Until then, the client reconnects by itself. */
  async #connectOnce(onConnected: () => void): Promise<void> {
    const { connect, jetstream, Kvm: Buckets, ...keys } = await import("./nats-client.ts");
    const connection = await connect(connectionOptions(this.#options, this.#name, keys));
    const close = () => void connection.close().catch(() => {});
    if (this.#stop.signal.aborted) close();
    this.#stop.signal.addEventListener("abort", close, { once: true });
    try {
      const client = jetstream(connection, { timeout: answerWithinMs });
      const manager = await client.jetstreamManager(false);
      this.#client = { connection, jetstream: client, manager, buckets: new Buckets(client) };
      this.#established(connection);
      onConnected();
      for await (const status of connection.status()) {
        if (status.type === "disconnect" || status.type === "staleConnection") this.#disconnected("connection lost");
        else if (status.type === "reconnect") this.#established(connection);
        else if (status.type === "error") this.#errors.warn({ err: status.error }, "error of the cluster");
      }
      const error = await connection.closed();
      if (error) throw error;
    } finally {
      this.#client = undefined;
      this.#stop.signal.removeEventListener("abort", close);
      this.#disconnected("connection closed");
      close();
    }
  }

  #established({ info }: NatsConnection): void {
    this.#server = info && { name: info.server_name, version: info.version };
    this.#reason = undefined;
    this.#isConnected = true;
    this.#runtime.log.info({ server: info?.server_name, version: info?.version }, "connected to the cluster");
    this.#change();
  }

  #disconnected(reason: string): void {
    if (this.#isConnected && !this.#stop.signal.aborted)
      this.#runtime.log.warn({ reason }, "connection to the cluster lost; points are kept in the local buffer");
    this.#isConnected = false;
    this.#reason = reason;
    this.#change();
  }

  #change(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}

function connectionOptions(
  { servers, user, password, credsFile, nkeyFile, tls }: ClusterOptions,
  name: string,
  keys: Record<"credsAuthenticator" | "nkeyAuthenticator", (secret: () => Uint8Array) => Authenticator>,
): NodeConnectionOptions {
  let authenticator: Authenticator | undefined;
  // The client reads them at each connection, so that replaced files take effect.
  if (credsFile !== undefined) authenticator = keys.credsAuthenticator(() => readFileSync(credsFile));
  if (nkeyFile !== undefined)
    authenticator = keys.nkeyAuthenticator(() => Buffer.from(readFileSync(nkeyFile, "utf8").trim()));
  const isSecure = tls !== undefined || servers.some((address) => address.startsWith("tls:"));
  return {
    servers: servers.map((address) => address.replace(/^\w+:\/\//, "")),
    name: `tagferry ${name}`,
    ...(user !== undefined && password && { user, pass: password.reveal() }),
    ...(authenticator && { authenticator }),
    ...(isSecure && { tls: Object.fromEntries(Object.entries(tls ?? {}).filter(([, path]) => path !== undefined)) }),
    timeout: answerWithinMs,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    reconnectJitter: 250,
    pingInterval: pingEveryMs,
    maxPingOut: 2,
    ignoreAuthErrorAbort: true,
    noAsyncTraces: true,
  };
}

/** JetStream error code of a full stream with `discard: new`. */
const storeFailed = 10_077;

/** Checks names, because the client's error classes are loaded only with a connection. */
export function isRefused(error: unknown): boolean {
  return (
    error instanceof Error && /^(Authorization|UserAuthenticationExpired|PermissionViolation)Error$/.test(error.name)
  );
}

const leaderless = "no server takes the request: the stream has no leader at the moment, or JetStream is off";

/** Whether no server listens for the request. The client calls both causes "jetstream is not enabled". */
function isLeaderless(error: unknown): boolean {
  return error instanceof Error && error.name === "JetStreamNotEnabled" && jetstreamCode(error) === undefined;
}

function clusterFailure(what: string, cause: unknown): AgentError {
  if (cause instanceof AgentError) return cause;
  const full = jetstreamCode(cause) === storeFailed && /maximum (bytes|messages)/.test(reasonOf(cause));
  const code = full ? "CLUSTER_FULL" : isRefused(cause) ? "CLUSTER_REFUSED" : "CLUSTER_UNREACHABLE";
  return new AgentError(code, `${what}: ${isLeaderless(cause) ? leaderless : reasonOf(cause)}`, { cause });
}

/** JetStream's `err_code` of an error. Undefined: it is another kind of error. */
export function jetstreamCode(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined;
  if ("code" in error && typeof error.code === "number") return error.code;
  return jetstreamCode(error.cause);
}

/** Timeout of a request to another agent. */
const agentAnswersMs = 3_000;
const retryMs = 500;
/** Interval of retries if the servers forbid the subject. The connection logs why. */
const refusedMs = 30_000;

/** `integration` is part of the subject, so that integrations do not meet. The caller owns `link`. */
export function natsRequests(link: Subscribed["link"], integration: string, clock: Clock): RequestChannel {
  const subject = `tagferry.turns.${integration}`;
  return {
    ask: (data) =>
      link.use(`request to ${subject}`, async ({ connection }) => {
        const { data: answer } = await connection.request(subject, data, { timeout: agentAnswersMs });
        return answer;
      }),
    answer(reply, signal) {
      const take = (message: Msg) =>
        reply(message.data).then(
          (answer) => void message.respond(answer),
          () => {}, // without an answer the request times out and is repeated
        );
      return eachMessage({ link, subject, clock }, take, signal);
    },
  };
}

/** Heartbeats of the members. As `natsRequests`. */
export function natsHeartbeats(link: Subscribed["link"], integration: string, clock: Clock): Broadcast {
  const subject = `tagferry.members.${integration}`;
  return {
    send(data) {
      link.use(`message to ${subject}`, async ({ connection }) => connection.publish(subject, data)).catch(() => {});
    },
    listen: (take, signal) => eachMessage({ link, subject, clock }, ({ data }) => take(data), signal),
  };
}

interface Subscribed {
  readonly link: Pick<NatsLink, "connected" | "use">;
  readonly subject: string;
  readonly clock: Clock;
}

/** Subscribes at each connection. Resolves when `signal` aborts. */
async function eachMessage(
  { link, subject, clock }: Subscribed,
  take: (message: Msg) => void,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    let waitMs = retryMs;
    try {
      await link.connected(signal);
      const subscription = await link.use(`messages on ${subject}`, async ({ connection }) =>
        connection.subscribe(subject),
      );
      const end = () => subscription.unsubscribe();
      signal.addEventListener("abort", end, { once: true });
      if (signal.aborted) end();
      try {
        for await (const message of subscription) take(message);
      } finally {
        signal.removeEventListener("abort", end);
      }
    } catch (error) {
      if (isRefused(error)) waitMs = refusedMs;
      else if (!isAgentError(error) && !isAbort(error, signal)) throw error;
    }
    await clock.sleep(waitMs, signal).catch(() => {});
  }
}
