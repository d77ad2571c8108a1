// Polls one unit at one interval. Every tag gets a reading in each cycle, even on failure.

import type { EpochMicros } from "../../../core/point.ts";
import type { ReadingBatch } from "../../../core/reading.ts";
import type { Runtime } from "../../../core/runtime.ts";
import { modiconNumber } from "../config/address.ts";
import { consequenceOf, describeException } from "../config/pdu.ts";
import { plan } from "../config/plan.ts";
import type { PollTarget } from "../config/tag-reads.ts";
import { describeContested, isResponsive, type Result } from "../connection/result.ts";
import type { DeviceQuirks } from "./device-quirks.ts";
import { failuresToSplit, isTimeToSplit, LengthSearch, PolledBlock } from "./polled-block.ts";
import { decodeBlock, failedReadings } from "./readings.ts";
import { timeOfReply } from "./schedule.ts";
import { type RequestResult, type UnitReader, type UnitReaderOptions, unitReader } from "./unit-reader.ts";

export interface PollOptions extends UnitReaderOptions {
  /** `poll`: see `timeOfReply`; `reply`: when the reply was complete. */
  readonly time: "poll" | "reply";
  readonly quirks: Pick<DeviceQuirks, "cuts" | "add">;
}

/** The result for a block, or why it was not requested. */
type Attempt = (RequestResult & { readonly isOfUnit: boolean }) | { readonly notRequested: string } | "too long";

interface Cycle {
  readonly slot: EpochMicros;
  readonly into: ReadingBatch[];
  readonly signal: AbortSignal;
}

/** Interval after which split blocks are planned again, as the device may have changed. */
const replanMs = 86_400_000;
/** Values of a silent block that are tested before it is left alone. */
const triedValues = 2;

export class Poll {
  readonly #options: PollOptions;
  readonly #runtime: Runtime;
  readonly #unit: UnitReader;
  #blocks: readonly PolledBlock[];
  #plannedAt: number;

  constructor(options: PollOptions, runtime: Runtime) {
    this.#options = options;
    this.#runtime = runtime;
    this.#unit = unitReader(options, runtime);
    this.#blocks = this.#plan();
    this.#plannedAt = runtime.clock.monotonic();
  }

  get target(): PollTarget {
    return this.#options.target;
  }

  /** Requests per cycle with the current blocks. */
  get requests(): number {
    return this.#blocks.length;
  }

