// One unit at one interval: asks for its blocks, and gives a reading for every tag, whatever happens.
import type { EpochMicros } from "../../core/point.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { Reading } from "../../core/source.ts";
import { formatDuration } from "../../lib/duration.ts";
import { modiconNumber } from "./address.ts";
import type { Breaker } from "./breaker.ts";
import { consequenceOf, describeException, isAlive } from "./exceptions.ts";
import type { Result } from "./exchange.ts";
import { FailureRuns, failuresToSplit, isTimeToSplit } from "./failure-runs.ts";
import type { ReadRequest } from "./pdu.ts";
import type { Block, Cut } from "./plan.ts";
import { cheapest, plan, split } from "./plan.ts";
import { decodeBlock, failedReadings } from "./readings.ts";
import { Refusals } from "./refusals.ts";
import { timeOfReply } from "./schedule.ts";
import type { PollTarget, Wanted } from "./wanted.ts";

export interface PollOptions {
  readonly target: PollTarget;
  /** `poll`: as `timeOfReply` says; `reply`: when the reply was complete. */
  readonly time: "poll" | "reply";
  /** How often a request without an answer is repeated; a unit that is down gets no second chance. */
  readonly retries: number;
  /** Reads through the link. */
  readonly read: (request: ReadRequest, timeoutMs: number, signal: AbortSignal) => Promise<Result>;
  /** Milliseconds that the link rests after a request without an answer. */
  readonly restMs: number;
  /** The time-out of a probe that may be brief, from that of the unit. */
  readonly briefly: (timeoutMs: number) => number;
  /** The unit's, shared with its other polls. */
  readonly breaker: Breaker;
  /** What the unit taught of itself, before and now. */
  readonly learned: { cuts(): readonly Cut[]; add(cut: Cut): void };
}

type WantedBlock = Block<Wanted>;
interface Asked {
  readonly result: Result;
  /** Milliseconds that were waited for the answer at most. */
  readonly ms: number;
}

const busyWaitMs = 200;
/** In one cycle, whatever the number of blocks: a unit that stays busy must not take the time of several cycles. */
const busyRetries = 3;
/** A plan that was split is made anew so often: the device may have been changed. */
const replanMs = 86_400_000;

export class Poll {
  readonly #options: PollOptions;
  readonly #runtime: Runtime;
  #blocks: readonly WantedBlock[];
  #plannedAt: number;
  readonly #refusals: Refusals;
  #busyLeft = busyRetries;
  readonly #silences = new FailureRuns();
  /** Exceptions that say nothing of an address. */
  readonly #faults = new FailureRuns();
  /** The same halves whenever a block is split, so that what is known of them is not learned again. */
  readonly #halves = new WeakMap<WantedBlock, readonly WantedBlock[]>();

  constructor(options: PollOptions, runtime: Runtime) {
    this.#options = options;
    this.#runtime = runtime;
    this.#refusals = new Refusals(runtime.clock);
    this.#blocks = this.#plan();
    this.#plannedAt = runtime.clock.monotonic();
  }

  get target(): PollTarget {
    return this.#options.target;
  }

  /** Requests of one cycle, as far as is known now. */
  get requests(): number {
    return this.#blocks.length;
  }

