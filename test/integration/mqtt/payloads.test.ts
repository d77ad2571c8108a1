// Payloads of real devices, from configuration to points. A folder of test/fixtures/mqtt contains the tags of the
// configuration, messages, and the expected points. Times of arrival are on 2026-08-01.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { z } from "zod";
import type { Point } from "../../../src/core/point.ts";
import { mapMessages } from "../../support/mqtt-points.ts";

const fixtures = join(import.meta.dirname, "../../fixtures/mqtt");
const devices = readdirSync(fixtures);

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

test("hostile payloads among those of every device do not change their points", async () => {
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

/** The points of a fixture. After each of its messages, every payload in `between` arrives on the same topic. */
async function pointsOf(device: string, between: readonly Buffer[] = []): Promise<readonly Point[]> {
  const messages = messagesFile.parse(JSON.parse(readFileSync(join(fixtures, device, "messages.json"), "utf8")));
  const tags = readFileSync(join(fixtures, device, "tags.yaml"), "utf8");
  const received = messages.flatMap(({ topic, payload, hex, retained }) =>
    [hex === undefined ? Buffer.from(payload ?? "") : Buffer.from(hex, "hex"), ...between].map((bytes) => ({
      topic,
      payload: bytes,
      retained,
    })),
  );
  return (await mapMessages(tags, received)).points;
}

/** Formats whose mapping takes one line, which docs/payloads.md shows. */
const documented = ["telegraf", "telegraf-batch", "chirpstack-names", "aws-sitewise", "azure-bodies", "opcua-pubsub"];

test.each(documented)(
  "the tags of %s stand in docs/payloads.md, and check has nothing to say about them",
  async (device) => {
    const page = readFileSync(join(import.meta.dirname, "../../../docs/payloads.md"), "utf8");
    const tags = readFileSync(join(fixtures, device, "tags.yaml"), "utf8");
    for (const line of tags.trimEnd().split("\n")) expect(page).toContain(line);
    expect((await mapMessages(tags, [])).warnings).toEqual([]);
  },
);

function brief({ input, time, value }: Point): [string, string, number] {
  const micros = String(time % 1_000).padStart(3, "0");
  return [input, new Date(Math.floor(time / 1_000)).toISOString().replace("Z", `${micros}Z`), value];
}
