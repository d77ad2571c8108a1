// Requests with answers, and messages to all agents, on subjects of NATS.
import type { Msg } from "@nats-io/transport-node";
import { isAgentError } from "../../core/errors.ts";
import type { Clock } from "../../core/runtime.ts";
import { isAbort } from "../../lib/flow/abort.ts";
import type { Broadcast, RequestChannel } from "./jetstream.ts";
import { isRefused, type NatsLink } from "./nats-connection.ts";

const answerWithinMs = 3_000;
const retryMs = 500;
/** The servers forbid the subject. The connection logs why. */
const refusedMs = 30_000;

/** `integration` is part of the subject, so that integrations do not meet. The caller owns `link`. */
export function natsRequests(link: Subscribed["link"], integration: string, clock: Clock): RequestChannel {
  const subject = `tagferry.turns.${integration}`;
  return {
    ask: (data) =>
      link.use(`request to ${subject}`, async ({ connection }) => {
        const { data: answer } = await connection.request(subject, data, { timeout: answerWithinMs });
        return answer;
      }),
    answer(reply, signal) {
      const take = (message: Msg) =>
        reply(message.data).then(
          (answer) => void message.respond(answer),
          () => {}, // without an answer the request times out and is repeated
        );
      return eachMessage({ link, subject, clock }, take, signal);
    },
  };
}

/** Heartbeats of the members. As `natsRequests`. */
export function natsHeartbeats(link: Subscribed["link"], integration: string, clock: Clock): Broadcast {
  const subject = `tagferry.members.${integration}`;
  return {
    send(data) {
      link.use(`message to ${subject}`, async ({ connection }) => connection.publish(subject, data)).catch(() => {});
    },
    listen: (take, signal) => eachMessage({ link, subject, clock }, ({ data }) => take(data), signal),
  };
}

interface Subscribed {
  readonly link: Pick<NatsLink, "connected" | "use">;
  readonly subject: string;
  readonly clock: Clock;
}

/** Subscribes at each connection. Resolves when `signal` aborts. */
async function eachMessage(
  { link, subject, clock }: Subscribed,
  take: (message: Msg) => void,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    let waitMs = retryMs;
    try {
      await link.connected(signal);
      const subscription = await link.use(`messages on ${subject}`, async ({ connection }) =>
        connection.subscribe(subject),
      );
      const end = () => subscription.unsubscribe();
      signal.addEventListener("abort", end, { once: true });
      if (signal.aborted) end();
      try {
        for await (const message of subscription) take(message);
      } finally {
        signal.removeEventListener("abort", end);
      }
    } catch (error) {
      if (isRefused(error)) waitMs = refusedMs;
      else if (!isAgentError(error) && !isAbort(error, signal)) throw error;
    }
    await clock.sleep(waitMs, signal).catch(() => {});
  }
}
