// Conversion of values to points: decides on time and storage, updates the state of the input, and collects the points.
import { type EpochMicros, epochMicros, type InputId, type Point, type PointBatch } from "../core/point.ts";
import type { Runtime } from "../core/runtime.ts";
import type { SignalCatalog } from "../core/signal.ts";
import type { Captures, Reading, TagId } from "../core/source.ts";
import type { RateLimitedLog } from "../lib/flow/rate-limited-log.ts";
import type { RepeatedList } from "../lib/values/lists.ts";
import type { MappingCounters, ReadingFailure } from "./convert.ts";
import type { InputOwners } from "./input-owners.ts";
import type { InputState, ReportState } from "./input-state.ts";
import { signalOf } from "./input-template.ts";
import type { InputWatch } from "./mapping.ts";
import type { TagRule } from "./options.ts";
import { Reporter } from "./report.ts";
import type { TagInputs } from "./tag-inputs.ts";
import { lastTime, TimeFaultFinder } from "./tag-state.ts";

/** Smallest step back of arrivals that means a clock change, in microseconds. A million readings may share one time. */
const clockStepUs = 1_000_000;

interface PointMakerParts {
  readonly clock: Runtime["clock"];
  readonly log: RateLimitedLog;
  readonly counters: MappingCounters;
  readonly catalog: SignalCatalog;
  readonly owners: InputOwners;
  readonly watch: InputWatch | undefined;
}

/** The fields of a reading, except its value, that its point and its input's state need. */
export type Given = Pick<Reading, "time" | "clock" | "quality" | "historical"> & {
  readonly reason?: string | undefined;
};

export class PointMaker {
  readonly #parts: PointMakerParts;
  readonly timeFaults: TimeFaultFinder;
  readonly reporter: Reporter;
  #points: Point[] = [];
  /** Destination of the points of the current call. Undefined: they are returned by `taken`. */
  columns: PointColumnsWriter | undefined;

  constructor(parts: PointMakerParts) {
    this.#parts = parts;
    this.timeFaults = new TimeFaultFinder(parts.log);
    this.reporter = new Reporter((state, time, value) => this.#store(state, time, value));
  }

  /** Processes a usable value: decides whether it becomes a point, and with which time. */
  take(state: InputState, { processing }: TagInputs, reading: Given, value: number, nowMs: number): void {
    const { clock, quality, historical } = reading;
    if (processing.converter.rounded) this.#logRounding(state);
    const taken = clock === "agent" ? this.#arrivalTime(state, reading.time) : reading.time;
    const time = clock === "agent" ? this.#ownTime(taken, processing.alignUs) : align(taken, processing.alignUs);
    if (historical) return this.#emit(state, time, value);
    if (state.failing) {
      state.failing = false;
      this.#parts.watch?.recovered(state.input, reading.time);
    }
    if (taken !== state.time) state.repeated?.advance();
    else if (value !== state.value) this.timeFaults.add(state, nowMs);
    state.value = value;
    state.time = taken;
    state.quality = quality;
    state.reason = reading.reason;
    const { report } = state;
    if (!report) return this.#store(state, time, value);
    this.#adoptStored(state, report);
    const before = report.filtered;
    this.reporter.take(report, time, value, nowMs);
    this.#parts.counters.filtered += report.filtered - before;
  }

  /** Processes a reading without a point. `report` stores the next usable one unconditionally. */
  fail(state: InputState, reading: Reading, failure: ReadingFailure, reason: string, value?: number): void {
    state.bad++;
    this.#parts.counters.drop(failure);
    if (reading.historical) return;
    if (!state.failing) {
      state.failing = true;
      this.#parts.watch?.failed(
        state.input,
        reading.clock === "device" ? reading.time : lastTime(state),
        "bad",
        reason,
      );
    }
    if (state.boundTo === "") state.address = reading.address;
    state.value = value ?? Number.NaN;
    state.time = reading.time;
    state.quality = "bad";
    state.reason = reason;
    if (state.report) state.report.epoch = 0;
  }

  /** Merges the metadata of configuration and device. */
  refresh(state: InputState, rule: TagRule, captures: Captures): void {
    const signal = signalOf(rule.signal, state.device?.signal ?? {}, captures);
    if (JSON.stringify(signal) !== JSON.stringify(state.signal)) {
      state.signal = signal;
      // A signal is described only once it has points.
      if (state.described) this.#parts.catalog.describe(state.input, signal);
    }
    const { type, enumValues = {} } = signal;
    state.states =
      type === "enum" ? new Map(Object.entries(enumValues).map(([id, word]) => [word, Number(id)])) : undefined;
    if (state.report) state.report.deadband = deadbandOf(rule, state);
  }

  /** Returns the points collected so far, and removes them. */
  taken(): readonly Point[] {
    const points = this.#points;
    this.#points = [];
    return points;
  }

  /** Stores heartbeats of inputs that the device did not send. */
  emitHeartbeat(tags: readonly TagInputs[], alive: readonly ReadonlySet<TagId>[], nowMs: number): void {
    const now = this.#parts.clock.now();
    for (const tag of tags) {
      const { report, alignUs } = tag.processing;
      if (report?.heartbeat === undefined || !alive.some((some) => some.has(tag.id))) continue;
      const time = this.#ownTime(now, alignUs);
      for (const state of tag.inputs()) {
        if (!state.report || state.quality === "bad") continue;
        this.#adoptStored(state, state.report);
        this.reporter.emitHeartbeat(state.report, time, nowMs);
      }
    }
  }

