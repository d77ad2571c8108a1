// The simulator: generated waves instead of a device, for demos, exercises and trying out a configuration.
import { z } from "zod";
import type { Driver, DriverTag } from "../../core/driver.ts";
import { epochMicros } from "../../core/point.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { Captures, Delivery, Reading, Source, TagId } from "../../core/source.ts";
import { isAbort } from "../../lib/flow/abort.ts";
import { duration } from "../../lib/values/fields.ts";

export const waves = ["sine", "square", "triangle", "sawtooth", "ramp", "randomWalk", "counter", "constant"] as const;

const simulatorOptions = z.strictObject({});

export const simulatorTag = z
  .strictObject({
    wave: z
      .enum(waves)
      .default("sine")
      .describe("Shape of the values. ramp is another word for sawtooth; constant is max, or min where that is all."),
    period: duration({ min: 1 })
      .prefault("60s")
      .describe("Length of one wave: sine, square, triangle, sawtooth and ramp."),
    min: z.number().default(0).describe("Lowest value; where a counter starts."),
    max: z
      .number()
      .optional()
      .describe("Highest value, 100 by default; where a counter starts again, without it never."),
    step: z.number().positive().default(1).describe("What a counter adds with each reading."),
    decimals: z.int().min(0).max(12).default(3).describe("Digits after the decimal point."),
  })
  .superRefine(({ min, max }, context) => {
    if (max === undefined || max >= min) return;
    context.addIssue({ code: "custom", path: ["max"], message: "must not be less than min", input: max });
  });

export const simulatorDriver: Driver<"simulator", typeof simulatorOptions, typeof simulatorTag> = {
  type: "simulator",
  summary: "waves instead of a device, for demos and drills",
  example: {
    protocol: "simulator",
    device: "the simulator",
    addresses: [],
    entries: [
      "- { input: demo.sine, wave: sine, period: 60s, min: 0, max: 100, signal: { name: Demo sine, engUnit: °C, labels: { site: [demo] } } }",
      "- { input: demo.count, wave: counter, signal: { name: Demo count, engUnit: pcs, labels: { site: [demo] } } }",
    ],
  },
  schema: simulatorOptions,
  tag: simulatorTag,
  open: async (config, runtime, signal) => openSimulator(config.tags, runtime, signal),
  forecast: ({ tags }) => ({
    readingsPerSecond: rate(tags.map(({ every }) => every)),
    requestsPerSecond: rate([...new Set(tags.map(({ every }) => every))]),
  }),
};

/** Events per second, for events that recur at these intervals in milliseconds. */
function rate(intervals: readonly number[]): number {
  return intervals.reduce((sum, interval) => sum + 1_000 / interval, 0);
}

// A simulated connection. Each delivery contains the values of all tags that are due. Most waves are pure functions of
// the time; a counter and a random walk have state.

/** Tags with the same interval. They are read together at its multiples, so their points share times. */
interface Group {
  readonly every: number;
  readonly tags: { readonly id: TagId; readonly address: string; readonly next: Generator }[];
  /** Number of the last interval that was read. */
  slot: number;
}

const nothing: Captures = {};
/** Most readings of one delivery. */
const maxReadings = 10_000;

/** Throws `signal.reason` if `signal` is aborted. */
function openSimulator(tags: readonly DriverTag<typeof simulatorTag>[], runtime: Runtime, signal: AbortSignal): Source {
  signal.throwIfAborted();
  const groups = new Map<number, Group>();
  tags.forEach((tag, index) => {
    const group = groups.get(tag.every) ?? { every: tag.every, tags: [], slot: Number.NEGATIVE_INFINITY };
    groups.set(tag.every, group);
    // The index in `DriverConfig.tags` identifies a tag.
    group.tags.push({ id: index as TagId, address: tag.wave, next: generator(tag, runtime.random) });
  });
  return {
    deliveries: (stop) => deliveries([...groups.values()], runtime, stop),
    async [Symbol.asyncDispose]() {},
  };
}

async function* deliveries(groups: readonly Group[], runtime: Runtime, stop: AbortSignal): AsyncGenerator<Delivery> {
  while (!stop.aborted) {
    const nowMs = runtime.clock.now() / 1_000;
    const readings: Reading[] = [];
    let waitMs = longestWaitMs;
    for (const group of groups) {
      const slot = Math.floor(nowMs / group.every);
      // Intervals that passed while the last delivery was stored are read late, as far back as `rememberedMs`. Of older
      // ones only the newest interval is read. After the clock is set back, reading continues from the new time.
      const oldest = Math.floor((nowMs - rememberedMs) / group.every) + 1;
      const goesOn = Number.isFinite(group.slot) && slot > group.slot;
      let next = goesOn ? Math.min(slot, Math.max(group.slot + 1, oldest)) : slot;
      for (; next !== group.slot && next <= slot; next++) read(group, next, readings);
      group.slot = slot;
      waitMs = Math.min(waitMs, (slot + 1) * group.every - nowMs);
    }
    for (let from = 0; from < readings.length; from += maxReadings)
      yield { readings: readings.slice(from, from + maxReadings), descriptions: [], awaited: false, ack() {} };
    // Storing the delivery took time, so further intervals may be due.
    if (readings.length > 0) continue;
    try {
      await runtime.clock.sleep(waitMs, stop);
    } catch (error) {
      if (!isAbort(error, stop)) throw error;
    }
  }
}

/** How far back missed intervals are read, in milliseconds: longer than a sync of the disk. */
const rememberedMs = 1_000;
/** Bounds the wait, so that a step of the wall clock is noticed soon. */
const longestWaitMs = 1_000;

function read({ every, tags }: Group, slot: number, readings: Reading[]): void {
  const epochMs = slot * every;
  const time = epochMicros(epochMs * 1_000);
  for (const { id, address, next } of tags)
    readings.push({
      tag: id,
      captures: nothing,
      address,
      value: next(epochMs),
      time,
      clock: "agent",
      quality: "good",
      historical: false,
    });
}

/** Returns the value at `epochMs`. Called once for each reading, since counters and random walks advance per call. */
type Generator = (epochMs: number) => number;

export function generator(options: z.output<typeof simulatorTag>, random: () => number): Generator {
  const { wave, period, min, step, decimals } = options;
  const max = options.max ?? (wave === "counter" ? Number.POSITIVE_INFINITY : Math.max(100, min));
  const span = max - min;
  const factor = 10 ** decimals;
  const round = (value: number) => Math.round(value * factor) / factor;
  /** Elapsed share of the period, 0 to below 1. All agents share the phase, since it starts at the epoch. */
  const phase = (epochMs: number) => (epochMs % period) / period;
  let last = min + span / 2;
  let count = min;
  const shapes: Readonly<Record<(typeof waves)[number], Generator>> = {
    sine: (at) => min + (span * (1 + Math.sin(2 * Math.PI * phase(at)))) / 2,
    square: (at) => (phase(at) < 0.5 ? max : min),
    triangle: (at) => min + span * (1 - Math.abs(1 - 2 * phase(at))),
    sawtooth: (at) => min + span * phase(at),
    ramp: (at) => min + span * phase(at),
    constant: () => options.max ?? min,
    randomWalk: () => (last = Math.min(max, Math.max(min, last + (random() - 0.5) * 0.05 * span))),
    counter: () => {
      const value = count;
      count = value + step > max ? min : value + step;
      return value;
    },
  };
  const shape = shapes[wave];
  return (at) => round(shape(at));
}
