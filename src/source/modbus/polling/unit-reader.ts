// Asks one unit for blocks: again where that may help, briefly where it most likely does not, and keeps count of what it
// means for the unit.
import type { Runtime } from "../../../core/runtime.ts";
import { formatDuration } from "../../../lib/duration.ts";
import type { ReadRequest } from "../config/pdu.ts";
import { places, type ReadBlock, type Span } from "../config/plan.ts";
import type { PollTarget, Wanted } from "../config/wanted.ts";
import type { UnitBreaker } from "../connection/breaker.ts";
import { consequenceOf, isResponsive } from "../connection/exceptions.ts";
import type { Result } from "../connection/framing.ts";

export type WantedBlock = ReadBlock<Wanted>;

export interface UnitReaderOptions {
  readonly target: PollTarget;
  /** How often a request without an answer is repeated; a unit that is down gets no second chance. */
  readonly retries: number;
  /** Reads through the link; `conclusive` as in `ModbusConnection.read`. */
  readonly read: (request: ReadRequest, timeoutMs: number, signal: AbortSignal, conclusive: boolean) => Promise<Result>;
  /** As `ModbusConnection.isNearlyLost`. */
  readonly isNearlyLost: () => boolean;
  /** Whether the unit may be waited for beyond its time-out, to see whether it is slow; called for each time that is to happen. */
  readonly mayBePatient: () => boolean;
  /** Milliseconds that the link rests after a request without an answer. */
  readonly restMs: number;
  /** The time-out of a request that may be brief, from that of the unit. */
  readonly briefly: (timeoutMs: number) => number;
  /** The unit's, shared with its other polls. */
  readonly breaker: UnitBreaker;
}

/** What came of a request, and how many milliseconds it took of the link's time. */
export interface Asked {
  readonly result: Result;
  readonly ms: number;
}

type Silence = Extract<Result, { kind: "silence" }>;

/** Time-outs that are waited for a unit that may be slow. */
const patience = 3;
const busyWaitMs = 200;
/** In one cycle, whatever the number of blocks: a unit that stays busy must not take the time of several cycles. */
const busyRetries = 3;

export class UnitReader {
  readonly #options: UnitReaderOptions;
  readonly #runtime: Runtime;
  readonly #probes: ProbeChoice<Wanted>;
  #busyLeft = busyRetries;
  /** Whether the unit answered anything within its time-out. */
  #inTime = false;
  /** How long an answer took that was waited for beyond it. */
  #slowMs: number | undefined;

  constructor(options: UnitReaderOptions, runtime: Runtime) {
    this.#options = options;
    this.#runtime = runtime;
    this.#probes = new ProbeChoice(options.target.wanted, runtime.random());
  }

  /** A cycle begins. */
  begin(): void {
    this.#busyLeft = busyRetries;
  }

  /** Why `block` is not to be asked for now, since the unit is down; undefined: it may be. */
  notNow(): string | undefined {
    const { breaker } = this.#options;
    return breaker.admit() ? undefined : (breaker.down ?? "another request finds out whether the unit is back");
  }

