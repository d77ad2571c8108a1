// How a command takes its turn in the rate that the agents share. It asks the agent that delivers, until that one says go.
//
//   command    ask ─▶ wait    ask ─▶ wait    ask ──────────▶ go ── request ──┊      done ─▶
//   agent             queue           ready     renews the lease             ┊ next request of the method
//                                            └──── 700 ms: no later start ───┘
//
// The command starts its request within 700 ms of sending the question that was answered with `go`. The agent has renewed
// its lease after that, so a new holder, which waits longer, cannot send at the same time (`lease-gate.ts`).
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { AgentError, isAgentError } from "../core/errors.ts";
import type { Clock } from "../core/runtime.ts";
import type { RequestGate } from "../core/sink.ts";
import type { RequestChannel } from "./jetstream.ts";
import { startWithinMs } from "./lease-gate.ts";

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
