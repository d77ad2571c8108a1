// Tag fields of the MQTT driver: the topic, and where values and times are in a message.
import { z } from "zod";
import type { DriverTag } from "../../../core/driver.ts";
import { timeRuleFields } from "../../../lib/readings/device-time.ts";
import { timeZone } from "../../../lib/time/time-zone.ts";
import { duration, parsedText } from "../../../lib/values/fields.ts";
import { payloadFormats } from "../decoders/decoder.ts";
import { payloadPath } from "../decoders/json-path.ts";
import { compressions } from "../decoders/payload.ts";
import { timeFormats } from "../decoders/payload-time.ts";
import { goodCodes } from "../decoders/quality.ts";
import { bytesField } from "../decoders/struct.ts";
import { sparkplugScope } from "../topics/sparkplug-topic.ts";
import { topicTemplate } from "../topics/topic-template.ts";

const zone = parsedText((name) => timeZone(name) ?? "be a time zone, as in Europe/Madrid, UTC or +02:00");

const step = z.union([
  duration({ min: 0.001 }),
  z.strictObject({
    at: payloadPath().describe("Where in the payload the time between two samples stands."),
    unit: z.enum(["s", "ms", "us", "ns"]).default("ms").describe("Unit of the fraction."),
  }),
]);

/** One path, or several of which the first one present counts. */
const places = z.union([payloadPath(), z.array(payloadPath()).min(1)]);
const onePlace = "must have one of at, capture and property";

/** Formats that define the place of the time. */
const timedFormats: readonly string[] = ["senml", "lineProtocol", "sparkplugB"];

const time = z
  .strictObject({
    at: places
      .optional()
      .describe("Where in the payload the time stands; of several places the first that has one.")
      .meta({ examples: ["$.ts"] }),
    date: payloadPath()
      .optional()
      .describe("Where in the payload the date stands, if what stands at `at` is the time of day only.")
      .meta({ examples: ["$.date"] }),
    fraction: z
      .strictObject({
        at: payloadPath().describe("Where in the payload the fraction stands."),
        unit: z.enum(["ms", "us", "ns"]).default("ns").describe("Unit of the fraction."),
      })
      .optional()
      .describe("Where the fraction of the second stands, if what stands at `at` is whole seconds; left out it is 0.")
      .meta({ examples: [{ at: "$.nsec", unit: "ns" }] }),
    capture: z.string().optional().describe("Name of the level of the topic that the time stands in."),
    property: z.string().optional().describe("Name of the user property that the time stands in (MQTT 5)."),
    format: z
      .enum(timeFormats)
      .default("auto")
      .describe("auto: numbers by their magnitude as seconds, ms, µs or ns since 1970, texts as ISO 8601."),
    zone: zone
      .optional()
      .describe("Zone of times that do not name one, UTC by default.")
      .meta({ examples: ["Europe/Madrid", "+02:00"] }),
    ...timeRuleFields,
    step: step
      .optional()
      .describe("Time between two samples of a block, of which the payload has one time only; see each: sample."),
    anchor: z.enum(["first", "last"]).default("first").describe("Which sample of a block its time is that of."),
  })
  .superRefine(({ at, date, fraction, capture, property }, context) => {
    if (fraction !== undefined && at === undefined)
      context.addIssue({ code: "custom", path: ["fraction"], message: "requires at: the path of the seconds" });
    if (date !== undefined && at === undefined)
      context.addIssue({ code: "custom", path: ["date"], message: "needs at, where the time of day stands" });
    const given = [at, capture, property].filter((place) => place !== undefined).length;
    if (given > 1) context.addIssue({ code: "custom", message: onePlace });
  });

const quality = z.strictObject({
  at: places
    .describe(
      "Where in the payload a code for the quality of the value stands; of several places the first that has one. Where it is missing the value is good.",
    )
    .meta({ examples: ["$.quality", ["$.StatusCode.Code", "$.StatusCode"]] }),
  good: goodCodes()
    .describe(
      "Codes of good values; any other is bad. 'value/mask' means that these bits have this value; a list may contain codes, masks and ranges: [192, [216, 219]]. Two ascending numbers alone are a range, with a warning, as they look like two codes: [[0, 192]] is a range without one.",
    )
    .meta({ examples: [["GOOD"], [[0, 0x00960000]], "0x00000000/0xC0000000"] }),
});

const names = z.strictObject({
  of: z.string().describe("Name in capture of what the data go by, as an id."),
  topic: topicTemplate()
    .describe(
      "Topic of the messages that tell the names. It may capture levels that topic captures too, under the same names.",
    )
    .meta({ examples: ["ie/m/j/simatic/v1/{connector}/dp"] }),
  id: payloadPath().describe("Where in these messages the ids stand."),
  name: payloadPath().describe("Path of the names; each [*] is the same element as the [*] in id."),
});

const csv = z.strictObject({
  separator: z.string().min(1).default(",").describe("What stands between two columns."),
  header: z.boolean().default(false).describe("The first line names the columns."),
});

