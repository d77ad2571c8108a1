// The listening socket, which can be closed and reopened on the same port.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { hostInUrl, listen } from "../../lib/network/listen.ts";
import type { ListenAddress } from "../../lib/values/fields.ts";
import { versionHeader } from "../../wire/method.ts";
import { send } from "./messages.ts";

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

const allowedForSeconds = "600";

/** Sets the CORS headers for an allowed page. Returns true if the request was a preflight, which is then answered. */
export function answeredCrossOrigin(
  allowed: readonly string[],
  request: IncomingMessage,
  response: ServerResponse,
): boolean {
  const { origin } = request.headers;
  const any = allowed.includes("*");
  if (origin === undefined || !(any || allowed.includes(origin))) return false;
  // Cookies are not used, so an allowed page still needs credentials.
  response.setHeader("access-control-allow-origin", any ? "*" : origin);
  response.setHeader("access-control-expose-headers", `${versionHeader}, traceparent, retry-after`);
  if (request.method !== "OPTIONS" || request.headers["access-control-request-method"] === undefined) return false;
  send(
    response,
    204,
    {
      "access-control-allow-methods": "POST, GET, HEAD",
      "access-control-allow-headers": `authorization, content-type, content-encoding, traceparent, ${versionHeader}`,
      "access-control-max-age": allowedForSeconds,
    },
    undefined,
  );
  return true;
}
