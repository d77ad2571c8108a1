// Polls one unit at one interval. Every tag gets a reading in each cycle, even on failure.

import type { EpochMicros } from "../../../core/point.ts";
import type { ReadingBatch } from "../../../core/reading.ts";
import type { Runtime } from "../../../core/runtime.ts";
import { modiconNumber } from "../config/address.ts";
import { consequenceOf, describeException } from "../config/pdu.ts";
import { plan, split } from "../config/plan.ts";
import type { PollTarget } from "../config/tag-reads.ts";
import { describeContested, isResponsive, type Result } from "../connection/result.ts";
import type { DeviceQuirks } from "./device-quirks.ts";
import { decodeBlock, failedReadings } from "./readings.ts";
import { FailureRuns, failuresToSplit, isTimeToSplit, LengthSearch, type Refusals, refusedBlocks } from "./refusals.ts";
import { timeOfReply } from "./schedule.ts";
import {
  type RequestResult,
  type TagBlock,
  type UnitReader,
  type UnitReaderOptions,
  unitReader,
} from "./unit-reader.ts";

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
  #blocks: readonly TagBlock[];
  #plannedAt: number;
  readonly #refusals: Refusals;
  readonly #silences = new FailureRuns();
  readonly #given = new WeakSet<TagBlock>();
  /** Exceptions that do not depend on the address. */
  readonly #faults = new FailureRuns();
  /** Keeps the halves of a block, so that their state is not learned again. */
  readonly #halves = new WeakMap<TagBlock, readonly TagBlock[]>();

  constructor(options: PollOptions, runtime: Runtime) {
    this.#options = options;
    this.#runtime = runtime;
    this.#unit = unitReader(options, runtime);
    this.#refusals = refusedBlocks(runtime.clock);
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
    const blocks: TagBlock[] = [];
    for (const block of this.#blocks)
      blocks.push(...(await this.#judge(block, await this.#attempt(block, signal), cycle)));
    this.#blocks = blocks;
  }

  /** Requests `block` if permitted. `search`: the unit ignores a longer block. */
  async #attempt(block: TagBlock, signal: AbortSignal, search?: LengthSearch): Promise<Attempt> {
    const refused = this.#refusals.reason(block);
    if (refused !== undefined) return { notRequested: refused };
    if (search && split(block) && search.isTooLong(block.count)) return "too long";
    const suspension = this.#unit.suspension();
    if (suspension !== undefined) return { notRequested: suspension };
    if (search?.mayBeGone) {
      const reply = await this.#unit.probe(signal);
      if (!isResponsive(reply.result)) return { ...reply, isOfUnit: true };
      search.unitAnswered();
    }
    const reply = await this.#unit.read(block, signal);
    if (reply.isOfUnit) return reply;
    if (reply.result.kind === "silence") search?.silent(block.count);
    else if (reply.result.kind === "data") search?.answered(block.count);
    return reply;
  }

  /** Adds a reading for each item of `block`. Returns the blocks to request instead of it from now on. */
  async #judge(block: TagBlock, attempt: Attempt, cycle: Cycle, search?: LengthSearch): Promise<readonly TagBlock[]> {
    const fail = (reason: string) => {
      cycle.into.push(failedReadings(block, reason, cycle.slot));
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
      const silences = this.#silences.add(block);
      // Examine a block that was never answered at once, so that readable tags do not stay bad.
      const isNew = silences === 1 && !this.#given.has(block);
      if (!isNew && silences < failuresToSplit) return fail(reason);
      const isThere = isNew
        ? split(block) && isResponsive((await this.#unit.probe(cycle.signal, block, true)).result)
        : await this.#answersWithin(block, cycle.signal, isResponsive);
      if (!isThere) return fail(isNew ? reason : this.#refuse(block, reason, false));
      const again = isNew ? await this.#attempt(block, cycle.signal) : attempt;
      // The unit may have been switched on just now.
      if (!isSilent(again)) return this.#judge(block, again, cycle);
      return this.#fetchHalves(block, reason, cycle, new LengthSearch());
    }
    if (result.kind === "contested") {
      this.#unit.contested();
      const reason = describeContested(result);
      // Shorter blocks have other reply lengths.
      return result.always && !isOfUnit && split(block)
        ? this.#fetchHalves(block, reason, cycle, search)
        : fail(reason);
    }
    if (result.kind === "data") {
      this.#unit.succeeded();
      this.#given.add(block);
      this.#refusals.lift(block);
      this.#silences.end(block);
      this.#faults.end(block);
      cycle.into.push(decodeBlock(block, result.bytes, timeOfReply(this.#options.time, cycle.slot, result)));
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
  async #answersWithin(block: TagBlock, signal: AbortSignal, isAnswer: (result: Result) => boolean): Promise<boolean> {
    if (!split(block)) return false;
    for (let i = 0; i < triedValues; i++) if (isAnswer((await this.#unit.probe(signal, block)).result)) return true;
    return false;
  }

  /** Whether the unit fails for `block` and may succeed for less. */
  async #isOfBlock(block: TagBlock, signal: AbortSignal, search?: LengthSearch): Promise<boolean> {
    if (search) return split(block) !== undefined;
    if (!isTimeToSplit(this.#faults.add(block))) return false;
    return await this.#answersWithin(block, signal, ({ kind }) => kind === "data");
  }

  /**
   * Splits a block that the device refuses. If a part succeeds, the split is kept and remembered. If every part is
   * refused, `block` is not polled for a while; `forLong` if the device will never have it.
   */
  async #fetchHalves(
    block: TagBlock,
    reason: string,
    cycle: Cycle,
    search?: LengthSearch,
    forLong = false,
  ): Promise<readonly TagBlock[]> {
    const { slot, into, signal } = cycle;
    const halves = this.#halves.get(block) ?? split(block) ?? [];
    this.#halves.set(block, halves);
    const [, second] = halves;
    const readings: ReadingBatch[] = [];
    const blocks: TagBlock[] = [];
    // Request both before either is split: this shows whether the length or an address is the cause.
    const attempts: (readonly [half: TagBlock, Attempt])[] = [];
    for (const half of halves) attempts.push([half, await this.#attempt(half, signal, search)]);
    for (const [half, attempt] of attempts)
      blocks.push(...(await this.#judge(half, attempt, { ...cycle, into: readings }, search)));
    if (second && readings.some(isGood)) {
      into.push(...readings);
      this.#options.quirks.add(this.target.unit, { table: block.table, address: second.start });
      return blocks;
    }
    // A half that failed for another reason may exist. Request the whole block in the next poll.
    const refused = halves.every((half) => this.#refusals.reason(half) !== undefined);
    into.push(...(refused ? [failedReadings(block, this.#refuse(block, reason, forLong), slot)] : readings));
    return [block];
  }

  /** Stops polling `block` for a while. Returns the reason for its readings. */
  #refuse(block: TagBlock, why: string, forLong: boolean): string {
    const reason = `${why} (${block.table}:${block.start}, ${modiconNumber({ table: block.table, address: block.start })})`;
    if (this.#refusals.add(block, reason, { forLong }))
      this.#runtime.log.warn(
        { unit: this.target.unit, address: block.items[0]?.values[0]?.address, reason },
        "address refused",
      );
    return reason;
  }

  /** Refusals and failures end with it, as they are those of the blocks before. */
  #replan(): void {
    const now = this.#runtime.clock.monotonic();
    if (now - this.#plannedAt < replanMs) return;
    this.#plannedAt = now;
    this.#blocks = this.#plan();
  }

  #plan(): readonly TagBlock[] {
    const { target, quirks } = this.#options;
    return plan(target.spans, { ...target.limits, cuts: quirks.cuts(target.unit) });
  }
}

function isGood({ values, apart }: ReadingBatch): boolean {
  return values.some((_, i) => (apart?.get(i)?.quality ?? "good") === "good");
}

function isSilent(attempt: Attempt): boolean {
  return typeof attempt === "object" && "result" in attempt && !attempt.isOfUnit && attempt.result.kind === "silence";
}