  /**
   * Adds one reading per tag to `into`. Rejects with `SOURCE_*` if the link is lost, or with `signal.reason`; `into`
   * then holds the readings so far.
   */
  async cycle(slot: EpochMicros, into: ReadingBatch[], signal: AbortSignal): Promise<void> {
    this.#replan();
    this.#unit.begin();
    const cycle = { slot, into, signal };
    const blocks: PolledBlock[] = [];
    for (const block of this.#blocks)
      blocks.push(...(await this.#judge(block, await this.#attempt(block, signal), cycle)));
    this.#blocks = blocks;
  }

  /** Requests `block` if permitted. `search`: the unit ignores a longer block. */
  async #attempt(block: PolledBlock, signal: AbortSignal, search?: LengthSearch): Promise<Attempt> {
    const { count } = block.block;
    const refused = block.refusal(this.#runtime.clock.monotonic());
    if (refused !== undefined) return { notRequested: refused };
    if (search && block.halves.length > 0 && search.isTooLong(count)) return "too long";
    const suspension = this.#unit.suspension();
    if (suspension !== undefined) return { notRequested: suspension };
    if (search?.mayBeGone) {
      const reply = await this.#unit.probe(signal);
      if (!isResponsive(reply.result)) return { ...reply, isOfUnit: true };
      search.unitAnswered();
    }
    const reply = await this.#unit.read(block.block, signal);
    if (reply.isOfUnit) return reply;
    if (reply.result.kind === "silence") search?.silent(count);
    else if (reply.result.kind === "data") search?.answered(count);
    return reply;
  }

  /** Adds a reading for each item of `block`. Returns the blocks to request instead of it from now on. */
  async #judge(
    block: PolledBlock,
    attempt: Attempt,
    cycle: Cycle,
    search?: LengthSearch,
  ): Promise<readonly PolledBlock[]> {
    const fail = (reason: string) => {
      cycle.into.push(failedReadings(block.block, reason, cycle.slot));
      return [block];
    };
    if (attempt === "too long")
      return this.#fetchHalves(
        block,
        this.#unit.silence({ mismatch: undefined }, this.target.timeoutMs),
        cycle,
        search,
      );
    if ("notRequested" in attempt) return fail(attempt.notRequested);
    const { result, ms, isOfUnit } = attempt;
    if (result.kind === "silence") {
      const reason = this.#unit.silence(result, ms);
      // During a length search, the silence of a long block says nothing about the unit. If another poll found the unit
      // down meanwhile, this request was its probe and must be reported as failed.
      if (search && !isOfUnit && this.#options.breaker.down === undefined)
        return this.#fetchHalves(block, reason, cycle, search);
      this.#unit.failed(reason, ms);
      if (isOfUnit || this.#options.breaker.down !== undefined) return fail(reason);
      block.silences++;
      // Examine a block that was never answered at once, so that readable tags do not stay bad.
      const isNew = block.silences === 1 && !block.hasGivenData;
      if (!isNew && block.silences < failuresToSplit) return fail(reason);
      const isThere = isNew
        ? block.halves.length > 0 && isResponsive((await this.#unit.probe(cycle.signal, block.block, true)).result)
        : await this.#answersWithin(block, cycle.signal, isResponsive);
      if (!isThere) return fail(isNew ? reason : this.#refuse(block, reason, false));
      const again = isNew ? await this.#attempt(block, cycle.signal) : attempt;
      // The unit may have been switched on just now.
      if (!isSilent(again)) return this.#judge(block, again, cycle);
      return this.#fetchHalves(block, reason, cycle, new LengthSearch());
    }
    if (result.kind === "contested") {
      this.#options.breaker.cancelled();
      const reason = describeContested(result);
      // Shorter blocks have other reply lengths.
      return result.always && !isOfUnit && block.halves.length > 0
        ? this.#fetchHalves(block, reason, cycle, search)
        : fail(reason);
    }
    if (result.kind === "data") {
      this.#unit.succeeded();
      block.answered();
      cycle.into.push(decodeBlock(block.block, result.bytes, timeOfReply(this.#options.time, cycle.slot, result)));
      return [block];
    }

    const reason = describeException(result.code);
    const consequence = consequenceOf(result.code);
    if (!isResponsive(result)) {
      this.#unit.failed(reason, ms);
      return fail(reason);
    }
    this.#unit.succeeded();
    if (isOfUnit) return fail(reason);
    if (consequence === "split" || consequence === "unsupported")
      return this.#fetchHalves(block, reason, cycle, search, consequence === "unsupported");
    if (consequence === "fault" && (await this.#isOfBlock(block, cycle.signal, search)))
      return this.#fetchHalves(block, reason, cycle, search ?? new LengthSearch());
    return fail(reason);
  }

  /** Whether the unit answers values within `block`. Tries several, as the first may be the cause. */
  async #answersWithin(
    block: PolledBlock,
    signal: AbortSignal,
    isAnswer: (result: Result) => boolean,
  ): Promise<boolean> {
    if (block.halves.length === 0) return false;
    for (let i = 0; i < triedValues; i++)
      if (isAnswer((await this.#unit.probe(signal, block.block)).result)) return true;
    return false;
  }

  /** Whether the unit fails for `block` and may succeed for less. */
  async #isOfBlock(block: PolledBlock, signal: AbortSignal, search?: LengthSearch): Promise<boolean> {
    if (search) return block.halves.length > 0;
    if (!isTimeToSplit(++block.faults)) return false;
    return await this.#answersWithin(block, signal, ({ kind }) => kind === "data");
  }

  /**
   * Splits a block that the device refuses. If a part succeeds, the split is kept and remembered. If every part is
   * refused, `block` is not polled for a while; `forLong` if the device will never have it.
   */
  async #fetchHalves(
    block: PolledBlock,
    reason: string,
    cycle: Cycle,
    search?: LengthSearch,
    forLong = false,
  ): Promise<readonly PolledBlock[]> {
    const { slot, into, signal } = cycle;
    const { halves } = block;
    const [, second] = halves;
    const readings: ReadingBatch[] = [];
    const blocks: PolledBlock[] = [];
    // Request both before either is split: this shows whether the length or an address is the cause.
    const attempts: (readonly [half: PolledBlock, Attempt])[] = [];
    for (const half of halves) attempts.push([half, await this.#attempt(half, signal, search)]);
    for (const [half, attempt] of attempts)
      blocks.push(...(await this.#judge(half, attempt, { ...cycle, into: readings }, search)));
    if (second && readings.some(isGood)) {
      into.push(...readings);
      this.#options.quirks.add(this.target.unit, { table: second.block.table, address: second.block.start });
      return blocks;
    }
    // A half that failed for another reason may exist. Request the whole block in the next poll.
    const refused = halves.every((half) => half.refusal(this.#runtime.clock.monotonic()) !== undefined);
    into.push(...(refused ? [failedReadings(block.block, this.#refuse(block, reason, forLong), slot)] : readings));
    return [block];
  }

  /** Stops polling `block` for a while. Returns the reason for its readings. */
  #refuse(block: PolledBlock, why: string, forLong: boolean): string {
    const { table, start, items } = block.block;
    const reason = `${why} (${table}:${start}, ${modiconNumber({ table, address: start })})`;
    const { clock, log } = this.#runtime;
    if (block.refuse(reason, forLong, clock.monotonic()))
      log.warn({ unit: this.target.unit, address: items[0]?.values[0]?.address, reason }, "address refused");
    return reason;
  }

  /** Refusals and failures end with it, as they are those of the blocks before. */
  #replan(): void {
    const now = this.#runtime.clock.monotonic();
    if (now - this.#plannedAt < replanMs) return;
    this.#plannedAt = now;
    this.#blocks = this.#plan();
  }

  #plan(): readonly PolledBlock[] {
    const { target, quirks } = this.#options;
    const blocks = plan(target.spans, { ...target.limits, cuts: quirks.cuts(target.unit) });
    return blocks.map((block) => new PolledBlock(block));
  }
}

function isGood({ values, apart }: ReadingBatch): boolean {
  return values.some((_, i) => (apart?.get(i)?.quality ?? "good") === "good");
}

function isSilent(attempt: Attempt): boolean {
  return typeof attempt === "object" && "result" in attempt && !attempt.isOfUnit && attempt.result.kind === "silence";
}
