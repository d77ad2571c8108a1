// The mapping of one source: the way of each reading through its tag's converter, range, quality policy and report.

import type { Ambiguity } from "../core/driver.ts";
import { type EpochMicros, epochMicros, type InputId, type Point, type PointBatch } from "../core/point.ts";
import type { ReadingBatch, ReadPlace } from "../core/reading.ts";
import type { Runtime } from "../core/runtime.ts";
import type { SignalCatalog } from "../core/signal.ts";
import type { Captures, Delivery, Description, FoundAddress, Reading, TagId } from "../core/source.ts";
import { RateLimitedLog } from "../lib/rate-limited-log.ts";
import { readingAt, timeAt } from "../lib/reading-batch.ts";
import { Converter, MappingCounters, type ReadingFailure } from "./convert.ts";
import { AddressBinding, type AddressMemory, InputOwners, RefusedState } from "./input-owners.ts";
import { InputNumbers, InputState, ReportState } from "./input-state.ts";
import { signalOf } from "./input-template.ts";
import type { InputWatch, Mapping, RefusedInput, TagState, TimeFaults } from "./mapping.ts";
import type { TagRule } from "./options.ts";
import { PointColumnsWriter } from "./point-columns.ts";
import { Reporter } from "./report.ts";
import { type Processing, TagInputs, type TagInputsParts } from "./tag-inputs.ts";
import { lastTime, lastValue, TimeFaultFinder, tagState, unreadTag } from "./tag-state.ts";

/** Most refusals that `refusals` gives. */
const maxRefusals = 100;
/** An arrival this far before the previous one means that the clock was set back: a million readings read together span as much. */
const clockStepUs = 1_000_000;

export interface MappingParts {
  /** Name of the source, for logs and counters. */
  readonly source: string;
  /** `TagId` is the index in here. */
  readonly rules: readonly TagRule[];
  readonly catalog: SignalCatalog;
  /** Who uses which Input ID, shared by all sources of an agent. Without it, inputs are unique within this source only. */
  readonly owners?: InputOwners;
  /** Without it, the address that feeds an Input ID is chosen again after each start. */
  readonly addresses?: AddressMemory | undefined;
  /** The tags whose addresses can come to one Input ID (`Driver.ambiguity`). */
  readonly ambiguities?: ReadonlyMap<TagId, Ambiguity> | undefined;
  /** Told of every input that begins or ends to give nothing usable. */
  readonly watch?: InputWatch;
}

/** Ready when it returns. */
export function openMapping(parts: MappingParts, runtime: Runtime): Mapping {
  return new SourceMapping(parts, runtime);
}

/** See `Mapping`. */
class SourceMapping implements Mapping {
  readonly #source: string;
  readonly #runtime: Runtime;
  readonly #catalog: SignalCatalog;
  readonly #owners: InputOwners;
  readonly #watch: InputWatch | undefined;
  readonly #tags: readonly TagInputs[];
  readonly #addresses: AddressBinding;
  readonly #reporter: Reporter;
  readonly #log: RateLimitedLog;
  readonly #timeFaults: TimeFaultFinder;
  readonly #counters;
  /** As the clock says. */
  #extraMicros = 0;
  /** Points of the call that is running, which go to `#columns` where there are any. */
  #points: Point[] = [];
  #columns: PointColumnsWriter | undefined;
  /** By list of places: the inputs that they feed. Undefined: not known yet, or none. */
  readonly #plans = new WeakMap<readonly ReadPlace[], (InputState | undefined)[]>();

