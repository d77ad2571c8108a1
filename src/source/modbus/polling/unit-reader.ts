// Sends requests to one unit, with retries and suitable time-outs, and updates the unit's state.
import type { Runtime } from "../../../core/runtime.ts";
import { formatDuration } from "../../../lib/time/duration.ts";
import { consequenceOf } from "../config/pdu.ts";
import { places, type ReadBlock, type Span } from "../config/plan.ts";
import type { PollTarget, TagSpan } from "../config/tag-reads.ts";
import type { UnitBreaker } from "../connection/breaker.ts";
import type { ModbusConnection } from "../connection/modbus-connection.ts";
import { isResponsive, type Result } from "../connection/result.ts";

export type TagBlock = ReadBlock<TagSpan>;

export interface UnitReaderOptions {
  readonly target: PollTarget;
  /** Repetitions of an unanswered request. A unit that is down gets none. */
  readonly retries: number;
  readonly link: Pick<ModbusConnection, "read" | "isNearlyLost" | "unlikelyAfter">;
  /** Whether a request may wait beyond the time-out to detect a slow unit. Called before each such request. */
  readonly mayBePatient: () => boolean;
  /** Milliseconds that the link rests after an unanswered request. */
  readonly restMs: number;
  /** Shared with the unit's other polls. */
  readonly breaker: UnitBreaker;
}

/** The result of a request, and the link time that it took. */
export interface RequestResult {
  readonly result: Result;
  readonly ms: number;
}

type Silence = Extract<Result, { kind: "silence" }>;

/** Time-outs to wait for a unit that may be slow. */
const patience = 3;
const busyWaitMs = 200;
/** Limit per cycle for all blocks, so that a busy unit cannot take the time of several cycles. */
const busyRetries = 3;

export type UnitReader = ReturnType<typeof unitReader>;

export function unitReader(options: UnitReaderOptions, runtime: Runtime) {
  let busyLeft = busyRetries;
  /** Whether the unit has answered within its time-out. */
  let inTime = false;
  /** Response time of the last answer that came after the time-out. */
  let lastSlowMs: number | undefined;
  const probes = probeChoice(options.target.spans, runtime.random());

  function learn(block: TagBlock, result: Result): void {
    if (result.kind === "data") probes.answered(block);
    else if (result.kind !== "exception") probes.silent(block);
    if (result.kind === "silence" || result.kind === "contested") return;
    if (result.tookMs > options.target.timeoutMs) lastSlowMs = result.tookMs;
    else {
      inTime = true;
      lastSlowMs = undefined;
    }
  }

  async function probeWith(least: TagBlock, signal: AbortSignal, isShort = false): Promise<RequestResult> {
    const reply = await request(least, signal, true, isShort);
    if (isResponsive(reply.result)) succeeded();
    return reply;
  }

  /** Sends a request. Repeats it while the unit is busy, or if the answer may have been lost. */
  async function request(
    block: TagBlock,
    signal: AbortSignal,
    isProbe: boolean,
    isShort = false,
  ): Promise<RequestResult> {
    const { link, target, breaker } = options;
    const { table, start, count } = block;
    // The probe that decides whether the unit is down gets the full time-out.
    const isBrief = breaker.brief && (breaker.down !== undefined || !isProbe || isShort);
    const isPatient = isProbe && !isBrief && !inTime && options.mayBePatient();
    const shortMs = isBrief ? link.unlikelyAfter(target.timeoutMs) : target.timeoutMs;
    const timeoutMs = isPatient ? shortMs * patience : shortMs;
    let silentLeft = breaker.down === undefined ? options.retries : 0;
    try {
      for (;;) {
        const result = await link.read({ unit: target.unit, table, start, count }, timeoutMs, signal, isProbe);
        if (result.kind === "silence" && silentLeft-- > 0) continue;
        const busy = result.kind === "exception" && consequenceOf(result.code) === "busy";
        if (!busy || busyLeft === 0 || breaker.down !== undefined) {
          learn(block, result);
          return { result, ms: "tookMs" in result ? result.tookMs : timeoutMs };
        }
        busyLeft--;
        await runtime.clock.sleep(busyWaitMs, signal);
      }
    } catch (error) {
      breaker.cancelled();
      throw error;
    }
  }

  function succeeded(): void {
    const { breaker, target } = options;
    if (breaker.down !== undefined) runtime.log.info({ unit: target.unit }, "unit answers again");
    breaker.succeeded();
  }

  return {
    succeeded,
    begin(): void {
      busyLeft = busyRetries;
    },
    /** Why no request may be sent while the unit is down. Undefined if one may. */
    suspension(): string | undefined {
      const { breaker } = options;
      return breaker.admit() ? undefined : (breaker.down ?? "another request finds out whether the unit is back");
    },
    /**
     * Requests `block`, after a single value if one more silence would count as a failure of unit or connection.
     * `isOfUnit`: the value got no answer, so `block` was not requested.
     */
    async read(block: TagBlock, signal: AbortSignal): Promise<RequestResult & { readonly isOfUnit: boolean }> {
      const { breaker, link } = options;
      const least = breaker.isDoubtful || link.isNearlyLost ? probes.take() : undefined;
      const isOnly = least !== undefined && isSame(least, block);
      if (least && !isOnly) {
        const probed = await probeWith(least, signal);
        if (!isResponsive(probed.result) && probed.result.kind !== "contested") return { ...probed, isOfUnit: true };
      }
      return { ...(await request(block, signal, isOnly)), isOfUnit: false };
    },
    /** Requests a value of `within`, or the one most likely answered. `isShort`: short time-out after a silence. */
    async probe(signal: AbortSignal, within?: TagBlock, isShort = false): Promise<RequestResult> {
      return await probeWith(probes.take(within), signal, isShort);
    },
    failed(reason: string, ms: number): void {
      const { breaker, target } = options;
      if (breaker.failed(reason, ms + options.restMs)) runtime.log.warn({ unit: target.unit, reason }, "unit is down");
    },
    silence({ mismatch, lateMs, closed }: Pick<Silence, "mismatch" | "lateMs" | "closed">, ms: number): string {
      const { unit, timeoutMs } = options.target;
      if (closed !== undefined) return `unit ${unit} did not answer: ${closed}`;
      const again = ms < timeoutMs ? `, and now again not within ${formatDuration(Math.round(ms))}` : "";
      const silence = `unit ${unit} did not answer within ${formatDuration(timeoutMs)}${again}`;
      const slowMs = Math.max(lateMs ?? 0, lastSlowMs ?? 0);
      if (slowMs > 0) return `${silence}; ${slowAnswers(slowMs)}`;
      return mismatch === undefined ? silence : `${silence}; what came instead had ${mismatch}`;
    },
  };
}

