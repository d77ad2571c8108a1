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

export type Listener = Awaited<ReturnType<typeof openListener>>;

/** Resolves when connections are accepted, with TLS if there is a certificate. Rejects with `PORT_IN_USE`. */
export async function openListener(
  at: ListenAddress,
  certificate: ServerCertificate | undefined,
  handler: RequestHandler,
) {
  let address = at;
  let server: Server | undefined;

  /** Accepts connections again on the same port. Does nothing if already open. */
  async function open(): Promise<void> {
    if (server) return;
    const timeouts = { keepAliveTimeout: 65_000, headersTimeout: 20_000, requestTimeout: 60_000 };
    const made = certificate
      ? createTlsServer({ ...timeouts, ...certificate }, handler)
      : createServer(timeouts, handler);
    // The same handler serves requests with `Expect: 100-continue`; see `continueIfAsked`.
    made.on("checkContinue", handler);
    address = { ...address, port: await listen(made, address, "cannot listen on") };
    server = made;
  }

  /** Resolves when all connections are closed and new ones are refused. */
  async function close(): Promise<void> {
    const ending = server;
    if (!ending) return;
    server = undefined;
    const closed = new Promise<void>((resolve) => ending.close(() => resolve()));
    ending.closeAllConnections();
    await closed;
  }

  await open();
  return {
    open,
    close,
    /** `http://host:port` or `https://host:port`, with the actual port. */
    get origin(): string {
      const { host, port } = address;
      return `${certificate ? "https" : "http"}://${host === "0.0.0.0" || host === "::" ? "127.0.0.1" : hostInUrl(host)}:${port}`;
    },
    [Symbol.asyncDispose]: close,
  };
}