  /**
   * Reads everything once: adds one reading for each tag to `into`. Rejects with `SOURCE_*` when the link is lost, or
   * with `signal.reason`; what was read until then is in `into`.
   */
  async cycle(slot: EpochMicros, into: Reading[], signal: AbortSignal): Promise<void> {
    this.#planAnew();
    this.#busyLeft = busyRetries;
    const blocks: WantedBlock[] = [];
    for (const block of this.#blocks) blocks.push(...(await this.#fetch(block, slot, into, signal)));
    this.#blocks = blocks;
  }

  /** Adds a reading for each item of `block`; gives the blocks to ask for instead of it from now on. */
  async #fetch(
    block: WantedBlock,
    slot: EpochMicros,
    into: Reading[],
    signal: AbortSignal,
    search?: "shorter",
  ): Promise<readonly WantedBlock[]> {
    const { breaker } = this.#options;
    const fail = (reason: string) => {
      into.push(...failedReadings(block, reason, slot));
      return [block];
    };
    const refused = this.#refusals.reason(block);
    if (refused !== undefined) return fail(refused);
    if (!breaker.admit()) return fail(breaker.down ?? "another request finds out whether the unit is back");

    const probe = breaker.down === undefined ? block : cheapest(block);
    let asked = await this.#ask(probe, signal);
    if (probe !== block && isAlive(asked.result)) {
      this.#succeeded();
      asked = await this.#ask(block, signal);
    }
    const { result, ms } = asked;
    if (result.kind === "silence") {
      const reason = this.#silence(result.mismatch, ms);
      // While a length is looked for that a unit answers to, what is too long says nothing of the unit.
      if (search) return this.#fetchHalves(block, reason, slot, into, signal, search);
      this.#failed(reason, ms);
      const silences = this.#silences.add(block);
      if (silences < failuresToSplit || breaker.down !== undefined) return fail(reason);
      const least = cheapest(block);
      if (least === block || !isAlive((await this.#ask(least, signal)).result))
        return fail(this.#refuse(block, reason, false));
      this.#succeeded();
      return this.#fetchHalves(block, reason, slot, into, signal, "shorter");
    }
    if (result.kind === "data") {
      this.#succeeded();
      this.#refusals.lift(block);
      this.#silences.end(block);
      this.#faults.end(block);
      into.push(...decodeBlock(block, result.bytes, timeOfReply(this.#options.time, slot, result)));
      return [block];
    }

    const reason = describeException(result.code);
    const consequence = consequenceOf(result.code);
    if (!isAlive(result)) {
      this.#failed(reason, ms);
      return fail(reason);
    }
    this.#succeeded();
    if (consequence === "split") return this.#fetchHalves(block, reason, slot, into, signal, search);
    if (consequence === "unsupported") return fail(this.#refuse(block, reason, true));
    if (consequence === "fault" && (await this.#isOfBlock(block, signal, search)))
      return this.#fetchHalves(block, reason, slot, into, signal, "shorter");
    return fail(reason);
  }

  /** Whether the unit fails over all of `block` and perhaps not over less. */
  async #isOfBlock(block: WantedBlock, signal: AbortSignal, search?: "shorter"): Promise<boolean> {
    const least = cheapest(block);
    if (search || least === block) return least !== block;
    if (!isTimeToSplit(this.#faults.add(block))) return false;
    return (await this.#ask(least, signal)).result.kind === "data";
  }

  /** Asks for less at once. Where that gives anything, it stays so, and is remembered; where all is refused, `block` is left alone for a while. */
  async #fetchHalves(
    block: WantedBlock,
    reason: string,
    slot: EpochMicros,
    into: Reading[],
    signal: AbortSignal,
    search?: "shorter",
  ): Promise<readonly WantedBlock[]> {
    const halves = this.#halves.get(block) ?? split(block) ?? [];
    this.#halves.set(block, halves);
    const [, second] = halves;
    const readings: Reading[] = [];
    const blocks: WantedBlock[] = [];
    for (const half of halves) blocks.push(...(await this.#fetch(half, slot, readings, signal, search)));
    if (second && readings.some((reading) => reading.quality === "good")) {
      into.push(...readings);
      this.#options.learned.add({ table: block.table, address: second.start });
      return blocks;
    }
    // What failed for another reason may be there: the whole is asked for again with the next poll.
    const refused = halves.every((half) => this.#refusals.reason(half) !== undefined);
    into.push(...(refused ? failedReadings(block, this.#refuse(block, reason, false), slot) : readings));
    return [block];
  }

  /** Asks, and asks again while the unit says that it is busy, or where an answer may have been lost on the way. */
  async #ask({ table, start, count }: WantedBlock, signal: AbortSignal): Promise<Asked> {
    const { read, target, breaker } = this.#options;
    const timeoutMs = breaker.brief ? this.#options.briefly(target.timeoutMs) : target.timeoutMs;
    let silentLeft = breaker.down === undefined ? this.#options.retries : 0;
    try {
      for (;;) {
        const result = await read({ unit: target.unit, table, start, count }, timeoutMs, signal);
        if (result.kind === "silence" && silentLeft-- > 0) continue;
        const busy = result.kind === "exception" && consequenceOf(result.code) === "busy";
        if (!busy || this.#busyLeft === 0)
          return { result, ms: result.kind === "silence" ? timeoutMs : target.timeoutMs };
        this.#busyLeft--;
        await this.#runtime.clock.sleep(busyWaitMs, signal);
      }
    } catch (error) {
      breaker.cancelled();
      throw error;
    }
  }

  #succeeded(): void {
    const { breaker, target } = this.#options;
    if (breaker.down !== undefined) this.#runtime.log.info({ unit: target.unit }, "unit answers again");
    breaker.succeeded();
  }

  #failed(reason: string, ms: number): void {
    const { breaker, target } = this.#options;
    if (breaker.failed(reason, ms + this.#options.restMs))
      this.#runtime.log.warn({ unit: target.unit, reason }, "unit is down");
  }

  /** Leaves `block` alone for a while. Gives the reason for its readings. */
  #refuse(block: WantedBlock, why: string, forLong: boolean): string {
    const reason = `${why} (${block.table}:${block.start}, ${modiconNumber({ table: block.table, address: block.start })})`;
    if (this.#refusals.add(block, reason, { forLong }))
      this.#runtime.log.warn(
        { unit: this.target.unit, address: block.items[0]?.values[0]?.address, reason },
        "address refused",
      );
    return reason;
  }

  #silence(mismatch: string | undefined, ms: number): string {
    const { unit, timeoutMs } = this.target;
    const again = ms < timeoutMs ? `, and now again not within ${formatDuration(Math.round(ms))}` : "";
    const silence = `unit ${unit} did not answer within ${formatDuration(timeoutMs)}${again}`;
    return mismatch === undefined ? silence : `${silence}; what came instead had ${mismatch}`;
  }

  #planAnew(): void {
    const now = this.#runtime.clock.monotonic();
    if (now - this.#plannedAt < replanMs) return;
    this.#plannedAt = now;
    this.#blocks = this.#plan();
    this.#refusals.liftAll();
    this.#silences.endAll();
    this.#faults.endAll();
  }

  #plan(): readonly WantedBlock[] {
    const { target, learned } = this.#options;
    return plan(target.wanted, { ...target.limits, cuts: learned.cuts() });
  }
}
