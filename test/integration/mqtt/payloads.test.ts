// Payloads of real devices, from configuration to points. A folder of test/fixtures/mqtt has the tags as they stand in
// the configuration, messages, and the points that must come of them; times of arrival are 2026-08-01.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { z } from "zod";
import { loadConfig } from "../../../src/config/load.ts";
import type { Point } from "../../../src/core/point.ts";
import { openMapping } from "../../../src/mapping/mapping.ts";
import { mqttDriver } from "../../../src/source/mqtt/driver.ts";
import { Reception } from "../../../src/source/mqtt/reception.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";

const fixtures = join(import.meta.dirname, "../../fixtures/mqtt");
const devices = readdirSync(fixtures);
const { signal } = new AbortController();

const messagesFile = z.array(
  z.strictObject({
    topic: z.string(),
    payload: z.string().optional(),
    hex: z.string().optional(),
    retained: z.boolean().default(false),
  }),
);
const pointsFile = z.array(z.tuple([z.string(), z.string(), z.number()]));

test.each(devices)("%s", async (device) => {
  const expected = pointsFile.parse(JSON.parse(readFileSync(join(fixtures, device, "points.json"), "utf8")));
  expect((await pointsOf(device)).map(brief)).toEqual(expected);
});

test("hostile payloads among those of every device change none of their points", async () => {
  const hostile = [
    Buffer.from('{"value":'),
    Buffer.from("NaN"),
    Buffer.alloc(2_000_000, 32),
    Buffer.from([0xff, 0xfe, 0xfd]),
    Buffer.from('{"a":1e400}'),
    Buffer.from("[".repeat(10_000)),
    Buffer.from(`${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}`),
    Buffer.from("{}"),
  ];
  for (const device of devices) {
    const expected = pointsFile.parse(JSON.parse(readFileSync(join(fixtures, device, "points.json"), "utf8")));
    const points = (await pointsOf(device, hostile)).map(brief);
    for (const point of expected) expect(points).toContainEqual(point);
  }
});

/** Points of a fixture; after each of its messages every one of `between` comes on the same topic. */
async function pointsOf(device: string, between: readonly Buffer[] = []): Promise<readonly Point[]> {
  const runtime = testRuntime({ clock: new ManualClock("2026-08-01T00:00:00Z") });
  const messages = messagesFile.parse(JSON.parse(readFileSync(join(fixtures, device, "messages.json"), "utf8")));
  const { tags, rules } = await configured(readFileSync(join(fixtures, device, "tags.yaml"), "utf8"));
  using mapping = openMapping({ source: "line", rules, catalog: { describe: () => {} } }, runtime);
  const link = { acknowledge: () => {}, resume: () => {}, publish: () => {} };
  const options = { source: "line", tags, maxPayload: 1_048_576, requestRebirth: false };
  const reception = new Reception(options, runtime, link);
  for (const { topic, payload, hex, retained } of messages) {
    const bytes = hex === undefined ? Buffer.from(payload ?? "") : Buffer.from(hex, "hex");
    for (const each of [bytes, ...between]) reception.receive({ topic, payload: each, retained, held: undefined });
  }
  return mapping.map(await reception.take(signal));
}

async function configured(tagsYaml: string) {
  const indented = tagsYaml.replaceAll(/^/gm, "      ");
  const text = `
version: 1
service:
  url: http://127.0.0.1:8420/v1
  integration: c8ktonqsahsmemfs7lv0
  auth: { basic: { password: x } }
sources:
  line:
    type: mqtt
    url: mqtt://127.0.0.1
    tags:
${indented}`;
  const environment = {
    hostname: "north",
    variables: {},
    cwd: "/",
    readFile: () => Promise.resolve(Buffer.from(text)),
    listFolder: () => Promise.resolve([]),
  };
  const { sources } = await loadConfig("agent.yaml", environment, [mqttDriver]).catch((error: unknown) => {
    throw new Error(JSON.stringify(error instanceof Error ? error.cause : error, undefined, 2));
  });
  const [source] = sources;
  if (!source) throw new Error("no source");
  // What the driver's schema gave; the configuration knows it of any driver as a plain object only.
  return { rules: source.rules, tags: source.tags as unknown as z.output<typeof mqttDriver.tag>[] };
}

function brief({ input, time, value }: Point): [string, string, number] {
  const micros = String(time % 1_000).padStart(3, "0");
  return [input, new Date(Math.floor(time / 1_000)).toISOString().replace("Z", `${micros}Z`), value];
}