  constructor(parts: MappingParts, runtime: Runtime) {
    const { source, rules, catalog, owners, watch, addresses, ambiguities = new Map() } = parts;
    this.#source = source;
    this.#runtime = runtime;
    this.#catalog = catalog;
    this.#watch = watch;
    this.#owners = owners ?? new InputOwners();
    this.#log = new RateLimitedLog(runtime);
    this.#timeFaults = new TimeFaultFinder(this.#log);
    this.#reporter = new Reporter((state, time, value) => this.#emit(state, time, value));
    this.#addresses = new AddressBinding({
      source,
      memory: addresses,
      ambiguities,
      refused: (refused) => this.#tellRefused(refused),
    });
    this.#counters = new MappingCounters(source, runtime.metrics);
    // The position in `rules` is the identity of a tag.
    const ready = this.#readyMaker(rules.length);
    this.#tags = rules.map((rule, index) => ready(rule, index as TagId));
    for (const tag of this.#tags) tag.claimFixed();
    for (const { tag, input, address } of addresses?.inputs() ?? []) {
      const of = this.#tags[tag];
      if (of) this.#owners.reserve({ input, address, of, reserved: true });
    }
  }

  map(delivery: Parameters<Mapping["map"]>[0]): readonly Point[] {
    this.#mapAll(delivery, (nowMs) => {
      for (const reading of delivery.readings) this.#read(reading, nowMs);
    });
    return this.#taken();
  }

  mapBatches(delivery: Parameters<Mapping["mapBatches"]>[0], batches: readonly ReadingBatch[]): PointBatch {
    const columns = new PointColumnsWriter(batches.reduce((sum, { values }) => sum + values.length, 0));
    this.#columns = columns;
    try {
      this.#mapAll(delivery, (nowMs) => {
        for (const batch of batches) this.#readBatch(batch, nowMs);
      });
    } finally {
      this.#columns = undefined;
    }
    return columns;
  }

  #mapAll({ descriptions, alive }: Pick<Delivery, "descriptions" | "alive">, read: (nowMs: number) => void): void {
    for (const description of descriptions) this.#describe(description);
    const nowMs = this.#runtime.clock.monotonic();
    this.#extraMicros = this.#runtime.clock.extraMicros ?? 0;
    read(nowMs);
    if (alive === true) this.#beat(nowMs);
    this.#counters.add();
  }

  due(): readonly Point[] {
    this.#reporter.release(this.#runtime.clock.monotonic());
    return this.#taken();
  }

  get nextDue(): number | undefined {
    return this.#reporter.nextDue;
  }

  flush(): readonly Point[] {
    this.#reporter.release(Number.POSITIVE_INFINITY);
    return this.#taken();
  }

  claim(addresses: Iterable<FoundAddress>): void {
    for (const { tag: id, captures, address } of addresses) {
      const tag = this.#tags[id];
      const state = tag?.find(captures);
      if (!(state instanceof InputState) || tag?.shared === true) continue;
      if (state.boundTo === "") this.#addresses.bind(state, address);
      else if (state.boundTo !== address) this.#addresses.refuse(state, address, 0);
    }
  }

  reconnected(): void {
    this.#reporter.interrupt();
  }

  tags(): readonly TagState[] {
    return this.tagsIn(0, Number.POSITIVE_INFINITY).tags;
  }

  tagsIn(first: number, count: number): { readonly total: number; readonly tags: readonly TagState[] } {
    const tags: TagState[] = [];
    let total = 0;
    for (const tag of this.#tags) {
      const { size } = tag;
      const own = Math.max(1, size);
      if (total + own > first && tags.length < count) {
        const from = Math.max(0, first - total);
        const room = count - tags.length;
        if (size === 0) tags.push(unreadTag(tag.id, tag.rule));
        // A tag may have 100,000 inputs: nothing is made of those that are not asked for.
        else for (const state of tag.inputs().drop(from).take(room)) tags.push(tagState(state));
      }
      total += own;
    }
    return { total, tags };
  }

  values(most: number, each: (input: string, value: number | undefined) => void): number {
    let count = 0;
    const of = (state: InputState) => {
      count++;
      each(state.input, lastValue(state));
    };
    for (const tag of this.#tags) {
      if (count >= most) break;
      const { only, size, rule } = tag;
      if (only instanceof InputState) of(only);
      else if (size > 0) for (const state of tag.inputs().take(most - count)) of(state);
      else {
        count++;
        each(rule.input, undefined);
      }
    }
    return count;
  }

  inputOf(tag: TagId, captures: Captures, address?: string): InputId | undefined {
    const state = this.#tags[tag]?.find(captures);
    return state instanceof InputState && !isSecond(state, address) ? state.input : undefined;
  }

  refusals(): readonly RefusedInput[] {
    const refused = [...this.#addresses.list()];
    for (const tag of this.#tags)
      if (!(tag.only instanceof InputState)) for (const state of tag.refusals()) refused.push(state.describe());
    return refused.slice(0, maxRefusals);
  }

  timeFaults(): TimeFaults {
    return this.#timeFaults.list(this.#runtime.clock.monotonic());
  }

  refusalOf(tag: TagId, captures: Captures, address: string): RefusedInput | undefined {
    const state = this.#tags[tag]?.find(captures);
    return state instanceof RefusedState ? state.describe() : state && this.#addresses.find(state, address);
  }

  [Symbol.dispose](): void {
    this.#owners.release(this.#source);
  }

  /** Tags whose readings are processed alike share what does it: there may be 100,000 of them. */
  #readyMaker(tags: number): (rule: TagRule, id: TagId) => TagInputs {
    const known = new Map<string, Processing>();
    const parts: TagInputsParts = {
      source: this.#source,
      numbers: new InputNumbers(tags),
      claim: (state) => this.#owners.claim(state),
      opened: (state, tag, captures) => this.#open(state, tag, captures),
      refused: (state) => this.#tellRefused(state.describe()),
      contested: (state) => this.#addresses.contested(state),
    };
    return (rule, id) => {
      const { values, scale, offset, valid, align: alignMs } = rule;
      const report = rule.report === "off" ? undefined : rule.report;
      const reported = report && { heartbeat: report.heartbeat, minIntervalUs: (report.minInterval ?? 0) * 1_000 };
      const alignUs = (alignMs ?? 0) * 1_000;
      const key = JSON.stringify([values, scale, offset, valid, reported, alignUs]);
      const processing = known.get(key) ?? { converter: new Converter(rule), report: reported, alignUs };
      known.set(key, processing);
      return new TagInputs(id, rule, processing, parts);
    };
  }

  #read(reading: Reading, nowMs: number): void {
    const tag = this.#tags[reading.tag];
    const state = tag?.find(reading.captures);
    if (!tag || !(state instanceof InputState)) return this.#withoutInput(state, reading, nowMs);
    const { rule } = tag;
    const { converter } = tag.processing;
    const { value: raw, quality } = reading;
    // One comparison of references for most readings: drivers give the same string again.
    const isBound = reading.address === state.boundTo;
    if (!isBound && this.#isSecond(state, reading)) return;
    state.readings++;
    if (raw === undefined) return this.#fail(state, reading, "noValue", reading.reason ?? "the device gives no value");
    const value = converter.convert(raw, state.states);
    if (converter.failure !== undefined) return this.#fail(state, reading, converter.failure, converter.reason);
    if (quality === "bad" && rule.badQuality === "drop")
      return this.#fail(state, reading, "badQuality", reading.reason ?? "the device says that the value is bad", value);
    if (!isBound) {
      // The next ones of a shared tag may have another address.
      if (rule.shared) state.address = reading.address;
      else this.#addresses.bind(state, reading.address);
    }
    this.#take(state, tag, reading, value, nowMs);
  }

  /** Maps good values of the bound address without an object for each; any other value is mapped as a single reading. */
  #readBatch(batch: ReadingBatch, nowMs: number): void {
    const { places, rows, values, booleans, apart, clock } = batch;
    const plan = this.#planOf(places);
    const given = { time: epochMicros(0), clock, quality: "good", reason: undefined, historical: false } as const;
    const current: { -readonly [K in keyof Given]: Given[K] } = given;
    for (let i = 0; i < values.length; i++) {
      const row = rows ? rows[i]! : i;
      const state = (plan[row] ??= this.#inputAt(places[row]));
      const tag = state && this.#tags[state.tag];
      if (!state || !tag || apart?.has(i) || places[row]?.address !== state.boundTo) {
        this.#read(readingAt(batch, i), nowMs);
        continue;
      }
      const { converter } = tag.processing;
      const raw = values[i]!;
      state.readings++;
      const value = converter.convert(booleans ? raw === 1 : raw, state.states);
      if (converter.failure !== undefined) {
        this.#fail(state, readingAt(batch, i), converter.failure, converter.reason);
        continue;
      }
      current.time = timeAt(batch, i);
      this.#take(state, tag, current, value, nowMs);
    }
  }

  #planOf(places: readonly ReadPlace[]): (InputState | undefined)[] {
    let plan = this.#plans.get(places);
    if (!plan) this.#plans.set(places, (plan = Array.from<InputState | undefined>({ length: places.length })));
    return plan;
  }

  #inputAt(place: ReadPlace | undefined): InputState | undefined {
    const state = place && this.#tags[place.tag]?.find(place.captures);
    return state instanceof InputState ? state : undefined;
  }

  /** A usable value: whether and when it becomes a point. */
  #take(state: InputState, { processing }: TagInputs, reading: Given, value: number, nowMs: number): void {
    const { clock, quality, historical } = reading;
    if (processing.converter.rounded) this.#tellRounding(state);
    const taken = clock === "agent" ? this.#arrivalTime(state, reading.time) : reading.time;
    const aligned = align(taken, processing.alignUs);
    const time = clock === "agent" && this.#extraMicros > 0 ? apart(aligned, this.#extraMicros) : aligned;
    if (historical) return this.#emit(state, time, value);
    if (state.failing) {
      state.failing = false;
      this.#watch?.recovered(state.input, reading.time);
    }
    if (taken !== state.time) state.repeated?.advance();
    else if (value !== state.value) this.#timeFaults.add(state, nowMs);
    state.value = value;
    state.time = taken;
    state.quality = quality;
    state.reason = reading.reason;
    const { report } = state;
    if (!report) return this.#emit(state, time, value);
    const before = report.filtered;
    this.#reporter.take(report, time, value, nowMs);
    this.#counters.filtered += report.filtered - before;
  }

  /** A reading that gives no point. What comes after it is news whatever it is. */
  #fail(state: InputState, reading: Reading, failure: ReadingFailure, reason: string, value?: number): void {
    state.bad++;
    this.#counters.drop(failure);
    if (reading.historical) return;
    if (!state.failing) {
      state.failing = true;
      this.#watch?.failed(state.input, reading.clock === "device" ? reading.time : lastTime(state), "bad", reason);
    }
    if (state.boundTo === "") state.address = reading.address;
    state.value = value ?? Number.NaN;
    state.time = reading.time;
    state.quality = "bad";
    state.reason = reason;
    if (state.report) state.report.stretch = 0;
  }

  #emit(state: InputState, time: EpochMicros, value: number): void {
    if (!state.described) {
      this.#catalog.describe(state.input, state.signal);
      state.described = true;
    }
    state.stored++;
    const { input } = state;
    const keeps = state.of.keepsSameTime;
    if (this.#columns) this.#columns.add(input, time, value, keeps);
    else this.#points.push(keeps ? { input, time, value, sameTime: "keep" } : { input, time, value });
  }

  #taken(): readonly Point[] {
    const points = this.#points;
    this.#points = [];
    return points;
  }

  /** Heartbeats of what the device did not mention. */
  #beat(nowMs: number): void {
    const now = this.#runtime.clock.now();
    for (const tag of this.#tags) {
      const { report, alignUs } = tag.processing;
      if (report?.heartbeat === undefined) continue;
      const time = apart(align(now, alignUs), this.#extraMicros);
      for (const state of tag.inputs())
        if (state.report && state.quality !== "bad") this.#reporter.beat(state.report, time, nowMs);
    }
  }

  #describe({ tag: id, captures, address, signal, range }: Description): void {
    const tag = this.#tags[id];
    const state = tag?.find(captures);
    if (!tag || !(state instanceof InputState) || isSecond(state, address)) return;
    state.device = { signal, range };
    this.#refresh(state, tag.rule, captures);
  }

  /** Brings together what configuration and device say of an input. */
  #refresh(state: InputState, rule: TagRule, captures: Captures): void {
    const signal = signalOf(rule.signal, state.device?.signal ?? {}, captures);
    if (JSON.stringify(signal) !== JSON.stringify(state.signal)) {
      state.signal = signal;
      // A signal without points is not described until it has some.
      if (state.described) this.#catalog.describe(state.input, signal);
    }
    const { type, enumValues = {} } = signal;
    state.states =
      type === "enum" ? new Map(Object.entries(enumValues).map(([id, word]) => [word, Number(id)])) : undefined;
    if (state.report) state.report.deadband = deadbandOf(rule, state);
  }

  #open(state: InputState, { rule, processing }: TagInputs, captures: Captures): void {
    if (processing.report) state.report = new ReportState(state, processing.report);
    if (!rule.shared) this.#addresses.opened(state);
    this.#refresh(state, rule, captures);
  }

  /** A reading that has no input to go to, unless the tag that had its Input ID went with a change of the configuration. */
  #withoutInput(refused: InputState | RefusedState | undefined, reading: Reading, nowMs: number): void {
    const { tag, captures, address } = reading;
    const owner = refused instanceof RefusedState ? refused.owner : undefined;
    this.#counters.drop(owner ? "secondAddress" : "inputRefused");
    if (!(refused instanceof RefusedState)) return;
    refused.readings++;
    refused.address = address;
    if (!owner || this.#owners.owns(owner)) return;
    const state = this.#tags[tag]?.findAgain(captures, refused);
    if (!(state instanceof InputState)) return;
    this.#counters.drop("secondAddress", -1);
    this.#read(reading, nowMs);
  }

  /** Whether another address feeds the input. Then the reading is refused. */
  #isSecond(state: InputState, { address, wholeTag }: Reading): boolean {
    if (state.boundTo === "" || wholeTag === true) return false;
    this.#counters.drop("secondAddress");
    this.#addresses.refuse(state, address, 1);
    return true;
  }

  /**
   * The arrival time of a reading that carries no time of its own: `time`, or 1 µs after the previous one of its input,
   * since messages that are read together share a time. Inputs that arrive together keep sharing it.
   */
  #arrivalTime(input: InputState, time: EpochMicros): EpochMicros {
    const state = input.of.shared ? this.#owners.arrivalOf(input.input) : input;
    const isShared = time <= state.arrival && state.arrival - time < clockStepUs;
    state.arrival = isShared ? state.arrival + 1 : time;
    return epochMicros(state.arrival);
  }

  #tellRefused({ tag, input, address, fedBy, reason }: RefusedInput): void {
    this.#watch?.failed(fedBy && address !== "" ? `${input} (${address})` : input, undefined, "refused", reason);
    const fields = { tag, input, ...(address !== "" && { address }), reason };
    this.#log.warn(
      fields,
      fedBy
        ? "a second address of an Input ID was refused, its readings are not stored"
        : "an Input ID was refused, its readings are not stored",
    );
  }

  #tellRounding(state: InputState): void {
    this.#counters.rounded++;
    if (state.roundingTold) return;
    state.roundingTold = true;
    this.#log.warn({ input: state.input }, "integers beyond 2^53 are rounded to the nearest double");
  }
}

