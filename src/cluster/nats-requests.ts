// Requests and answers on one subject of NATS.
import type { NatsConnection } from "@nats-io/transport-node";
import { isAgentError } from "../core/errors.ts";
import type { Clock } from "../core/runtime.ts";
import { isAbort } from "../lib/flow/abort.ts";
import type { RequestChannel } from "./jetstream.ts";
import type { NatsLink } from "./nats-connection.ts";

const answerWithinMs = 3_000;
const retryMs = 500;

/** `integration` is part of the subject, so that integrations do not meet. The caller owns `link`. */
export function natsRequests(link: NatsLink, integration: string, clock: Clock): RequestChannel {
  const subject = `tagferry.turns.${integration}`;
  return {
    ask: (data) =>
      link.use(`request to ${subject}`, async ({ connection }) => {
        const { data: answer } = await connection.request(subject, data, { timeout: answerWithinMs });
        return answer;
      }),
    async answer(reply, signal) {
      while (!signal.aborted) {
        try {
          await link.connected(signal);
          const connection = await link.use(`answers on ${subject}`, async (client) => client.connection);
          await answerOn(connection, subject, reply, signal);
        } catch (error) {
          if (!isAgentError(error) && !isAbort(error, signal)) throw error;
        }
        await clock.sleep(retryMs, signal).catch(() => {});
      }
    },
  };
}

/** Resolves once the connection is closed or `signal` aborts. */
async function answerOn(
  connection: NatsConnection,
  subject: string,
  reply: (data: Uint8Array) => Promise<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  const subscription = connection.subscribe(subject);
  const end = () => subscription.unsubscribe();
  signal.addEventListener("abort", end, { once: true });
  try {
    for await (const message of subscription)
      reply(message.data).then(
        (answer) => void message.respond(answer),
        () => {}, // without an answer the request times out and is repeated
      );
  } finally {
    signal.removeEventListener("abort", end);
  }
}
