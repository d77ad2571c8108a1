// Answers of the HTTP layer: everything that is not a JSON-RPC response.
import type { IncomingMessage, ServerResponse } from "node:http";

/** Ends a request before it is a call. The body is the one that the token endpoint documents for its failures. */
export class HttpRefusal extends Error {
  override readonly name = "HttpRefusal";
  readonly status: number;
  /** A word for programs: `payload_too_large`. */
  readonly error: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Instead of the documented body. */
  readonly body: string | undefined;

  constructor(
    status: number,
    error: string,
    description: string,
    headers: Readonly<Record<string, string>> = {},
    body?: string,
  ) {
    super(description);
    this.body = body;
    this.status = status;
    this.error = error;
    this.headers = headers;
  }
}

/** Sends `body` whole. Nothing happens when the client is gone. */
export function send(
  response: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
  body: Uint8Array | string | undefined,
): void {
  if (response.headersSent || response.destroyed) return;
  const length = body === undefined ? 0 : typeof body === "string" ? Buffer.byteLength(body) : body.byteLength;
  response.writeHead(status, {
    "cache-control": "no-store",
    ...(status === 204 ? {} : { "content-length": String(length) }),
    ...headers,
  });
  response.end(body);
}

/** Sends a refusal; what is left of the request's body is thrown away for a while, so that the client gets to read it. */
export function refuse(request: IncomingMessage, response: ServerResponse, refusal: HttpRefusal): void {
  const unread = !request.readableEnded && !request.complete;
  send(
    response,
    refusal.status,
    {
      "content-type": "application/json",
      ...(unread ? { connection: "close" } : {}),
      ...refusal.headers,
    },
    refusal.body ?? JSON.stringify({ error: refusal.error, error_description: refusal.message }),
  );
  if (!unread) return;
  request.resume();
  const timer = setTimeout(() => request.destroy(), lingerMs);
  request.once("close", () => clearTimeout(timer));
}

const lingerMs = 2_000;
