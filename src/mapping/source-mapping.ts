// The mapping of one source: input, conversion, range, quality policy and report of each reading.
import type { Ambiguity } from "../core/driver.ts";
import { epochMicros, type InputId, type Point, type PointBatch } from "../core/point.ts";
import type { ReadingBatch, ReadPlace } from "../core/reading.ts";
import type { Runtime } from "../core/runtime.ts";
import type { SignalCatalog } from "../core/signal.ts";
import type { Captures, Delivery, Description, Reading, TagId } from "../core/source.ts";
import { RateLimitedLog } from "../lib/flow/rate-limited-log.ts";
import { readingAt, timeAt } from "../lib/readings/reading-batch.ts";
import { RepeatedList } from "../lib/values/lists.ts";
import { MappingCounters } from "./convert.ts";
import { AddressBinding, type AddressMemory, InputOwners, RefusedState, refusalReport } from "./input-owners.ts";
import { InputNumbers, InputState, ReportState } from "./input-state.ts";
import { Inspections } from "./inspection.ts";
import type { InputWatch, InspectedInput, Mapping, RefusedInput, TagState, TimeFaults } from "./mapping.ts";
import type { TagRule } from "./options.ts";
import { type Given, PointColumnsWriter, PointMaker } from "./point-maker.ts";
import { processingTable, TagInputs, type TagInputsParts } from "./tag-inputs.ts";
import { eachValue, tagsIn } from "./tag-state.ts";

/** Largest number of entries that `refusals` returns. */
const maxRefusals = 100;

export interface MappingParts {
  readonly source: string;
  /** A `TagId` is an index into this array. */
  readonly rules: readonly TagRule[];
  readonly catalog: SignalCatalog;
  /** Ownership of Input IDs across the sources of an agent. Undefined: they are unique within this source only. */
  readonly owners?: InputOwners;
  /** Undefined: the address that feeds an Input ID is chosen again after each start. */
  readonly addresses?: AddressMemory | undefined;
  /** Tags of which several addresses can lead to the same Input ID (`Driver.ambiguity`). */
  readonly ambiguities?: ReadonlyMap<TagId, Ambiguity> | undefined;
  /** Notified of every input that becomes unusable or recovers. */
  readonly watch?: InputWatch;
}

export function openMapping(parts: MappingParts, runtime: Runtime): Mapping {
  return new SourceMapping(parts, runtime);
}

class SourceMapping implements Mapping {
  readonly #source: string;
  readonly #runtime: Runtime;
  readonly #owners: InputOwners;
  readonly #tags: readonly TagInputs[];
  readonly #addresses: AddressBinding;
  readonly #maker: PointMaker;
  readonly #counters: MappingCounters;
  /** List of places → the inputs that they feed. Undefined entries are unknown or have no input. */
  readonly #plans = new WeakMap<readonly ReadPlace[], (InputState | undefined)[]>();
  readonly #inputs = new RepeatedList<InputId>();
  readonly #inspections = new Inspections();