/** Advice for late answers: `its answers take 1.3 s: raise timeout to 3s`. */
export function slowAnswers(ms: number): string {
  const tenths = Math.ceil(ms / 100);
  return `its answers take ${(tenths / 10).toFixed(1)} s: raise timeout to ${Math.ceil(tenths / 5)}s`;
}

/** Explains a time-out; to be appended to a message. */
export function cameInstead({ mismatch, lateMs }: Pick<Silence, "mismatch" | "lateMs">): string {
  if (lateMs !== undefined) return `; ${slowAnswers(lateMs)}`;
  if (mismatch === undefined) return "";
  return `; what came instead had ${mismatch.replace("replyUnit: any", "--reply-unit any, or replyUnit: any in a configuration,")}`;
}

function isSame(a: TagBlock, b: TagBlock): boolean {
  return a.table === b.table && a.start === b.start && a.count === b.count;
}

// Chooses the value whose answer shows that a unit is present. Pure.

/**
 * Prefers a value that was read, else tries all in turn: some devices ignore addresses that they lack.
 * `random`: start position from 0 to below 1, so that connections start differently.
 */
function probeChoice<Item extends Span>(items: readonly Item[], random: number) {
  /** One block for each value, to find one that the unit answers. Dropped after the first answer to save memory. */
  let byLength: readonly ReadBlock<Item>[] | undefined;
  let known: ReadBlock<Item> | undefined;
  let next: number = Math.floor(random * items.length);

  return {
    /** Returns the value to request, of `within` if given. */
    take(within?: ReadBlock<Item>): ReadBlock<Item> {
      if (known && within === undefined) return known;
      const choice = within ? places(within) : (byLength ??= places({ items }).toSorted((a, b) => a.count - b.count));
      return choice[next++ % choice.length]!; // a poll has at least one tag
    },
    answered(block: ReadBlock<Item>): void {
      byLength = undefined;
      if (known === undefined) known = places(block)[0];
    },
    silent(block: ReadBlock<Item>): void {
      if (known === block) known = undefined;
    },
  };
}
