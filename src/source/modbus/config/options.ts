// Schemas of the options of a Modbus source and its tags.
import { z } from "zod";
import { AgentError } from "../../../core/errors.ts";
import { duration, parsedText, unfit } from "../../../lib/values/fields.ts";
import { type Address, addressFrom, parseAddress } from "./address.ts";
import { parseEndpoint } from "./endpoint.ts";
import type { Range } from "./plan.ts";
import { isTable, orders, registersOf } from "./registers.ts";

const endpoint = z
  .string({ error: "must be a URL such as tcp://10.0.0.5:502" })
  .transform((text, context) => {
    const parsed = parseEndpoint(text);
    return typeof parsed === "string" ? unfit(context, parsed, text) : parsed;
  })
  .describe("The device, gateway or bus. Port 502 where none is given.")
  .meta({ examples: ["tcp://10.0.0.5:502"] });

/** An integer from `min` to `max`. `why` ends the error message. */
const whole = (min: number, max: number, why = "") =>
  z
    .int({ error: `must be from ${min} to ${max}${why}` })
    .min(min)
    .max(max);

export const modbusOptions = z.strictObject({
  url: endpoint,
  timeout: duration({ min: 10, max: 60_000 }).default(1_000).describe("How long a unit may take to answer a request."),
  connectTimeout: duration({ min: 10, max: 60_000 }).default(3_000).describe("How long connecting may take."),
  time: z
    .enum(["poll", "reply"])
    .default("poll")
    .describe(
      "`poll`: the time of the slot for what is read within 100 ms of it, which packs well; later the time it was read, rounded down to 100 ms. `reply`: when each reply was complete.",
    ),
  interRequestDelay: duration({ max: 60_000 })
    .default(0)
    .describe("Pause between a reply and the next request. Slow devices need 10ms to 100ms."),
  pauseAfterConnect: duration({ max: 60_000 })
    .default(0)
    .describe("Pause between connecting and the first request; some gateways drop what comes at once."),
  closeAfterPoll: z
    .boolean()
    .default(false)
    .describe(
      "Whether a TCP connection is closed after each poll, for devices that allow only one or two and are wanted by others too.",
    ),
  maxRegisters: whole(1, 125, ", the limit of the protocol")
    .default(125)
    .describe("Most registers asked for in one request. Some devices fail above 21, 32, 60 or 100."),
  maxBits: whole(1, 2_000, ", the limit of the protocol")
    .default(2_000)
    .describe("Most coils or discrete inputs asked for in one request."),
  maxGap: whole(0, 124)
    .default(8)
    .describe(
      "Unused registers that may be read along to save a request (of bits eight times as many). 0 joins only neighbours.",
    ),
  retries: whole(0, 5)
    .optional()
    .describe(
      "How often a request without an answer is repeated at once. Default: 1 on serial lines and UDP, 0 over TCP.",
    ),
  replyUnit: z
    .enum(["same", "any"])
    .default("same")
    .describe("`any` accepts replies that carry another unit than requested, for devices that always echo 0 or 255."),
  localAddress: z.string().optional().describe("Address of this machine to connect from, where it has several."),
});

const longForm = z.strictObject({
  table: z.enum(["hr", "ir", "co", "di"]),
  address: whole(0, 65_535),
  // `addressFrom` rejects a text with the reason, as in the short form.
  type: z
    .string()
    .meta({ enum: Object.keys(registersOf) })
    .optional(),
  order: z.enum(orders).optional(),
  bit: whole(0, 63).optional(),
  toBit: whole(0, 63).optional(),
});

const at = z
  .union([z.string(), z.number(), longForm], { error: ({ input }) => addressError(input) })
  .transform((input, context): Address => {
    const parsed = typeof input === "object" ? addressFrom(input) : parseAddress(input);
    return typeof parsed === "string" ? unfit(context, parsed, input) : parsed;
  })
  .describe(
    "Table (hr holding, ir input register, co coil, di discrete input), zero-based address, type and byte order; or a Modicon number in quotes.",
  )
  .meta({ examples: ["hr:0 u16", "hr:4 f32 cdab", "hr:20.3 bit", "co:5", "40001 i16"] });

function addressError(input: unknown): string {
  const issue = longForm.safeParse(input).error?.issues[0];
  return typeof input === "object" && input !== null && issue
    ? `${issue.path.join(".") || "address"}: ${issue.message}`
    : "must be an address such as hr:0 u16, hr:20.3 bit or co:5";
}

const forbid = parsedText((text): Range | string => {
  const match = /^(hr|ir|co|di):(\d{1,5})(?:\.\.(\d{1,5}))?$/.exec(text.trim().toLowerCase());
  const [, table = "", from = "", to = from] = match ?? [];
  const isRange = isTable(table) && Number(from) <= Number(to) && Number(to) <= 65_535;
  return isRange ? { table, from: Number(from), to: Number(to) } : "be a range such as hr:100..109";
}).meta({ examples: ["hr:100..109"] });

export const modbusTag = z.strictObject({
  at,
  unit: z
    .int({ error: "must be from 0 to 255" })
    .min(0, { error: "must be from 0 to 255" })
    .max(255, { error: "must be from 0 to 255" })
    .default(1)
    .describe(
      "The unit identifier of the Modbus server; 1 for most single devices, 255 or 0 for some direct TCP devices. The unit of a value is signal.engUnit.",
    ),
  order: z
    .enum(orders)
    .optional()
    .describe("Byte order where the address names none: abcd (default), cdab, badc or dcba."),
  nullValues: z
    .union([z.literal("sunspec"), z.array(z.number()).min(1)], {
      error: "must be a list of raw values such as [0x8000], or sunspec",
    })
    .optional()
    .describe("Raw values by which the device says that it has none; `sunspec` for those of the SunSpec models."),
  timeout: duration({ min: 10, max: 60_000 })
    .optional()
    .describe("How long this unit may take to answer, where it differs from the source's."),
  maxRegisters: whole(1, 125, ", the limit of the protocol")
    .optional()
    .describe("Most registers asked of this unit in one request, where it differs from the source's."),
  forbid: z
    .array(forbid)
    .optional()
    .describe("Addresses that are never read along between others, because the device fails by it."),
  atomic: z
    .string()
    .min(1)
    .optional()
    .describe("Tags of a unit with the same word here are read in one request, so that they fit each other."),
  scaleFactor: at
    .optional()
    .describe(
      "Register that holds a power of ten to multiply by, as in SunSpec; i16 where no type is given. Read in the same request.",
    ),
});

export type ModbusOptions = z.output<typeof modbusOptions>;

/** Validates options that do not come from a configuration file. Throws `CONFIG_INVALID` for the first fault. */
export function optionsOf(input: z.input<typeof modbusOptions>): ModbusOptions {
  const parsed = modbusOptions.safeParse(input);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new AgentError("CONFIG_INVALID", `${issue?.path.join(".")} ${issue?.message}`);
}
