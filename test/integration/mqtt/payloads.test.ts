// Payloads of real devices, from configuration to points. A folder of test/fixtures/mqtt contains the tags of the
// configuration, messages, and the expected points. Times of arrival are on 2026-08-01.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Point } from "../../../src/core/point.ts";
import {
  brief,
  mapMessages,
  messagesFile,
  payloadFixtures,
  pointsFile,
  readFixture,
} from "../../support/mqtt-points.ts";

const devices = readdirSync(payloadFixtures);

test.each(devices)("%s", async (device) => {
  const expected = readFixture(pointsFile, device, "points");
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
    const expected = readFixture(pointsFile, device, "points");
    const points = (await pointsOf(device, hostile)).map(brief);
    for (const point of expected) expect(points).toContainEqual(point);
  }
});

/** The points of a fixture. After each of its messages, every payload in `between` arrives on the same topic. */
async function pointsOf(device: string, between: readonly Buffer[] = []): Promise<readonly Point[]> {
  const messages = readFixture(messagesFile, device, "messages");
  const tags = readFileSync(join(payloadFixtures, device, "tags.yaml"), "utf8");
  const received = messages.flatMap(({ payload, ...message }) =>
    [payload, ...between].map((bytes) => ({ ...message, payload: bytes })),
  );
  return (await mapMessages(tags, received)).points;
}

/** Formats whose mapping takes one line, which docs/payloads.md shows. */
const documented = ["telegraf", "telegraf-batch", "chirpstack-names", "aws-sitewise", "azure-bodies", "opcua-pubsub"];

test.each(documented)(
  "the tags of %s stand in docs/payloads.md, and check has nothing to say about them",
  async (device) => {
    const page = readFileSync(join(import.meta.dirname, "../../../docs/payloads.md"), "utf8");
    const tags = readFileSync(join(payloadFixtures, device, "tags.yaml"), "utf8");
    for (const line of tags.trimEnd().split("\n")) expect(page).toContain(line);
    expect((await mapMessages(tags, [])).warnings).toEqual([]);
  },
);
