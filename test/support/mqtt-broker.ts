// An MQTT broker in this process (aedes: MQTT 3.1.1, sockets, persistent sessions) with user name and password.
import type { AddressInfo, Socket } from "node:net";
import { createServer } from "node:net";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";
import { Aedes } from "aedes";

export interface MqttBrokerOptions {
  /** Undefined: any client may connect. */
  readonly credentials?: { readonly username: string; readonly password: string };
  /** 0: any free port. */
  readonly port?: number;
  /** Uses TLS. With `ca` and `requestCert` clients need a certificate. */
  readonly tls?: TlsOptions;
  /** False: the subscription is refused. */
  readonly maySubscribe?: (filter: string) => boolean;
}

export interface MqttBroker extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** The credentials for clients; required only if `credentials` were given. */
  readonly username: string;
  readonly password: string;
  /** Resolves when the broker has passed the message to every session. */
  publish(topic: string, payload: string | Buffer, options?: { qos?: 0 | 1 | 2; retain?: boolean }): Promise<void>;
  /** Acknowledged messages in the order of their PUBACK, as `topic payload`. */
  readonly acknowledged: readonly string[];
  /** Identifiers of the clients connected now. */
  readonly clients: readonly string[];
  /** The topic filters in the session of a client. */
  subscriptions(clientId: string): readonly string[];
  /** Closes every connection without a DISCONNECT. Sessions and queues stay. */
  cutConnections(): void;
}

export async function openMqttBroker(options: MqttBrokerOptions = {}): Promise<MqttBroker> {
  const { credentials, maySubscribe } = options;
  const acknowledged: string[] = [];
  const clients = new Set<string>();
  const subscriptions = new Map<string, Set<string>>();
  const sockets = new Set<Socket>();
  const aedes = new Aedes({
    authenticate(_client, username, password, done) {
      const known =
        !credentials || (username === credentials.username && password?.toString() === credentials.password);
      if (known) done(null, true);
      else done(Object.assign(new Error("bad user name or password"), { returnCode: 4 }), null);
    },
    authorizeSubscribe: (_client, subscription, done) =>
      done(null, !maySubscribe || maySubscribe(subscription.topic) ? subscription : null),
  });
  await aedes.listen();
  // For a retained message aedes passes no packet here, contrary to its types.
  aedes.on("ack", (packet: object | undefined) => {
    if (packet && "topic" in packet && "payload" in packet)
      acknowledged.push(`${String(packet.topic)} ${String(packet.payload)}`);
  });
  aedes.on("clientReady", (client) => clients.add(client.id));
  aedes.on("clientDisconnect", (client) => clients.delete(client.id));
  aedes.on("subscribe", (added, { id }) => {
    const filters = subscriptions.get(id) ?? new Set();
    subscriptions.set(id, filters);
    for (const { topic } of added) if (maySubscribe?.(topic) ?? true) filters.add(topic);
  });
  aedes.on("unsubscribe", (filters, { id }) => {
    for (const filter of filters) subscriptions.get(id)?.delete(filter);
  });
  const take = (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
    aedes.handle(socket);
  };
  const server = options.tls ? createTlsServer(options.tls, take) : createServer(take);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port ?? 0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo; // bound to a TCP port
  return {
    url: `${options.tls ? "mqtts" : "mqtt"}://127.0.0.1:${port}`,
    port,
    username: credentials?.username ?? "gw1",
    password: credentials?.password ?? "gw1-password",
    acknowledged,
    get clients() {
      return [...clients];
    },
    publish: (topic, payload, { qos = 1, retain = false } = {}) =>
      new Promise((resolve, reject) => {
        aedes.publish({ cmd: "publish", topic, payload, qos, retain, dup: false }, (error) =>
          error ? reject(error) : resolve(),
        );
      }),
    subscriptions: (clientId) => [...(subscriptions.get(clientId) ?? [])].toSorted(),
    cutConnections() {
      for (const socket of sockets) socket.destroy();
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await new Promise<void>((resolve) => aedes.close(() => resolve()));
    },
  };
}
