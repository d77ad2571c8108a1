// Maps messages to points with the tags of an MQTT source as in a configuration, without a broker.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { loadConfig } from "../../src/config/load.ts";
import { formatIssue } from "../../src/config/nodes/issue.ts";
import type { Point } from "../../src/core/point.ts";
import type { RefusedInput } from "../../src/mapping/mapping.ts";
import { openMapping } from "../../src/mapping/source-mapping.ts";
import { mqttDriver } from "../../src/source/mqtt/driver.ts";
import { openMessageReceiver } from "../../src/source/mqtt/receiver/message-receiver.ts";
import { environmentOf } from "./config.ts";
import { ManualClock, testRuntime } from "./runtime.ts";

/** Folders with the messages of a device or system, and the points of the tags next to them. */
export const payloadFixtures = join(import.meta.dirname, "../fixtures/mqtt");

export const messagesFile = z.array(
  z
    .strictObject({
      topic: z.string(),
      payload: z.string().optional(),
      hex: z.string().optional(),
      retained: z.boolean().default(false),
    })
    .transform(({ topic, payload = "", hex, retained }) => ({
      topic,
      payload: hex === undefined ? Buffer.from(payload) : Buffer.from(hex, "hex"),
      retained,
    })),
);
export const pointsFile = z.array(z.tuple([z.string(), z.string(), z.number()]));

/** `messages.json` or `points.json` of the fixture `name`. */
export function readFixture<T extends z.ZodType>(file: T, name: string, part: "messages" | "points"): z.output<T> {
  return file.parse(JSON.parse(readFileSync(join(payloadFixtures, name, `${part}.json`), "utf8")));
}

/** A point as a fixture has it: Input ID, time with microseconds, value. */
export function brief({ input, time, value }: Point): [string, string, number] {
  const micros = String(time % 1_000).padStart(3, "0");
  return [input, new Date(Math.floor(time / 1_000)).toISOString().replace("Z", `${micros}Z`), value];
}

export interface ReceivedMessage {
  readonly topic: string;
  readonly payload: Buffer | string;
  readonly retained?: boolean;
}

export interface MappedMessages {
  readonly points: readonly Point[];
  readonly refused: readonly RefusedInput[];
  /** What the status shows about the last value that only its position identifies. */
  readonly lastUnnamed: string | number | undefined;
  /** The warnings of `check` about the tags. */
  readonly warnings: readonly string[];
}

/** `tagsYaml` is the list of tags. As `mapConfigured`. */
export function mapMessages(tagsYaml: string, messages: readonly ReceivedMessage[]): Promise<MappedMessages> {
  return mapConfigured(configuration(tagsYaml), messages, { SERVICE_PASSWORD: "x" });
}

/**
 * `text` is a configuration with one source, `variables` its environment. Messages arrive on 2026-08-01. Rejects with the
 * errors of the configuration.
 */
export async function mapConfigured(
  text: string,
  messages: readonly ReceivedMessage[],
  variables: Readonly<Record<string, string>>,
): Promise<MappedMessages> {
  const runtime = testRuntime({ clock: new ManualClock("2026-08-01T00:00:00Z") });
  const { tags, rules, warnings } = await configured(text, variables);
  using mapping = openMapping({ source: "line", rules, catalog: { describe: () => {} } }, runtime);
  const link = { acknowledge: () => {}, resume: () => {}, publish: () => {} };
  const options = { source: "line", tags, maxPayload: 1_048_576, requestRebirth: false };
  const receiver = openMessageReceiver(options, runtime, link);
  for (const { topic, payload, retained = false } of messages)
    receiver.receive({ topic, payload: Buffer.from(payload), retained, held: undefined });
  // Readings are available at once or not at all.
  const stopped = AbortSignal.abort(new Error("nothing more comes"));
  const { value: delivery } = await receiver.deliveries(stopped).next();
  const points = delivery ? mapping.map(delivery) : [];
  return { points, refused: mapping.refusals(), lastUnnamed: receiver.details["lastUnnamed"], warnings };
}

const configuration = (tagsYaml: string) => `
version: 1
service:
  url: http://127.0.0.1:8420/v1
  integration: c8ktonqsahsmemfs7lv0
  auth: { basic: { password: "\${SERVICE_PASSWORD}" } }
sources:
  line:
    type: mqtt
    url: mqtt://127.0.0.1
    tags:
${tagsYaml.replaceAll(/^/gm, "      ")}`;

async function configured(text: string, variables: Readonly<Record<string, string>>) {
  const environment = environmentOf(variables, { "/site/agent.yaml": text });
  const { sources, warnings } = await loadConfig("agent.yaml", environment, [mqttDriver]).catch((error: unknown) => {
    throw new Error(JSON.stringify(error instanceof Error ? error.cause : error, undefined, 2));
  });
  const [source] = sources;
  if (!source) throw new Error("no source");
  return {
    rules: source.rules,
    // The output of the driver's schema. The configuration's type is a plain object, because it holds tags of any
    // driver.
    tags: source.tags as unknown as z.output<typeof mqttDriver.tag>[],
    warnings: warnings.map(formatIssue),
  };
}
