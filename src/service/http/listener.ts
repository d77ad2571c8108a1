// The listening socket, which can be closed and reopened on the same port.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { hostInUrl, listen } from "../../lib/network/listen.ts";
import type { ListenAddress } from "../../lib/values/fields.ts";

/** The certificate chain and its private key as PEM. */
export interface ServerCertificate {
  readonly cert: string;
  readonly key: string;
}

type RequestHandler = (request: IncomingMessage, response: ServerResponse) => void;

export class Listener implements AsyncDisposable {
  readonly #handler: RequestHandler;
  readonly #certificate: ServerCertificate | undefined;
  #address: ListenAddress;
  #server: Server | undefined;

  private constructor(address: ListenAddress, certificate: ServerCertificate | undefined, handler: RequestHandler) {
    this.#address = address;
    this.#certificate = certificate;
    this.#handler = handler;
  }

  /** Resolves when connections are accepted, with TLS if there is a certificate. Rejects with `PORT_IN_USE`. */
  static async open(
    address: ListenAddress,
    certificate: ServerCertificate | undefined,
    handler: RequestHandler,
  ): Promise<Listener> {
    const listener = new Listener(address, certificate, handler);
    await listener.open();
    return listener;
  }

  /** `http://host:port` or `https://host:port`, with the actual port. */
  get origin(): string {
    const { host, port } = this.#address;
    return `${this.#certificate ? "https" : "http"}://${host === "0.0.0.0" || host === "::" ? "127.0.0.1" : hostInUrl(host)}:${port}`;
  }

  /** Accepts connections again on the same port. Does nothing if already open. */
  async open(): Promise<void> {
    if (this.#server) return;
    const timeouts = { keepAliveTimeout: 65_000, headersTimeout: 20_000, requestTimeout: 60_000 };
    const server = this.#certificate
      ? createTlsServer({ ...timeouts, ...this.#certificate }, this.#handler)
      : createServer(timeouts, this.#handler);
    // The same handler serves requests with `Expect: 100-continue`; see `continueIfAsked`.
    server.on("checkContinue", this.#handler);
    this.#address = { ...this.#address, port: await listen(server, this.#address, "cannot listen on") };
    this.#server = server;
  }

  /** Resolves when all connections are closed and new ones are refused. */
  async close(): Promise<void> {
    const server = this.#server;
    if (!server) return;
    this.#server = undefined;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