export const mqttTag = z
  .strictObject({
    topic: topicTemplate()
      .describe(
        "Topic: {name} stands for one level and is captured, a trailing {name...} for all that follow; + and # match without capturing. {name|lower} changes what is captured: lower, upper, slug, replace(a,b), default(x), map(a=b,c=d).",
      )
      .meta({ examples: ["sensors/{room}/env", "plant/{rest...}"] }),
    value: payloadPath()
      .optional()
      .describe(
        "Where in the payload the value stands; without it the payload is the value. [*] takes every element, .** every number below, also in texts. {i} is what stood for them, index or name; {i1} and {i2} for the first and the second; {key} is the name of the last, and no index. In a list whose elements have times or captured names of their own {i} leaves the index out.",
      )
      .meta({ examples: ["$.t", "$.a.b[0]['x y']"] }),
    time: time.optional().describe("Where the time of the value stands; without it the time of arrival is taken."),
    format: z
      .enum(["auto", ...payloadFormats])
      .default("auto")
      .describe("auto: JSON where a field says where in the payload to look, else a bare number, true, false or text."),
    compression: z
      .enum(compressions)
      .default("none")
      .describe("How the payload is compressed; auto finds out by itself."),
    lenient: z
      .boolean()
      .default(false)
      .describe("JSON may have NaN, Infinity and -Infinity in it, which are no values then."),
    csv: csv.prefault({}).describe("How lines of format csv are written; $[0][1] is the second column of the first."),
    decimal: z
      .enum([".", ","])
      .default(".")
      .describe("Decimal sign in formats number and csv. With a comma 1.234 is refused, as it may be 1234."),
    bytes: bytesField.optional().describe("Where the number stands if the payload, or the text at value, is bytes."),
    capture: z
      .record(z.string().regex(/^[A-Za-z_][\w-]*$/, "must be a name of letters, digits, - and _"), payloadPath())
      .default({})
      .describe(
        "Names to be filled from the payload, for input and signal. Of an object, as the tags of Telegraf, its texts in the order of their names.",
      )
      .meta({ examples: [{ channel: "$[*].channel" }] }),
    names: names
      .optional()
      .describe(
        "Where the device tells names for the ids in its data: they fill {name}, and as long as one is not known the id does.",
      ),
    metric: z
      .string()
      .min(1)
      .optional()
      .describe("Sparkplug B: name of the metric, or its beginning and *; without it all that are numbers.")
      .meta({ examples: ["Line 1/Speed", "Line 1/*"] }),
    each: z
      .enum(["signal", "sample"])
      .default("signal")
      .describe("What [*] in value finds: signals of their own, or samples of one signal at different times."),
    exclude: z.array(z.string()).default([]).describe("Names of members that [*] and .** pass over."),
    missing: z
      .union([z.literal("skip"), z.number()])
      .default("skip")
      .describe("What a message without the value means: nothing, or this number, for devices that leave out zeros."),
    quality: quality.optional().describe("How the payload says whether the value can be trusted."),
    expectEvery: duration({ min: 1_000 })
      .optional()
      .describe("The tag turns bad when no message came for this long. Without it a silent tag keeps its state."),
    retained: z
      .enum(["timestamped", "use", "ignore"])
      .default("timestamped")
      .describe(
        "Messages the broker kept from before: timestamped takes those that carry their own time, use takes all with the time of arrival, ignore none.",
      ),
  })
  .superRefine(({ topic, value, time: when, capture, names: naming, each, format, metric }, context) => {
    const levels = topic.captures.map(({ name }) => name);
    const captured = [...levels, ...Object.keys(capture)];
    const refuse = (path: string[], message: string) => context.addIssue({ code: "custom", path, message });
    const made = value?.many && each === "signal" ? ["i", "key", "i1", "i2", "i3"] : [];
    for (const name of made)
      if (levels.includes(name))
        refuse(["topic"], `must not capture {${name}}, which [*] in value fills with the index or name of the element`);
    if (made.length > 0 && Object.hasOwn(capture, "i"))
      refuse(["capture", "i"], "must not capture {i}, which [*] in value fills with the index or name of the element");
    for (const name of Object.keys(capture))
      if (levels.includes(name))
        refuse(["capture", name], `must not be captured twice; {${name}} stands in topic, too`);
    if (naming && !Object.hasOwn(capture, naming.of))
      refuse(["names", "of"], `must be a name in capture, which has ${Object.keys(capture).join(", ") || "none"}`);
    if (naming?.topic.filter.startsWith("$share/"))
      refuse(["names", "topic"], "must not be a shared subscription, which brings no retained messages");
    if (naming && captured.includes("name")) refuse(["names"], "fills {name}, which must not be captured as well");
    for (const { name, rest } of naming?.topic.captures ?? [])
      if (rest || !levels.includes(name))
        refuse(["names", "topic"], `must capture single levels that topic captures too, not {${name}}`);
    if (when && !timedFormats.includes(format) && (when.at ?? when.capture ?? when.property) === undefined)
      refuse(["time"], onePlace);
    if (when?.capture !== undefined && !levels.includes(when.capture))
      refuse(["time", "capture"], `must be a name in topic, which has ${levels.join(", ") || "none"}`);
    const scope = format === "sparkplugB" ? sparkplugScope(topic) : undefined;
    if (typeof scope === "string") refuse(["topic"], `must ${scope}`);
    if (metric !== undefined && format !== "sparkplugB") refuse(["metric"], "needs format: sparkplugB");
    if (each === "sample" && !value?.many) refuse(["each"], "must be signal unless value has [*] in it");
    if (when?.step !== undefined && each !== "sample") refuse(["time", "step"], "needs each: sample");
  });

export type MqttTag = z.output<typeof mqttTag> & Pick<DriverTag<typeof mqttTag>, "descriptive" | "fills">;