  /** Takes the value over that another tag of a shared input has stored meanwhile. */
  #adoptStored({ of, input }: InputState, report: ReportState): void {
    const stored = of.rule.shared ? this.#parts.owners.sharedOf(input).stored : undefined;
    if (stored) report.storedValue = stored.value;
  }

  /** Emits a point that is not of the history. Other tags of a shared input compare their next value with it. */
  #store(state: InputState, time: EpochMicros, value: number): void {
    if (state.of.rule.shared) {
      const shared = this.#parts.owners.sharedOf(state.input);
      const newest = shared.stored?.time ?? 0;
      // A time ahead is of a clock that has been set back since, and all times to come would be older.
      if (time >= newest || newest > this.#parts.clock.now()) shared.stored = { time, value };
    }
    this.#emit(state, time, value);
  }

  #emit(state: InputState, time: EpochMicros, value: number): void {
    if (!state.described) {
      this.#parts.catalog.describe(state.input, state.signal);
      state.described = true;
    }
    state.stored++;
    const { input } = state;
    const keeps = state.of.rule.sameTime === "keep";
    if (this.columns) this.columns.add(input, time, value, keeps);
    else this.#points.push(keeps ? { input, time, value, sameTime: "keep" } : { input, time, value });
  }

  /** `time`, or 1 µs after the input's previous arrival, since messages that are read together share a time. */
  #arrivalTime(input: InputState, time: EpochMicros): EpochMicros {
    const state = input.of.rule.shared ? this.#parts.owners.sharedOf(input.input) : input;
    const isShared = time <= state.arrival && state.arrival - time < clockStepUs;
    state.arrival = isShared ? state.arrival + 1 : time;
    return epochMicros(state.arrival);
  }

  /** `time` on the grid, and apart from an equal time that the agent's clock gave before it was set back. */
  #ownTime(time: EpochMicros, alignUs: number): EpochMicros {
    const aligned = align(time, alignUs);
    const extra = this.#parts.clock.extraMicros?.(Math.min(time, aligned)) ?? 0;
    return extra > 0 ? epochMicros(aligned + extra) : aligned;
  }

  #logRounding(state: InputState): void {
    this.#parts.counters.rounded++;
    if (state.roundingLogged) return;
    state.roundingLogged = true;
    this.#parts.log.warn({ input: state.input }, "integers beyond 2^53 are rounded to the nearest double");
  }
}

/** The nearest multiple of `gridUs`; `time` itself if `gridUs` is 0. */
function align(time: EpochMicros, gridUs: number): EpochMicros {
  return gridUs === 0 ? time : epochMicros(Math.round(time / gridUs) * gridUs);
}

/** The dead band in the unit of the signal. NaN if it is a percentage of a range that is unknown. */
function deadbandOf({ report, valid, scale, offset }: TagRule, { device }: InputState): number {
  if (report === undefined || report === "off") return 0;
  if (typeof report.deadband === "number") return report.deadband;
  // The device states its range in its own unit, before scaling.
  const ends = device?.range && [device.range.min, device.range.max].map((end) => end * scale + offset);
  const min = valid?.min ?? (ends && Math.min(...ends));
  const max = valid?.max ?? (ends && Math.max(...ends));
  return min === undefined || max === undefined ? Number.NaN : (report.deadband.percent / 100) * (max - min);
}

// Points of one delivery in columns. They grow if heartbeats or held points are added.

export class PointColumnsWriter implements PointBatch {
  readonly #added: RepeatedList<InputId>;
  /** Complete after `end`. */
  inputs: readonly InputId[] = [];
  times: Float64Array<ArrayBuffer>;
  values: Float64Array<ArrayBuffer>;
  keeps: Uint8Array<ArrayBuffer> | undefined;

  /** `inputs`: builds the list of inputs, which it shares with equal batches before. */
  constructor(capacity: number, inputs: RepeatedList<InputId>) {
    this.#added = inputs;
    this.times = new Float64Array(capacity);
    this.values = new Float64Array(capacity);
  }

  get length(): number {
    return this.inputs.length;
  }

  end(): void {
    this.inputs = this.#added.take();
  }

  add(input: InputId, time: EpochMicros, value: number, keeps: boolean): void {
    const at = this.#added.length;
    if (at === this.times.length) this.#grow();
    this.#added.add(input);
    this.times[at] = time;
    this.values[at] = value;
    if (keeps) (this.keeps ??= new Uint8Array(this.times.length))[at] = 1;
  }

  *[Symbol.iterator](): Generator<Point, void> {
    for (const [i, input] of this.inputs.entries()) {
      const point = { input, time: epochMicros(this.times[i]!), value: this.values[i]! };
      yield this.keeps?.[i] === 1 ? { ...point, sameTime: "keep" } : point;
    }
  }

  #grow(): void {
    const length = Math.max(16, this.times.length * 2);
    const { times, values, keeps } = this;
    (this.times = new Float64Array(length)).set(times);
    (this.values = new Float64Array(length)).set(values);
    if (keeps) (this.keeps = new Uint8Array(length)).set(keeps);
  }
}
