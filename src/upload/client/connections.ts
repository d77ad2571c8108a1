// The connections to one origin, directly or through a proxy: pools of undici with the limits of this program.
import type { LookupFunction, Socket } from "node:net";
import type { buildConnector, Dispatcher } from "undici";
import connectMethod from "undici/lib/api/api-connect.js";
import buildConnect from "undici/lib/core/connect.js";
import BareDispatcher from "undici/lib/dispatcher/dispatcher.js";
import Pool from "undici/lib/dispatcher/pool.js";
import ProxyAgent from "undici/lib/dispatcher/proxy-agent.js";
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