  constructor(parts: MappingParts, runtime: Runtime) {
    const { source, rules, catalog, owners, watch, addresses, ambiguities = new Map() } = parts;
    this.#source = source;
    this.#runtime = runtime;
    this.#owners = owners ?? new InputOwners();
    const log = new RateLimitedLog(runtime);
    const reportRefused = refusalReport(log, watch);
    this.#addresses = new AddressBinding({ memory: addresses, ambiguities, refused: reportRefused });
    this.#counters = new MappingCounters(source, runtime.metrics);
    const shared = { log, counters: this.#counters, owners: this.#owners };
    this.#maker = new PointMaker({ ...shared, clock: runtime.clock, catalog, watch });
    const common: TagInputsParts = {
      source,
      numbers: new InputNumbers(rules.length),
      claim: (state) => this.#owners.claim(state),
      opened: (state, tag, captures) => this.#open(state, tag, captures),
      refused: reportRefused,
      contested: (state) => this.#addresses.contested(state),
    };
    const processingOf = processingTable();
    // The index in `rules` identifies a tag.
    this.#tags = rules.map((rule, index) => new TagInputs(index as TagId, rule, processingOf(rule), common));
    for (const { tag, input, address } of addresses?.inputs() ?? []) {
      const of = this.#tags[tag];
      if (of) this.#owners.reserve({ input, address, of, reserved: true });
    }
  }

  map(delivery: Parameters<Mapping["map"]>[0]): readonly Point[] {
    this.#mapAll(delivery, (nowMs) => {
      for (const reading of delivery.readings) this.#read(reading, nowMs);
    });
    return this.#maker.taken();
  }

  mapBatches(delivery: Parameters<Mapping["mapBatches"]>[0], batches: readonly ReadingBatch[]): PointBatch {
    const capacity = batches.reduce((sum, { values }) => sum + values.length, 0);
    const columns = new PointColumnsWriter(capacity, this.#inputs);
    this.#maker.columns = columns;
    try {
      this.#mapAll(delivery, (nowMs) => {
        for (const batch of batches) this.#readBatch(batch, nowMs);
      });
    } finally {
      this.#maker.columns = undefined;
      columns.end();
    }
    return columns;
  }

  #mapAll({ descriptions, alive }: Pick<Delivery, "descriptions" | "alive">, read: (nowMs: number) => void): void {
    for (const description of descriptions) this.#describe(description);
    const nowMs = this.#runtime.clock.monotonic();
    read(nowMs);
    if (alive) this.#maker.emitHeartbeat(this.#tags, alive, nowMs);
    this.#counters.add();
  }

  due(): readonly Point[] {
    this.#maker.reporter.release(this.#runtime.clock.monotonic());
    return this.#maker.taken();
  }

  get nextDue(): number | undefined {
    return this.#maker.reporter.nextDue;
  }

  flush(): readonly Point[] {
    this.#maker.reporter.release(Number.POSITIVE_INFINITY);
    return this.#maker.taken();
  }

  claim(addresses: Iterable<ReadPlace>): void {
    for (const { tag: id, captures, address } of addresses) {
      const tag = this.#tags[id];
      const state = tag?.find(captures);
      if (!(state instanceof InputState) || tag?.rule.shared === true) continue;
      if (state.boundTo === "") this.#addresses.bind(state, address);
      else if (state.boundTo !== address) this.#addresses.refuse(state, address, 0);
    }
  }

  reconnected(): void {
    this.#maker.reporter.interrupt();
  }

  tags(): readonly TagState[] {
    return this.tagsIn(0, Number.POSITIVE_INFINITY).tags;
  }

  tagsIn(first: number, count: number): ReturnType<Mapping["tagsIn"]> {
    return tagsIn(this.#tags, first, count);
  }

  values(most: number, each: (input: string, value: number | undefined) => void): number {
    return eachValue(this.#tags, most, each);
  }

  inputOf(tag: TagId, captures: Captures, address?: string): InputId | undefined {
    const state = this.#tags[tag]?.find(captures);
    return state instanceof InputState && !isSecond(state, address) ? state.input : undefined;
  }

  inspect(tag: number, input: string): InspectedInput | undefined {
    return this.#inspections.of(this.#tags[tag], input, this.#runtime.clock.monotonic());
  }

  refusals(): readonly RefusedInput[] {
    const refused = [...this.#addresses.list()];
    for (const tag of this.#tags) if (!(tag.only instanceof InputState)) refused.push(...tag.refusals());
    return refused.slice(0, maxRefusals).map((state) => state.describe());
  }

  timeFaults(): TimeFaults {
    return this.#maker.timeFaults.list(this.#runtime.clock.monotonic());
  }

  refusalOf(tag: TagId, captures: Captures, address: string): RefusedInput | undefined {
    const state = this.#tags[tag]?.find(captures);
    const refused = state instanceof InputState ? this.#addresses.find(state, address) : state;
    return refused?.describe();
  }

  [Symbol.dispose](): void {
    this.#owners.release(this.#source);
  }

  #read(reading: Reading, nowMs: number): void {
    const tag = this.#tags[reading.tag];
    const state = tag?.find(reading.captures);
    if (!tag || !(state instanceof InputState)) return this.#withoutInput(state, reading, nowMs);
    if (!state.observer) return this.#readInto(state, tag, reading, nowMs);
    state.observer.observe(state, reading, nowMs, () => this.#readInto(state, tag, reading, nowMs));
  }

  #readInto(state: InputState, tag: TagInputs, reading: Reading, nowMs: number): void {
    const { rule } = tag;
    const { converter } = tag.processing;
    const { value: raw, quality } = reading;
    // Usually a comparison of references, because drivers reuse the string.
    const isBound = reading.address === state.boundTo;
    if (!isBound && this.#isSecond(state, reading)) return;
    state.readings++;
    if (raw === undefined)
      return this.#maker.fail(state, reading, "noValue", reading.reason ?? "the device gives no value");
    const value = converter.convert(raw, state.states);
    if (converter.failure !== undefined) return this.#maker.fail(state, reading, converter.failure, converter.reason);
    if (quality === "bad" && rule.badQuality === "drop") {
      const reason = reading.reason ?? "the device says that the value is bad";
      return this.#maker.fail(state, reading, "badQuality", reason, value);
    }
    if (!isBound) {
      // Each reading of a shared tag may have another address.
      if (rule.shared) state.address = reading.address;
      else this.#addresses.bind(state, reading.address);
    }
    this.#maker.take(state, tag, reading, value, nowMs);
  }

  /** Maps good values of the bound address without allocations; any other value is mapped as a single reading. */
  #readBatch(batch: ReadingBatch, nowMs: number): void {
    const { places, rows, values, booleans, apart, clock } = batch;
    const plan = this.#planOf(places);
    const given = { time: epochMicros(0), clock, quality: "good", reason: undefined, historical: false } as const;
    const current: { -readonly [K in keyof Given]: Given[K] } = given;
    for (let i = 0; i < values.length; i++) {
      const row = rows ? rows[i]! : i;
      const state = (plan[row] ??= this.#inputAt(places[row]));
      const tag = state && this.#tags[state.tag];
      if (!state || !tag || apart?.has(i) || places[row]?.address !== state.boundTo || state.observer) {
        this.#read(readingAt(batch, i), nowMs);
        continue;
      }
      const { converter } = tag.processing;
      const raw = values[i]!;
      state.readings++;
      const value = converter.convert(booleans ? raw === 1 : raw, state.states);
      if (converter.failure !== undefined) {
        this.#maker.fail(state, readingAt(batch, i), converter.failure, converter.reason);
        continue;
      }
      current.time = timeAt(batch, i);
      this.#maker.take(state, tag, current, value, nowMs);
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

  #describe({ tag: id, captures, address, signal, range }: Description): void {
    const tag = this.#tags[id];
    const state = tag?.find(captures);
    if (!tag || !(state instanceof InputState) || isSecond(state, address)) return;
    state.device = { signal, range };
    this.#maker.refresh(state, tag.rule, captures);
  }

  #open(state: InputState, { rule, processing }: TagInputs, captures: Captures): void {
    if (processing.report) state.report = new ReportState(state, processing.report);
    if (!rule.shared) this.#addresses.opened(state);
    this.#maker.refresh(state, rule, captures);
  }

  /** Counts a reading without an input. If the owner of its Input ID was released, it is mapped after all. */
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

  /** Whether another address feeds the input. If so, counts the reading as refused. */
  #isSecond(state: InputState, { address, wholeTag }: Reading): boolean {
    if (state.boundTo === "" || wholeTag === true) return false;
    this.#counters.drop("secondAddress");
    this.#addresses.refuse(state, address, 1);
    return true;
  }
}

/** Whether an address other than `address` feeds the input. */
function isSecond({ boundTo }: InputState, address: string | undefined): boolean {
  return boundTo !== "" && address !== undefined && address !== boundTo;
}