/** The fields of a reading, apart from its value, that its point and the state of its input need. */
type Given = Pick<Reading, "time" | "clock" | "quality" | "historical"> & { readonly reason?: string | undefined };

/** Whether another address than this one feeds the input. */
function isSecond({ boundTo }: InputState, address: string | undefined): boolean {
  return boundTo !== "" && address !== undefined && address !== boundTo;
}

/** In the unit of the signal; NaN where it is a share of a range that is not known. */
function deadbandOf({ report, valid }: TagRule, { device }: InputState): number {
  if (report === undefined || report === "off") return 0;
  if (typeof report.deadband === "number") return report.deadband;
  const min = valid?.min ?? device?.range?.min;
  const max = valid?.max ?? device?.range?.max;
  return min === undefined || max === undefined ? Number.NaN : (report.deadband.percent / 100) * (max - min);
}

/** A time of our clock, apart from what was stored under it before the clock went back. */
function apart(time: EpochMicros, extraMicros: number): EpochMicros {
  return epochMicros(time + extraMicros);
}

/** The multiple of `gridUs` nearest to `time`; `time` itself where there is no grid. */
function align(time: EpochMicros, gridUs: number): EpochMicros {
  return gridUs === 0 ? time : epochMicros(Math.round(time / gridUs) * gridUs);
}
