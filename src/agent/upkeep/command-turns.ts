// Gives commands of any box their turns in the rate of the agent that delivers (`cluster/leases/request-gates.ts`).
import { setTimeout } from "node:timers/promises";
import type { RequestChannel } from "../../cluster/connection/jetstream.ts";
import { startWithinMs, type TurnAnswer, transitMs, turnRequest } from "../../cluster/leases/request-gates.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { RequestGate, RequestTurn } from "../../core/sink.ts";
import { orAbort } from "../../lib/flow/abort.ts";
import { Pacer, TurnFolder } from "../../upload/client/pacer.ts";
import { type Method, methods, requestLimits } from "../../wire/method.ts";

export interface CommandTurnsOptions {
  readonly channel: RequestChannel;
  readonly gate: RequestGate;
  /** Folder of the uploader's state, whose turns these are too. */
  readonly stateDir: string;
  readonly requestsPerSecond: number;
}

/** Commands that wait at once. Others wait until one of these has had its turn. */
const mostWaiting = 32;
/** A command that does not ask for this long has gone. */
const goneMs = 2_000;
/** The pacer's own gate: the lease is renewed when the command claims its turn. */
const open: RequestGate = { isOpen: true, pass: async () => {} };

interface Waiting {
  isReady: boolean;
  readonly claimed: PromiseWithResolvers<void>;
  readonly granted: PromiseWithResolvers<void>;
  readonly done: PromiseWithResolvers<void>;
}

/** Answers until `signal` aborts, then resolves. */
export async function giveTurns(
  { channel, gate, stateDir, requestsPerSecond }: CommandTurnsOptions,
  { clock, log }: Runtime,
  signal: AbortSignal,
): Promise<void> {
  using folder = new TurnFolder(stateDir, log);
  const pacers = new Map<Method, Pacer>();
  const waiting = new Map<string, Waiting>();

  function pacerOf(method: Method): Pacer {
    let pacer = pacers.get(method);
    const rate = Math.min(requestsPerSecond, requestLimits(method, "1.1").requestsPerSecond);
    if (!pacer) pacers.set(method, (pacer = new Pacer(clock, rate, folder.of(method), open)));
    return pacer;
  }

  /** The turn lasts until the answer, or as long as the request may take to be counted. */
  async function serve(one: Waiting, turn: RequestTurn | undefined): Promise<void> {
    one.isReady = true;
    await Promise.race([one.claimed.promise, clock.sleep(goneMs, signal)]);
    if (one.isReady) {
      one.isReady = false;
      return;
    }
    await orAbort(one.granted.promise, signal);
    await Promise.race([one.done.promise, clock.sleep(startWithinMs + transitMs, signal)]);
    // The interval starts now.
    turn?.start();
  }

  async function answerTo(request: Uint8Array): Promise<TurnAnswer> {
    const { id, method, done } = turnRequest.parse(JSON.parse(Buffer.from(request).toString("utf8")));
    const known = methods.find((each) => each === method);
    if (!known || known === "integration.insert") throw new Error(`no command calls ${method}`);
    let one = waiting.get(id);
    if (done) {
      one?.done.resolve();
      return "done";
    }
    if (!one) {
      if (waiting.size >= mostWaiting) return "wait";
      one = {
        isReady: false,
        claimed: Promise.withResolvers(),
        granted: Promise.withResolvers(),
        done: Promise.withResolvers(),
      };
      waiting.set(id, one);
      const mine = one;
      pacerOf(known)
        .run((turn) => serve(mine, turn), signal)
        .catch(() => {}) // the term is over
        .finally(() => waiting.delete(id));
      // A free turn begins within a moment: this saves the command a question.
      await setTimeout(0);
    }
    if (!one.isReady) return "wait";
    one.isReady = false;
    one.claimed.resolve();
    await gate.pass(signal);
    one.granted.resolve();
    return "go";
  }

  await channel.answer(async (request) => Buffer.from(await answerTo(request)), signal);
}
