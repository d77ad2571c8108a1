// One request and its answer on one connection, with a deadline.
import { AgentError } from "../../../core/errors.ts";
import { epochMicros } from "../../../core/point.ts";
import type { Clock } from "../../../core/runtime.ts";
import { answerIn, dataBytes, type UnitRequest } from "../config/pdu.ts";
import type { Framing } from "../framing/framing.ts";
import type { ByteStream } from "../transport/byte-stream.ts";
import type { LineRest } from "../transport/serial-stream.ts";
import { requestEncoder } from "./request-encoder.ts";
import type { Exchange, Result, TimedOut } from "./result.ts";

interface Pending {
  received: boolean;
  /** The PDU of the answer was complete at monotonic time `at`. */
  answered(pdu: Uint8Array, at: number): void;
  /** An answer came and is held: see `Framing.settlesAt`. */
  held(at: number): void;
  /** The stream has ended: settles a held answer. */
  ended(): void;
  fail(error: unknown): void;
}

/** Longest wait for a line to become quiet. */
const longestRestMs = 2_000;

/** Attempts at a request whose answer cannot be distinguished from one to another master. */
const mostAttempts = 4;

/** The longest wait for a slow unit, in time-outs. */
export const slowestTimeouts = 8;
/** Factor by which an answer may take longer than the previous one. */
export const unsteadiness = 1.2;

/**
 * Exchanges frames over `stream`, which it owns. `rest`: for lines that cannot be reopened after a time-out. `timedOut`:
 * time-outs of earlier connections to a bus, whose answers may still come. `pauseMs`: before a follow-up request.
 */
