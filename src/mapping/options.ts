// Tag fields that all protocols share: the Input ID and the processing of readings.
import { z } from "zod";
import { duration } from "../lib/values/fields.ts";
import { signalAttributes } from "../wire/signal-view.ts";

const valid = z
  .strictObject({
    min: z.number().optional().describe("Smallest value that is stored, after scaling."),
    max: z.number().optional().describe("Largest value that is stored, after scaling."),
  })
  .superRefine(({ min, max }, context) => {
    if (min === undefined || max === undefined || min < max) return;
    context.addIssue({ code: "custom", path: ["max"], message: "must be greater than min", input: max });
  });

const percent = z
  .string()
  .regex(/^\d+(?:\.\d+)?\s?%$/, { error: 'must be a number or a share of the range such as "0.5%"' })
  .transform((text) => ({ percent: Number.parseFloat(text) }));

const report = z.strictObject({
  deadband: z
    .union([z.number().min(0), percent])
    .default(0)
    .describe(
      "A reading is stored when it differs from the last stored value by more than this, in the unit of the signal, or in percent of the valid range or the range the device states. 0: by anything.",
    )
    .meta({ examples: [0.5, "0.5%"] }),
  heartbeat: duration({ min: 100 })
    .optional()
    .describe("A reading is stored when nothing was for this long, even if it differs by less."),
  minInterval: duration({ min: 1 })
    .optional()
    .describe(
      "At most one point in this time; the newest reading waits for its end, in memory: until then it is not promised and a power cut loses it.",
    ),
});

/** Durations are milliseconds after parsing. */
export const tagOptions = z.strictObject({
  input: z
    .string()
    .min(1, { error: "must not be empty" })
    .describe("Input ID the points go to. {name} is filled with what the tag's address captures, or with a variable.")
    .meta({ examples: ["hall1.m1.voltage", "hall.{room}.temp"] }),
  shared: z
    .boolean()
    .default(false)
    .describe(
      "true: values of several addresses may go to this Input ID, in the order in which they come. Otherwise the first address feeds it, and the values of a second one are refused, counted and shown. Where several tags have the same Input ID, each of them must say so.",
    ),
  every: duration({ min: 50, max: 604_800_000 })
    .prefault("1s")
    .describe("How often it is read: poll interval in Modbus, sampling interval in OPC UA, of no effect in MQTT."),
  scale: z.number().default(1).describe("The value is multiplied by this."),
  offset: z.number().default(0).describe("Added after scaling."),
  values: z
    .record(z.string(), z.number())
    .optional()
    .describe(
      "Words and the numbers that are stored for them; numbers and true or false may be translated as well, however they are written: 01 is 1.",
    )
    .meta({ examples: [{ ON: 1, OFF: 0 }] }),
  valid: valid.optional().describe("Values outside are counted and not stored."),
  badQuality: z
    .enum(["drop", "keep"])
    .default("drop")
    .describe("What becomes of a value of bad quality. keep: stored if it is a finite number."),
  report: z
    .union([z.literal("off"), report])
    .optional()
    .describe("Report by exception: which readings are worth a point. Without it every good reading is stored."),
  align: duration({ min: 1, max: 86_400_000 })
    .optional()
    .describe("Times are rounded to multiples of this, so that signals share them and requests stay small."),
  sameTime: z
    .enum(["replace", "keep"])
    .default("replace")
    .describe(
      "What becomes of several values with one time. replace: the one that came last is what the service holds in the end. keep: each further one is shifted by 1 µs, for samples that a coarse clock stamps.",
    ),
  maxInputs: z
    .int()
    .min(1)
    .max(1_000_000)
    .default(5_000)
    .describe("How many different Input IDs this tag may give rise to; further ones are refused, counted and shown."),
  signal: signalAttributes
    .default({})
    .describe("What the service shall know of the signal. {name} is filled as in input."),
});

export type TagRule = z.output<typeof tagOptions>;
