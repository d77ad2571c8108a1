// The terms in which this agent delivers for its cluster: lease, request gate, and reader of the shared stream.

import { setTimeout } from "node:timers/promises";
import { openStreamReader } from "../../buffer/jetstream/stream-reader.ts";
import type { KeyBucket, PointStream, RequestChannel } from "../../cluster/connection/jetstream.ts";
import { acquireLease, deliveryLease } from "../../cluster/leases/lease.ts";
import {
  leaseGate,
  startWithinMs,
  type TurnAnswer,
  transitMs,
  turnRequest,
} from "../../cluster/leases/request-gates.ts";
import { AgentError } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { RequestGate, RequestTurn } from "../../core/sink.ts";
import { orAbort } from "../../lib/flow/abort.ts";
import { repeat } from "../../lib/flow/repeat.ts";
import { Pacer, TurnFolder } from "../../upload/client/pacer.ts";
import { type Method, methods, requestLimits } from "../../wire/method.ts";
import type { DeliveryTerm } from "./delivery.ts";

export interface ClusterTermsOptions {
  readonly stream: PointStream;
  readonly leases: KeyBucket;
  readonly state: KeyBucket;
  readonly node: string;
  readonly ttlMs: number;
  /** Interval between two requests of the slowest method. */
  readonly intervalMs: number;
  /** False: the operator has drained this agent, or only other agents reach the service. */
  readonly mayLead: () => boolean;
}

/** Interval of checking whether this agent may still deliver. */
const checkEveryMs = 500;

/** Resolves once this agent has the lease and the stream is open. Rejects with server errors or `signal.reason`. */
export async function openClusterTerm(
  { stream, leases, state, node, ttlMs, intervalMs, mayLead }: ClusterTermsOptions,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<Required<DeliveryTerm>> {
  await using opened = new AsyncDisposableStack();
  // A former holder whose entry is gone sends nothing: it renews the lease before each request.
  const lease = { bucket: leases, key: deliveryLease, node, ttlMs, ifMissing: "take" } as const;
  const term = await acquireLease(lease, runtime, signal, mayLead);
  opened.defer(() => term.release());
  const { generation } = term;
  const drained = new AbortController();
  const over = AbortSignal.any([term.signal, drained.signal]);
  const ending = AbortSignal.any([signal, over]);
  const reader = opened.use(
    await openStreamReader({ stream, state, generation }, runtime, ending).catch((cause: unknown) => {
      if (signal.aborted || !over.aborted) throw cause;
      throw new AgentError("CLUSTER_FENCED", "the term was over before the stream was open", { cause });
    }),
  );
  const reason = "the operator has drained this agent, or it does not reach the service";
  const obey = () => {
    if (!mayLead()) drained.abort(new Error(reason));
  };
  const failure = "it is not checked any more whether this agent may deliver";
  opened.use(repeat(obey, { everyMs: checkEveryMs, first: "now", failure }, runtime));
  const owned = opened.move();
  return {
    reader,
    gate: leaseGate(term, intervalMs, runtime.clock),
    signal: over,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

// Whether the service accepts connections of this agent, so that in a cluster an agent delivers that reaches it.
//
//   holder    delivery fails   x x x  "not reached"                        lease released
//   another                           o o o  "reached"  ── heartbeat ──▶              takes the lease
//
// Nothing is examined while delivery works. If no agent reaches the service, the holder keeps the lease: passing it on
// would gain nothing, and would hide since when delivery fails.

export interface ServiceReachParts {
  /** Whether this agent delivers and reports that the service is unreachable. */
  readonly isFailing: () => boolean;
  /** Whether another agent of the cluster does not reach the service. */
  readonly isAsked: () => boolean;
  /** Whether the service accepts a connection now. Rejects with `signal.reason` only. */
  readonly connects: (signal: AbortSignal) => Promise<boolean>;
}

export type ServiceReach = ReturnType<typeof serviceReach>;

const everyMs = 5_000;
/** Equal results in a row that count: a service that restarts is there for one agent a little earlier than for another. */
const enough = 3;

export function serviceReach({ isFailing, isAsked, connects }: ServiceReachParts, runtime: Runtime) {
  /** Successes in a row, or failures as a negative number. */
  let streak = 0;
  const reaches = () => (Math.abs(streak) < enough ? undefined : streak > 0);

  async function examine(signal: AbortSignal): Promise<void> {
    const before = reaches();
    if (!isFailing() && !isAsked() && before !== false) {
      streak = 0;
      return;
    }
    const isThere = await connects(signal);
    streak = isThere ? Math.max(streak, 0) + 1 : Math.min(streak, 0) - 1;
    if (before !== false && reaches() === false)
      runtime.log.warn(
        { part: "cluster" },
        "this agent cannot reach the service; another one that can delivers instead",
      );
    if (before === false && isThere) runtime.log.info({ part: "cluster" }, "this agent can reach the service again");
  }

  const failure = "it is not examined any more whether the service can be reached";
  const examining = repeat(examine, { everyMs, first: "later", failure }, runtime);
  return {
    /** Undefined: not examined, or the latest results differ. */
    get reaches(): boolean | undefined {
      return reaches();
    },
    [Symbol.asyncDispose]: () => examining[Symbol.asyncDispose](),
  };
}

// Gives commands of any box their turns in the rate of the agent that delivers (`cluster/leases/request-gates.ts`).

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
