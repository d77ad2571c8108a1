// The simulator: generated waves instead of a device, for demos, exercises and trying out a configuration.
import { z } from "zod";
import type { Driver } from "../../core/driver.ts";
import { duration } from "../../lib/values/fields.ts";
import { openSimulator, waves } from "./source.ts";

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
