// From the tags of an MQTT source, as they stand in a configuration, and messages to points: without a broker.
import type { z } from "zod";
import { formatIssue } from "../../src/config/issue.ts";
import { loadConfig } from "../../src/config/load.ts";
import type { Point } from "../../src/core/point.ts";
import type { RefusedInput } from "../../src/mapping/mapping.ts";
import { openMapping } from "../../src/mapping/source-mapping.ts";
import { mqttDriver } from "../../src/source/mqtt/driver.ts";
import { openReception, type Reception } from "../../src/source/mqtt/reception/reception.ts";
import { environmentOf } from "./config.ts";
import { ManualClock, testRuntime } from "./runtime.ts";

export interface ReceivedMessage {
  readonly topic: string;
  readonly payload: Buffer | string;
  readonly retained?: boolean;
}

export interface MappedMessages {
  readonly points: readonly Point[];
  readonly refused: readonly RefusedInput[];
  /** What the status says of the last value that nothing but a position distinguishes. */
  readonly lastUnnamed: string | number | undefined;
  /** What `check` says of the tags. */
  readonly warnings: readonly string[];
}

/** `tagsYaml`: the list of tags. Messages arrive on 2026-08-01. Rejects with what is wrong with the configuration. */
export async function mapMessages(tagsYaml: string, messages: readonly ReceivedMessage[]): Promise<MappedMessages> {
  const runtime = testRuntime({ clock: new ManualClock("2026-08-01T00:00:00Z") });
  const { tags, rules, warnings } = await configured(tagsYaml);
  using mapping = openMapping({ source: "line", rules, catalog: { describe: () => {} } }, runtime);
  const link = { acknowledge: () => {}, resume: () => {}, publish: () => {} };
  const options = { source: "line", tags, maxPayload: 1_048_576, requestRebirth: false };
  const reception = openReception(options, runtime, link);
  for (const { topic, payload, retained = false } of messages)
    reception.receive({ topic, payload: Buffer.from(payload), retained, held: undefined });
  const delivery = messages.length === 0 ? undefined : await takeSome(reception);
  const points = delivery ? mapping.map(delivery) : [];
  return { points, refused: mapping.refusals(), lastUnnamed: reception.details["lastUnnamed"], warnings };
}

/** Undefined: nothing came of the messages. */
async function takeSome(reception: Reception) {
  const stop = new AbortController();
  const taken = reception.take(stop.signal).catch(() => undefined);
  // What there is comes at once.
  await new Promise((resolve) => setImmediate(resolve));
  stop.abort(new Error("nothing came"));
  return await taken;
}

async function configured(tagsYaml: string) {
  const text = `
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
  const environment = environmentOf({ SERVICE_PASSWORD: "x" }, { "/site/agent.yaml": text });
  const { sources, warnings } = await loadConfig("agent.yaml", environment, [mqttDriver]).catch((error: unknown) => {
    throw new Error(JSON.stringify(error instanceof Error ? error.cause : error, undefined, 2));
  });
  const [source] = sources;
  if (!source) throw new Error("no source");
  return {
    rules: source.rules,
    // What the driver's schema gave; the configuration knows it of any driver as a plain object only.
    tags: source.tags as unknown as z.output<typeof mqttDriver.tag>[],
    warnings: warnings.map(formatIssue),
  };
}
