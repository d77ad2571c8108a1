// HTTP requests of the page that finds and adds tags: reads a bounded body, and answers with JSON.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Discover } from "../discover/discover.ts";
import { attempt } from "../lib/flow/attempt.ts";
import { bytesOf } from "../lib/flow/bytes-of.ts";
import { answerJson } from "./answer.ts";

const prefix = "/api/discover/";
/** Several thousand chosen nodes. */
const mostBytes = 4 * 2 ** 20;

export function isDiscover(path: string): boolean {
  return path.startsWith(prefix);
}

/** Call it for an authorised request. The work ends when the client closes the connection. */
export async function answerDiscover(
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
  discover: Pick<Discover, "answer"> | undefined,
): Promise<void> {
  if (!discover)
    return answerJson(response, 404, {
      ok: false,
      reason: "this agent adds no tags from its page, like a demo with a duration",
    });
  const left = new AbortController();
  response.once("close", () => left.abort(new Error("the client has closed the connection")));
  const bytes = await bytesOf(request as AsyncIterable<Buffer>, mostBytes);
  if (!bytes) {
    // The rest of the body is not read.
    response.setHeader("connection", "close");
    return answerJson(response, 413, { ok: false, reason: `a request may have ${mostBytes} bytes` });
  }
  const body: unknown = attempt(() => JSON.parse(bytes.toString("utf8")));
  if (body === undefined) return answerJson(response, 400, { ok: false, reason: "the body is not JSON" });
  const { status, body: answer } = await discover.answer(path.slice(prefix.length), body, left.signal);
  if (!response.destroyed) answerJson(response, status, answer);
}