export function streamExchange(
  stream: ByteStream,
  framing: Framing,
  clock: Clock,
  rest?: LineRest,
  timedOut: TimedOut = new Map(),
  pauseMs = 0,
): Exchange {
  const encode = requestEncoder();
  let pending: Pending | undefined;
  let lost: AgentError | undefined;
  let stale = false;
  let receivedAt = Number.NEGATIVE_INFINITY;
  let expiredAt: number | undefined;
  let endedAt = Number.NEGATIVE_INFINITY;
  let longestTimeoutMs = 0;
  /** Unit → shortest duration of a late answer. */
  const lateMs = new Map<number, number>();
  /** Since when an answer is held back, and when the last frame came. */
  let held: { readonly since: number; readonly lastAt: number } | undefined;
  const lose = (error: AgentError) => {
    lost ??= error;
    // The answer to the pending request may come on the next connection.
    if (pending) framing.abandon();
    pending?.fail(lost);
  };

  const retire = () => {
    stale = true;
    lost ??= new AgentError(
      "SOURCE_UNREACHABLE",
      "the connection was closed because a late answer may still come on it",
    );
    void stream[Symbol.asyncDispose]();
  };

  stream.listen({
    data(chunk) {
      if (lost) return;
      receivedAt = clock.monotonic();
      if (pending) pending.received = true;
      const discardedBefore = framing.discarded;
      const lateBefore = framing.late.count;
      let answer: Uint8Array | undefined;
      try {
        answer = framing.receive(chunk);
      } catch (error) {
        lose(error instanceof AgentError ? error : new AgentError("SOURCE_PROTOCOL", String(error), { cause: error }));
        void stream[Symbol.asyncDispose]();
        return;
      }
      if (framing.late.count > lateBefore) noteLate(framing.late.unit);
      // Noise is not a frame and must not extend the hold.
      if (framing.holding && (!held || framing.discarded > discardedBefore))
        held = { since: held?.since ?? receivedAt, lastAt: receivedAt };
      if (answer) pending?.answered(answer, receivedAt);
      else if (framing.settlesAt !== undefined) pending?.held(receivedAt);
    },
    closed(error) {
      // Some device servers answer and close. The held answer is then final.
      pending?.ended();
      lose(error);
    },
  });

  const ofLate = (unit: number, now: number) =>
    (timedOut.get(unit) ?? []).filter((sentAt) => now - sentAt <= slowestTimeouts * longestTimeoutMs);

  /** A late answer arrived, to the last request to `unit` that timed out or to an earlier one. */
  const noteLate = (unit: number) => {
    const sentAt = ofLate(unit, receivedAt).at(-1);
    if (sentAt !== undefined)
      lateMs.set(unit, Math.min(lateMs.get(unit) ?? Number.POSITIVE_INFINITY, receivedAt - sentAt));
  };

  /** Wait beyond the deadline for a held answer. If it is late, the next one takes about as long. */
  const nextAnswerMs = (unit: number) => {
    const [before] = held ? ofLate(unit, held.since) : [];
    if (!held || before === undefined || !framing.holding) return 0;
    const until = held.lastAt + (held.since - before) * unsteadiness;
    return Math.min(until, held.since + slowestTimeouts * longestTimeoutMs) - clock.monotonic();
  };

  const distinct = (request: UnitRequest) => (framing.distinct ? framing.distinct(request) : request);

  /** When a line has come to rest after a time-out. */
  const restsAt = () =>
    rest && expiredAt !== undefined
      ? Math.min(Math.max(receivedAt + rest.quietMs, expiredAt + rest.guardMs), expiredAt + longestRestMs)
      : Number.NEGATIVE_INFINITY;

  /** How long to delay `sent`, which has waited since `since`. */
  const waitMs = (sent: UnitRequest, since: number) => {
    const clearAt = Math.min(framing.clearAt?.(sent, since) ?? since, since + longestRestMs);
    return Math.max(clearAt, restsAt(), endedAt + pauseMs) - clock.monotonic();
  };

  const attempt = (request: UnitRequest, timeoutMs: number, signal: AbortSignal) =>
    new Promise<Result | "contested">((resolve, reject) => {
      if (lost || signal.aborted) {
        reject(lost ?? signal.reason);
        return;
      }
      const pdu = encode(request);
      const abort = () => {
        framing.abandon();
        current.fail(signal.reason);
      };
      const later = (ms: number, then: () => void) => {
        waiting ??= new AbortController();
        clock.sleep(ms, waiting.signal).then(then, () => {});
      };
      // See `whenClear`.
      const afterSockets = (then: () => void) => void (overdue = setImmediate(then));
      const expire = () => {
        if (pending !== current || framing.settlesAt !== undefined) return;
        const wait = nextAnswerMs(request.unit);
        if (wait > 0) {
          later(wait, expire);
          return;
        }
        const answer = framing.expire();
        if (answer) {
          current.answered(answer, receivedAt);
          return;
        }
        expiredAt = clock.monotonic();
        if (!framing.abandon()) retire();
        timedOut.set(request.unit, [...ofLate(request.unit, sentAt), sentAt]);
        const { mismatch } = framing;
        settle({ kind: "silence", mismatch, received: current.received, lateMs: lateMs.get(request.unit) });
      };
      const settleHeld = () => {
        if (pending !== current || answeredAt === undefined) return;
        const answer = framing.settle?.();
        if (answer) current.answered(answer, answeredAt);
        else settle("contested");
      };
      const finish = () => {
        clearTimeout(timer);
        clearImmediate(overdue);
        waiting?.abort();
        signal.removeEventListener("abort", abort);
        pending = undefined;
        endedAt = clock.monotonic();
        stream.awaiting?.(false);
      };
      const settle = (result: Result | "contested") => {
        finish();
        if (result === "contested" || result.kind !== "silence") timedOut.delete(request.unit);
        resolve(result);
      };
      const current: Pending = {
        received: false,
        answered(pdu, completeAt) {
          // A held answer arrived earlier.
          const at = epochMicros(clock.now() - Math.round((clock.monotonic() - completeAt) * 1_000));
          settle({ ...answerIn(pdu, request), at, tookMs: Math.max(0, completeAt - sentAt) });
        },
        held(at) {
          if (answeredAt !== undefined) return;
          answeredAt = at;
          later((framing.settlesAt ?? at) - clock.monotonic(), () => afterSockets(settleHeld));
        },
        ended: settleHeld,
        fail(error) {
          finish();
          reject(error);
        },
      };
      let overdue: NodeJS.Immediate | undefined;
      let waiting: AbortController | undefined;
      let answeredAt: number | undefined;
      const sentAt = clock.monotonic();
      longestTimeoutMs = Math.max(longestTimeoutMs, timeoutMs);
      held = undefined;
      expiredAt = undefined;
      const timer = setTimeout(() => afterSockets(expire), timeoutMs);
      signal.addEventListener("abort", abort, { once: true });
      pending = current;
      stream.awaiting?.(true);
      stream.write(framing.begin(request, pdu));
    });

  /** Resolves with the result of `choose` once it may be sent. */
  const whenClear = async (choose: () => UnitRequest | undefined, signal: AbortSignal) => {
    const since = clock.monotonic();
    let sent = choose();
    while (sent && waitMs(sent, since) > 0) {
      await clock.sleep(waitMs(sent, since), signal);
      // Timers run before sockets. Read pending bytes first, as they may change the choice.
      await new Promise<void>((resolve) => void setImmediate(resolve));
      sent = choose();
    }
    return sent;
  };

  /** Confirms the answer to `sent` if necessary. Undefined if the answer stands. */
  const confirm = async (sent: UnitRequest, timeoutMs: number, signal: AbortSignal) => {
    const confirmation = framing.confirmation?.(sent);
    if (!confirmation) return undefined;
    await whenClear(() => confirmation, signal);
    const isAsked = lost === undefined;
    const result = await attempt(confirmation, timeoutMs, signal).catch((error: unknown) => {
      if (signal.aborted) throw error;
      return isAsked ? ("closed" as const) : ("lost" as const);
    });
    const silence = typeof result === "object" && result.kind === "silence" ? result : undefined;
    const outcome = silence ? "silent" : typeof result === "object" ? "answered" : result;
    return framing.isConfirmed?.(outcome) ? silence : "contested";
  };

  return {
    resync(request) {
      const sent = distinct(request);
      return sent && framing.resync(sent);
    },
    get lost() {
      return lost;
    },
    get stale() {
      return stale;
    },
    get discarded() {
      return framing.discarded;
    },
    get receivedAt() {
      return receivedAt;
    },
    async run(request, timeoutMs, signal) {
      for (let left = mostAttempts; left > 0; left--) {
        let sent = distinct(request);
        // Without a pause, send at once.
        if (sent && waitMs(sent, clock.monotonic()) > 0) sent = await whenClear(() => distinct(request), signal);
        if (!sent) return { kind: "contested", always: true };
        const result = await attempt(sent, timeoutMs, signal);
        if (result === "contested") continue;
        const unconfirmed = result.kind === "data" ? await confirm(sent, timeoutMs, signal) : undefined;
        if (unconfirmed === "contested") continue;
        if (unconfirmed) return unconfirmed;
        const answer = result.kind === "data" || result.kind === "exception" ? result : undefined;
        if (framing.refusesMore?.(sent, request, answer)) continue;
        if (result.kind !== "data" || sent === request) return result;
        return { ...result, bytes: cutOut(result.bytes, sent, request) };
      }
      return { kind: "contested", always: false };
    },
    async [Symbol.asyncDispose]() {
      lose(new AgentError("SOURCE_UNREACHABLE", "the connection was closed"));
      await stream[Symbol.asyncDispose]();
    },
  };
}

/** The part of the answer to `sent` that answers `request`. */
function cutOut(bytes: Uint8Array, sent: UnitRequest, request: UnitRequest): Uint8Array {
  if ("identity" in sent || "identity" in request) return bytes;
  const from = dataBytes({ ...request, count: request.start - sent.start });
  return bytes.subarray(from, from + dataBytes(request));
}
