// The connections to one origin, directly or through a proxy: pools of undici with the limits of this program; and where the
// name of the service leads. Connections stay open for as long as they work, so the name is looked up again from time to
// time: a service that has moved is followed although its old address still answers.

import { ADDRCONFIG, type LookupAddress, type LookupAllOptions } from "node:dns";
import { lookup } from "node:dns/promises";
import { isIP, type LookupFunction, type Socket } from "node:net";
import type { buildConnector, Dispatcher } from "undici";
import connectMethod from "undici/lib/api/api-connect.js";
import buildConnect from "undici/lib/core/connect.js";
import BareDispatcher from "undici/lib/dispatcher/dispatcher.js";
import Pool from "undici/lib/dispatcher/pool.js";
import ProxyAgent from "undici/lib/dispatcher/proxy-agent.js";
import type { Clock } from "../../core/runtime.ts";
import type { Secret } from "../../core/secret.ts";

export interface ConnectionOptions {
  /** Scheme, host and port of the service. */
  readonly origin: string;
  /** Address of the proxy; may hold a user name and a password. */
  readonly proxy?: Secret | undefined;
  /** Certificates of the trusted authorities, in PEM. Undefined: those that Node trusts. */
  readonly ca?: string | undefined;
  /** Connections that may be open at once. */
  readonly connections: number;
  /** Looks up the name of the proxy where there is one, of the service otherwise. */
  readonly lookup: LookupFunction;
}

export interface Connections {
  readonly dispatcher: Dispatcher;
  /** All that are established. */
  readonly sockets: ReadonlySet<Socket>;
}

/** How long establishing a connection may take, name lookup and TLS included. */
const connectWithinMs = 20_000;
/** A connection that takes no data for this long is destroyed. Node checks at this interval, so it takes up to twice as long. */
const stalledAfterMs = 20_000;
/** Idle connections stay open for as long as the server keeps them; undici requires a bound. */
const idleMs = 3_600_000;

type Connector = buildConnector.connector;

/** Connects to nothing yet. */
export function openConnections({ origin, proxy, ca, connections, lookup }: ConnectionOptions): Connections {
  const sockets = new Set<Socket>();
  // `rejectUnauthorized` is set because an environment variable of Node would switch it off otherwise.
  const tls = { timeout: connectWithinMs, rejectUnauthorized: true, ...(ca !== undefined && { ca }) };
  const toPool = (to: string | URL, connect: Connector) =>
    new Pool(to, {
      connections,
      connect: (options, callback) =>
        connect(options, (...result) => {
          if (result[1]) watch(result[1], sockets);
          callback(...result);
        }),
      // The caller limits the whole exchange.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: idleMs,
      keepAliveMaxTimeout: idleMs,
      keepAliveTimeoutThreshold: 1_000,
    });
  if (!proxy) return { sockets, dispatcher: toPool(origin, buildConnect({ ...tls, lookup })) };
  // undici's index adds this to all dispatchers; tunnels are opened with it.
  Object.assign(BareDispatcher.prototype, { connect: connectMethod });
  const dispatcher = new ProxyAgent({
    uri: proxy.reveal(),
    // Requests to a service without TLS go to the proxy as they are: many proxies permit tunnels to port 443 only.
    proxyTunnel: false,
    proxyTls: { ...tls, lookup },
    requestTls: tls,
    clientFactory: (to, { connect }: { connect: Connector }) =>
      new Pool(to, { connect, headersTimeout: connectWithinMs }),
    factory: (to, { connect }: { connect: Connector }) => toPool(to, connect),
  });
  return { sockets, dispatcher };
}

/** Data on its way to a machine that is gone would otherwise wait for the whole time that a slow uplink may need. */
function watch(socket: Socket, sockets: Set<Socket>): void {
  sockets.add(socket);
  socket.once("close", () => sockets.delete(socket));
  // Data that the system has taken since the last check counts as activity.
  socket.setTimeout(stalledAfterMs, () => {
    if (socket.writableLength > 0)
      socket.destroy(new Error(`nothing more of the request was taken for ${stalledAfterMs / 1_000} s`));
  });
}

/** As `dns.lookup` does it. */
export type Resolve = (name: string, options: LookupAllOptions) => Promise<readonly LookupAddress[]>;

/** Between two questions while a connection stays open. */
const askedEveryMs = 60_000;
/** For how long at most an answer that took its time is used for the next connections too. */
const mostKeptMs = 30_000;

interface Question {
  readonly name: string;
  readonly answer: Promise<readonly LookupAddress[]>;
  /** Who asks before this (monotonic, ms) is given the same answer. */
  until: number;
}

export class Addresses {
  readonly #name: string;
  readonly #clock: Clock;
  readonly #resolve: Resolve;
  #question: Question | undefined;
  #current: ReadonlySet<string> = new Set();
  #askedAt: number;

  /** `name`: of the machine that is connected to. */
  constructor(name: string, clock: Clock, resolve: Resolve = lookup) {
    this.#name = name;
    this.#clock = clock;
    this.#resolve = resolve;
    this.#askedAt = clock.monotonic();
  }

  /** For `net.connect`. */
  readonly lookup: LookupFunction = (name, options, callback) => {
    this.#ask(name, { ...options, all: true }).then(
      (found) => {
        if (options.all === true) callback(null, [...found]);
        else callback(null, found[0]?.address ?? "", found[0]?.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, ""),
    );
  };

  /** Asks again, in the background, when the last answer is a minute old. One that fails changes nothing. */
  refresh(): void {
    const now = this.#clock.monotonic();
    if (isIP(this.#name) !== 0 || now - this.#askedAt < askedEveryMs) return;
    this.#askedAt = now;
    // As `net.connect` asks.
    this.#ask(this.#name, { all: true, hints: ADDRCONFIG }).catch(() => {});
  }

  /** Whether the name led to `address` when it was asked for last. */
  leadTo(address: string | undefined): boolean {
    return address === undefined || this.#current.size === 0 || this.#current.has(address);
  }

  /**
   * One question at a time, whoever asks: a name server that does not answer keeps one of the few threads for half a
   * minute. What came so late is kept for as long as it took, for whoever asked may not have waited for it.
   */
  #ask(name: string, options: LookupAllOptions): Promise<readonly LookupAddress[]> {
    const begun = this.#clock.monotonic();
    if (this.#question?.name === name && begun < this.#question.until) return this.#question.answer;
    const question: Question = {
      name,
      until: Number.POSITIVE_INFINITY,
      answer: this.#resolve(name, options).then(
        (found) => {
          const now = this.#clock.monotonic();
          question.until = now + Math.min(now - begun, mostKeptMs);
          this.#askedAt = now;
          this.#current = new Set(found.map(({ address }) => address));
          return found;
        },
        (error: unknown) => {
          question.until = 0;
          throw error;
        },
      ),
    };
    this.#question = question;
    return question.answer;
  }
}
