// Connections to one origin, directly or through a proxy: undici pools with the limits of this program. Connections
// stay open as long as they work. The host name is therefore resolved periodically, so that a moved service is noticed
// while its old address still answers. Counts the bytes that the connections carry.

import { ADDRCONFIG, type LookupAddress, type LookupAllOptions } from "node:dns";
import { lookup } from "node:dns/promises";
import { isIP, type LookupFunction, type Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { buildConnector, Dispatcher } from "undici";
import connectMethod from "undici/lib/api/api-connect.js";
import buildConnect from "undici/lib/core/connect.js";
import BareDispatcher from "undici/lib/dispatcher/dispatcher.js";
import Pool from "undici/lib/dispatcher/pool.js";
import ProxyAgent from "undici/lib/dispatcher/proxy-agent.js";
import type { Clock, Metrics } from "../../core/runtime.ts";
import type { Secret } from "../../core/secret.ts";

export interface ConnectionOptions {
  readonly origin: string;
  /** URL of the proxy; may contain a user name and a password. */
  readonly proxy?: Secret | undefined;
  /** Trusted certificate authorities in PEM. Undefined: those of Node. */
  readonly ca?: string | undefined;
  /** Most open connections. */
  readonly connections: number;
  /** Resolves the host name of the proxy if there is one, otherwise of the service. */
  readonly lookup: LookupFunction;
  /** Counts the connections. Undefined: they are not counted. */
  readonly traffic?: NetworkBytes | undefined;
}

export interface Connections {
  readonly dispatcher: Dispatcher;
  /** All established connections. */
  readonly sockets: ReadonlySet<Socket>;
}

/** Time-out for a connection, including name lookup and TLS. */
const connectWithinMs = 20_000;
/** A connection that accepts no data is destroyed after this time, or up to twice as long. */
const stalledAfterMs = 20_000;
/**
 * A connection that is idle for this long is not used again, unless the server announces a longer time. Many servers
 * and proxies close theirs after 60 s, and a request sent at that moment would have to be repeated.
 */
const idleMs = 50_000;
const mostIdleMs = 3_600_000;

type Connector = buildConnector.connector;

/** Does not connect yet. */
export function openConnections(options: ConnectionOptions): Connections {
  const { origin, proxy, ca, connections, lookup, traffic } = options;
  const sockets = new Set<Socket>();
  // undici resumes TLS sessions, which takes fewer bytes, but only holds them weakly.
  const sessions = new Set<Buffer>();
  // Explicit, because an environment variable of Node could disable the verification.
  const tls = { timeout: connectWithinMs, rejectUnauthorized: true, ...(ca !== undefined && { ca }) };
  const toPool = (to: string | URL, connect: Connector) =>
    new Pool(to, {
      connections,
      connect: (options, callback) =>
        connect(options, (...result) => {
          const [, socket] = result;
          if (socket) {
            watch(socket, sockets);
            acceptContinue(socket);
            traffic?.watch(socket);
            socket.on("session", (session: Buffer) => {
              sessions.clear();
              sessions.add(session);
            });
          }
          callback(...result);
        }),
      // The caller limits the duration of the whole exchange.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: idleMs,
      keepAliveMaxTimeout: mostIdleMs,
      keepAliveTimeoutThreshold: 1_000,
    });
  if (!proxy) return { sockets, dispatcher: toPool(origin, buildConnect({ ...tls, lookup })) };
  // The index of undici adds this method to all dispatchers. The proxy agent needs it to open tunnels.
  Object.assign(BareDispatcher.prototype, { connect: connectMethod });
  const dispatcher = new ProxyAgent({
    uri: proxy.reveal(),
    // Requests to a service without TLS use no tunnel, since many proxies permit tunnels to port 443 only.
    proxyTunnel: false,
    proxyTls: { ...tls, lookup },
    requestTls: tls,
    clientFactory: (to, { connect }: { connect: Connector }) =>
      new Pool(to, { connect, headersTimeout: connectWithinMs }),
    factory: (to, { connect }: { connect: Connector }) => toPool(to, connect),
  });
  return { sockets, dispatcher };
}

/** Without this, a request to an unreachable machine would wait as long as a slow uplink may need. */
function watch(socket: Socket, sockets: Set<Socket>): void {
  sockets.add(socket);
  socket.once("close", () => sockets.delete(socket));
  // Data that the system accepted since the last check counts as activity.
  socket.setTimeout(stalledAfterMs, () => {
    if (socket.writableLength > 0)
      socket.destroy(new Error(`nothing more of the request was taken for ${stalledAfterMs / 1_000} s`));
  });
}

const unrequested = Buffer.from("HTTP/1.1 100");

/**
 * undici closes the connection at a 100 Continue, which it never requests; clients must accept it (RFC 9110, 15.2).
 * Replaces it with 102, which undici ignores. The informational answer is sent before the body is read, so it begins a
 * chunk.
 */
function acceptContinue(socket: Socket): void {
  const read = socket.read.bind(socket);
  socket.read = (size?: number) => {
    const chunk: unknown = read(size);
    if (Buffer.isBuffer(chunk) && chunk.subarray(0, unrequested.length).equals(unrequested)) chunk.write("2", 11);
    return chunk;
  };
}

/** Has the signature of `dns.lookup`. */
export type Resolve = (name: string, options: LookupAllOptions) => Promise<readonly LookupAddress[]>;

/** Interval of lookups while connections stay open. */
const askedEveryMs = 60_000;
/** Longest reuse of a slow answer for further connections. */
const mostKeptMs = 30_000;

interface Question {
  readonly name: string;
  readonly answer: Promise<readonly LookupAddress[]>;
  /** Until this time (monotonic, ms), the answer is reused. */
  until: number;
}

export class Addresses {
  readonly #name: string;
  readonly #clock: Clock;
  readonly #resolve: Resolve;
  #question: Question | undefined;
  #current: ReadonlySet<string> = new Set();
  #askedAt: number;

  /** `name`: host name of the peer. */
  constructor(name: string, clock: Clock, resolve: Resolve = lookup) {
    this.#name = name;
    this.#clock = clock;
    this.#resolve = resolve;
    this.#askedAt = clock.monotonic();
  }

  readonly lookup: LookupFunction = (name, options, callback) => {
    this.#ask(name, { ...options, all: true }).then(
      (found) => {
        if (options.all === true) callback(null, [...found]);
        else callback(null, found[0]?.address ?? "", found[0]?.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, ""),
    );
  };

  /** Repeats the lookup in the background if the last one is a minute old. Ignores failures. */
  refresh(): void {
    const now = this.#clock.monotonic();
    if (isIP(this.#name) !== 0 || now - this.#askedAt < askedEveryMs) return;
    this.#askedAt = now;
    // The options of `net.connect`.
    this.#ask(this.#name, { all: true, hints: ADDRCONFIG }).catch(() => {});
  }

  /** Whether the last lookup returned `address`. */
  leadTo(address: string | undefined): boolean {
    return address === undefined || this.#current.size === 0 || this.#current.has(address);
  }

  /** One lookup at a time, since a name server may block a thread for half a minute. Reuses slow answers. */
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

const bytes = {
  name: "upload_network_bytes_total",
  help: "Bytes exchanged with the service in both directions, with TLS and HTTP headers, without those of IP and TCP",
  labels: ["direction"],
} as const;

interface Counted {
  readonly bytesWritten: number;
  readonly bytesRead: number;
}

/** Bytes exchanged with the service on its TCP connections, with TLS and HTTP headers. Excludes IP and TCP headers. */
export class NetworkBytes {
  readonly #metrics: Metrics;
  readonly #known = new Map<Socket, Counted>();
  #sent = 0;
  #received = 0;

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
  }

  /** Counts a connection from now on, with what it has carried before. */
  watch(socket: Socket): void {
    this.#known.set(socket, { bytesWritten: 0, bytesRead: 0 });
    socket.once("close", () => {
      this.#count(socket);
      this.#known.delete(socket);
    });
  }

  /** Totals since the start. */
  read(): { readonly sentBytes: number; readonly receivedBytes: number } {
    for (const socket of this.#known.keys()) this.#count(socket);
    return { sentBytes: this.#sent, receivedBytes: this.#received };
  }

  #count(socket: Socket): void {
    const before = this.#known.get(socket);
    const now = countsOf(socket);
    if (!before || !now) return;
    this.#known.set(socket, now);
    const sent = now.bytesWritten - before.bytesWritten;
    const received = now.bytesRead - before.bytesRead;
    this.#sent += sent;
    this.#received += received;
    this.#metrics.counter(bytes).add(sent, { direction: "sent" });
    this.#metrics.counter(bytes).add(received, { direction: "received" });
  }
}

/** A TLS socket counts what it encrypts; the TCP connection below it is in fields that Node does not document. */
function countsOf(socket: Socket): Counted | undefined {
  if (!(socket instanceof TLSSocket)) return { bytesWritten: socket.bytesWritten, bytesRead: socket.bytesRead };
  const below: unknown = handleOf(socket, "_handle", "_parent");
  return isCounted(below) ? { bytesWritten: below.bytesWritten, bytesRead: below.bytesRead } : undefined;
}

function handleOf(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (from, name) => (typeof from === "object" && from !== null ? Reflect.get(from, name) : undefined),
    value,
  );
}

function isCounted(value: unknown): value is Counted {
  return typeof handleOf(value, "bytesWritten") === "number" && typeof handleOf(value, "bytesRead") === "number";
}
