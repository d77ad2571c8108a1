// The fields of a tag that are MQTT's: where its messages come from and how a value and a time are found in them.
import { z } from "zod";
import { payloadPath } from "./json-path.ts";
import { timeFormats } from "./payload-time.ts";
import { topicTemplate } from "./topic-template.ts";

const time = z.strictObject({
  at: payloadPath()
    .describe("Where in the payload the time stands.")
    .meta({ examples: ["$.ts"] }),
  format: z
    .enum(timeFormats)
    .default("auto")
    .describe("auto: numbers by their magnitude as seconds, ms, µs or ns since 1970, texts as ISO 8601."),
});

/** Fields of an MQTT tag. */
export const mqttTag = z
  .strictObject({
    topic: topicTemplate()
      .describe(
        "Topic: {name} stands for one level and is captured, a trailing {name...} for all that follow; + and # match without capturing.",
      )
      .meta({ examples: ["sensors/{room}/env", "plant/{rest...}"] }),
    value: payloadPath()
      .optional()
      .describe(
        "Where in a JSON payload the value stands; without it the payload is the value. [*] takes every element.",
      )
      .meta({ examples: ["$.t", "$.a.b[0]['x y']"] }),
    time: time.optional().describe("Where the time of the value stands; without it the time of arrival is taken."),
    format: z
      .enum(["auto", "json", "number", "text"])
      .default("auto")
      .describe("auto: JSON where value or time say where to look, else a bare number, true, false or text."),
    retained: z
      .enum(["timestamped", "use", "ignore"])
      .default("timestamped")
      .describe(
        "Messages the broker kept from before: timestamped takes those that carry their own time, use takes all with the time of arrival, ignore none.",
      ),
  })
  .superRefine(({ topic, value }, context) => {
    if (value?.many && topic.captures.some(({ name }) => name === "i"))
      context.addIssue({
        code: "custom",
        path: ["topic"],
        message: "must not capture {i}, which [*] in value fills with the number of the element",
        input: topic.text,
      });
  });

export type MqttTag = z.output<typeof mqttTag>;
