// Admits requests to the service, so that all agents and commands share one rate: only the holder of the delivery lease
// sends, and commands take their turn from it.
//
//   old holder   renew ──700 ms──┊ no request starts after this
//   new holder          acquire ─── interval + 700 ms + 500 ms ───▶ first request
//
// The old holder's last renewal precedes the acquisition. Its last request starts at most 700 ms after this renewal was
// sent, and the service counts it at most 500 ms later, as the pacer assumes. Then the interval follows.
//
//   command    ask ─▶ wait    ask ─▶ wait    ask ──────────▶ go ── request ──┊      done ─▶
//   agent             queue           ready     renews the lease             ┊ next request of the method
//                                            └──── 700 ms: no later start ───┘
//
// The command starts its request within 700 ms of sending the question that was answered with `go`. The agent has renewed
// its lease after that, so a new holder, which waits longer, cannot send at the same time.
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { AgentError, isAgentError } from "../../core/errors.ts";
import type { Clock } from "../../core/runtime.ts";
import type { RequestGate } from "../../core/sink.ts";
import { orAbort } from "../../lib/flow/abort.ts";
import type { RequestChannel } from "../connection/jetstream.ts";
import type { LeaseTerm } from "./lease.ts";

export const startWithinMs = 700;
/** Maximum time from the start of a request until the service counts it; as in the pacer. */
export const transitMs = 500;
const renewAgainMs = 100;

/** `intervalMs`: interval between requests of the slowest method. */
export function leaseGate(term: LeaseTerm, intervalMs: number, clock: Clock): RequestGate {
  const opensAt = term.since + intervalMs + startWithinMs + transitMs;
  let renewedAt = Number.NEGATIVE_INFINITY;
  const isOpen = () => !term.signal.aborted && clock.monotonic() - renewedAt < startWithinMs;
  return {
    get isOpen() {
      return isOpen();
    },
    async pass(signal) {
      for (let wait = opensAt - clock.monotonic(); wait > 0; wait = opensAt - clock.monotonic())
        await clock.sleep(wait, signal);
      for (;;) {
        signal.throwIfAborted();
        try {
          const sentAt = await orAbort(term.renew(), signal);
          // The term is over: wait for the owner of the uploader to close it.
          if (sentAt === undefined) await orAbort(new Promise<never>(() => {}), signal);
          else renewedAt = sentAt;
          if (isOpen()) return;
        } catch (error) {
          if (!isAgentError(error)) throw error;
        }
        await clock.sleep(renewAgainMs, signal);
      }
    },
  };
}

/** Interval of asking while others have the turn. */
const askEveryMs = 150;
/** How long the delivering agent may be missing: a takeover takes about 10 s. */
const patienceMs = 20_000;

export const turnRequest = z.object({ id: z.string().max(64), method: z.string().max(64), done: z.boolean() });
const turnAnswer = z.enum(["wait", "go", "done"]);
export type TurnAnswer = z.output<typeof turnAnswer>;

/** The gate of one method for a command. Its `pass` rejects with `CLUSTER_UNREACHABLE` if no agent delivers. */
export function turnGate(method: string, channel: RequestChannel, clock: Clock): RequestGate {
  let askedAt = Number.NEGATIVE_INFINITY;
  let id = "";
  const ask = async (done: boolean) => {
    const answer = await channel.ask(Buffer.from(JSON.stringify({ id, method, done })));
    return turnAnswer.safeParse(Buffer.from(answer).toString("utf8")).data;
  };
  return {
    get isOpen() {
      return clock.monotonic() - askedAt < startWithinMs;
    },
    async pass(signal) {
      id = randomUUID();
      for (let heardAt = clock.monotonic(); ; ) {
        signal.throwIfAborted();
        const sentAt = clock.monotonic();
        try {
          const answer = await ask(false);
          heardAt = clock.monotonic();
          if (answer === "go") {
            askedAt = sentAt;
            return;
          }
        } catch (cause) {
          if (!isAgentError(cause)) throw cause;
          if (clock.monotonic() - heardAt > patienceMs)
            throw new AgentError("CLUSTER_UNREACHABLE", `no agent of the cluster gives a turn: ${cause.message}`, {
              cause,
              hint: "commands take their turn from the agent that delivers: start one, and check cluster.servers",
            });
        }
        await clock.sleep(askEveryMs, signal);
      }
    },
    done: () => void ask(true).catch(() => {}),
  };
}
