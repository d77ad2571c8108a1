// Lets pages of other origins call the service from a browser (CORS, the Fetch standard 3.2), where an option names them.
import type { IncomingMessage, ServerResponse } from "node:http";
import { versionHeader } from "../../wire/method.ts";
import { send } from "./messages.ts";

const allowedForSeconds = "600";

/**
 * Adds the headers for a page that may call, whatever the answer becomes. True where the request was the browser's
 * question beforehand, which is answered then.
 */
export function answeredCrossOrigin(
  allowed: readonly string[],
  request: IncomingMessage,
  response: ServerResponse,
): boolean {
  const { origin } = request.headers;
  const any = allowed.includes("*");
  if (origin === undefined || !(any || allowed.includes(origin))) return false;
  // No cookies are in use, so a page that may call must know the credentials.
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