  /**
   * Asks for `block`; before that for one value, where unit or connection would count as lost with one more silence.
   * `isOfUnit`: that was not answered, so that the result says nothing of `block`, which was not asked for.
   */
  async ask(block: WantedBlock, signal: AbortSignal): Promise<Asked & { readonly isOfUnit: boolean }> {
    const { breaker, isNearlyLost } = this.#options;
    const least = breaker.isDoubtful || isNearlyLost() ? this.#probes.take() : undefined;
    const isOnly = least !== undefined && isSame(least, block);
    if (least && !isOnly) {
      const probed = await this.#probe(least, signal);
      if (!isResponsive(probed.result) && probed.result.kind !== "contested") return { ...probed, isOfUnit: true };
    }
    return { ...(await this.#request(block, signal, isOnly)), isOfUnit: false };
  }

  /**
   * Asks for one value: of `within`, or the one most likely to be answered. Resolves with what came of it. `isGlance`: after a
   * silence it is not waited for longer than the link's answers take.
   */
  async probe(signal: AbortSignal, within?: WantedBlock, isGlance = false): Promise<Asked> {
    return await this.#probe(this.#probes.take(within), signal, isGlance);
  }

  succeeded(): void {
    const { breaker, target } = this.#options;
    if (breaker.down !== undefined) this.#runtime.log.info({ unit: target.unit }, "unit answers again");
    breaker.succeeded();
  }

  failed(reason: string, ms: number): void {
    const { breaker, target } = this.#options;
    if (breaker.failed(reason, ms + this.#options.restMs))
      this.#runtime.log.warn({ unit: target.unit, reason }, "unit is down");
  }

  /** What came says nothing of the unit. */
  contested(): void {
    this.#options.breaker.cancelled();
  }

  /** That the unit did not answer, in words. */
  silence({ mismatch, lateMs, closed }: Pick<Silence, "mismatch" | "lateMs" | "closed">, ms: number): string {
    const { unit, timeoutMs } = this.#options.target;
    if (closed !== undefined) return `unit ${unit} did not answer: ${closed}`;
    const again = ms < timeoutMs ? `, and now again not within ${formatDuration(Math.round(ms))}` : "";
    const silence = `unit ${unit} did not answer within ${formatDuration(timeoutMs)}${again}`;
    const slowMs = Math.max(lateMs ?? 0, this.#slowMs ?? 0);
    if (slowMs > 0) return `${silence}; ${slowAnswers(slowMs)}`;
    return mismatch === undefined ? silence : `${silence}; what came instead had ${mismatch}`;
  }

  #learn(block: WantedBlock, result: Result): void {
    if (result.kind === "data") this.#probes.answered(block);
    else if (result.kind !== "exception") this.#probes.silent(block);
    if (result.kind === "silence" || result.kind === "contested") return;
    if (result.tookMs > this.#options.target.timeoutMs) this.#slowMs = result.tookMs;
    else {
      this.#inTime = true;
      this.#slowMs = undefined;
    }
  }

  async #probe(least: WantedBlock, signal: AbortSignal, isGlance = false): Promise<Asked> {
    const asked = await this.#request(least, signal, true, isGlance);
    if (isResponsive(asked.result)) this.succeeded();
    return asked;
  }

  /** Asks, and asks again while the unit says that it is busy, or where an answer may have been lost on the way. */
  async #request(block: WantedBlock, signal: AbortSignal, isProbe: boolean, isGlance = false): Promise<Asked> {
    const { read, target, breaker } = this.#options;
    const { table, start, count } = block;
    // The probe that decides whether the unit is down is given all the time there is.
    const isBrief = breaker.brief && (breaker.down !== undefined || !isProbe || isGlance);
    const isPatient = isProbe && !isBrief && !this.#inTime && this.#options.mayBePatient();
    const shortMs = isBrief ? this.#options.briefly(target.timeoutMs) : target.timeoutMs;
    const timeoutMs = isPatient ? shortMs * patience : shortMs;
    let silentLeft = breaker.down === undefined ? this.#options.retries : 0;
    try {
      for (;;) {
        const result = await read({ unit: target.unit, table, start, count }, timeoutMs, signal, isProbe);
        if (result.kind === "silence" && silentLeft-- > 0) continue;
        const busy = result.kind === "exception" && consequenceOf(result.code) === "busy";
        if (!busy || this.#busyLeft === 0 || breaker.down !== undefined) {
          this.#learn(block, result);
          return { result, ms: "tookMs" in result ? result.tookMs : timeoutMs };
        }
        this.#busyLeft--;
        await this.#runtime.clock.sleep(busyWaitMs, signal);
      }
    } catch (error) {
      breaker.cancelled();
      throw error;
    }
  }
}

/** What to do about answers that come so long after their request: `its answers take 1.3 s: raise timeout to 3s`. */
export function slowAnswers(ms: number): string {
  const tenths = Math.ceil(ms / 100);
  return `its answers take ${(tenths / 10).toFixed(1)} s: raise timeout to ${Math.ceil(tenths / 5)}s`;
}

/** Text that explains a time-out to a person, appended to what did not answer. */
export function cameInstead({ mismatch, lateMs }: Pick<Silence, "mismatch" | "lateMs">): string {
  if (lateMs !== undefined) return `; ${slowAnswers(lateMs)}`;
  if (mismatch === undefined) return "";
  return `; what came instead had ${mismatch.replace("replyUnit: any", "--reply-unit any, or replyUnit: any in a configuration,")}`;
}

function isSame(a: WantedBlock, b: WantedBlock): boolean {
  return a.table === b.table && a.start === b.start && a.count === b.count;
}

// Which value is asked for to see whether a unit is there at all. Pure.

/**
 * The value that was read last; where it is not answered any more, one after the other: some devices are silent about an
 * address that they do not have, and that must not make a unit seem dead.
 */
export class ProbeChoice<Item extends Span> {
  readonly #items: readonly Item[];
  /** One block for each value, to find one that the unit answers. Dropped after the first answer to save memory. */
  #places: readonly ReadBlock<Item>[] | undefined;
  #next: number;
  #known: ReadBlock<Item> | undefined;

  /** `random`: where to begin, from 0 to below 1, so that another connection begins elsewhere. */
  constructor(items: readonly Item[], random: number) {
    this.#items = items;
    this.#next = Math.floor(random * items.length);
  }

  /** What to ask for now; of `within` where that is given. */
  take(within?: ReadBlock<Item>): ReadBlock<Item> {
    if (this.#known && within === undefined) return this.#known;
    const choice = within
      ? places(within)
      : (this.#places ??= places({ items: this.#items }).toSorted((a, b) => a.count - b.count));
    return choice[this.#next++ % choice.length]!; // a poll has at least one tag
  }

  /** The unit gave `block`. */
  answered(block: ReadBlock<Item>): void {
    this.#places = undefined;
    if (this.#known === undefined) this.#known = places(block)[0];
  }

  /** The unit was silent about `block`. */
  silent(block: ReadBlock<Item>): void {
    if (this.#known === block) this.#known = undefined;
  }
}
