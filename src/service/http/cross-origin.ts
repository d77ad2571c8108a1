// Lets pages of the configured origins call the service from a browser (CORS, Fetch standard 3.2).
import type { IncomingMessage, ServerResponse } from "node:http";
import { versionHeader } from "../../wire/method.ts";
import { send } from "./messages.ts";

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
