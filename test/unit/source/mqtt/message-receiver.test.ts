import { expect, test } from "vitest";
import type { Captures, Delivery, Reading } from "../../../../src/core/source.ts";
import { openMessageReceiver } from "../../../../src/source/mqtt/receiver/message-receiver.ts";
import { mqttConfig } from "../../../support/mqtt-source.ts";
import { ManualClock, testRuntime } from "../../../support/runtime.ts";
import { sparkplugPayload } from "../../../support/sparkplug.ts";

const never = new AbortController().signal;

async function next(deliveries: AsyncGenerator<Delivery, void>): Promise<Delivery> {
  const { value } = await deliveries.next();
  if (!value) throw new Error("no more deliveries");
  return value;
}

test("100,000 topics in rotation are looked up once each", async () => {
  const { tags } = mqttConfig({ options: { url: "mqtt://broker" }, tags: [{ topic: "line/{n}" }] });
  const link = { acknowledge() {}, publish() {}, resume() {} };
  const options = { source: "hall", tags, maxPayload: 100, requestRebirth: false };
  const receiver = openMessageReceiver(options, testRuntime(), link);
  const deliveries = receiver.deliveries(never);
  const payload = Buffer.from("1");
  const last = 100_001;
  const seen: Captures[] = [];
  for (let i = 0; i <= last; i++) {
    const goesOn = receiver.receive({ topic: `line/${i % 100_000}`, payload, retained: false, held: undefined });
    if (goesOn && i < last) continue;
    const delivery = await next(deliveries);
    for (const { captures } of delivery.readings) if (captures["n"] === "1") seen.push(captures);
    delivery.ack();
  }

  expect(seen).toHaveLength(2);
  expect(seen[1]).toBe(seen[0]);
});

test("a delivery hurries once half of the learned window is in flight", async () => {
  const { tags } = mqttConfig({ options: { url: "mqtt://broker" }, tags: [{ topic: "line/{n}" }] });
  const clock = new ManualClock();
  const acknowledged: number[] = [];
  const link = { acknowledge: (held: readonly number[]) => acknowledged.push(...held), publish() {}, resume() {} };
  const options = { source: "hall", tags, maxPayload: 100, requestRebirth: false };
  const receiver = openMessageReceiver(options, testRuntime({ clock }), link);
  const deliveries = receiver.deliveries(never);
  let sent = 0;
  const send = async (messages: number) => {
    for (let i = 0; i < messages; i++)
      receiver.receive({ topic: "line/1", payload: Buffer.from("1"), retained: false, held: ++sent });
    await clock.advance(0);
  };
  const take = async () => {
    const delivery = await next(deliveries);
    let isHurried = false;
    void delivery.hurry?.then(() => (isHurried = true));
    return { ack: () => delivery.ack(), isHurried: () => isHurried };
  };

  // The broker has a backlog and sends 20 messages at a time.
  for (let round = 0; round < 2; round++) {
    await send(20);
    const delivery = await take();
    await clock.advance(50);
    expect(delivery.isHurried()).toBe(false);
    delivery.ack();
  }
  // The backlog is drained.
  await send(9);
  const slow = await take();
  await clock.advance(10);
  expect(slow.isHurried()).toBe(false);
  await send(1);
  expect(slow.isHurried()).toBe(true);
  slow.ack();

  expect(acknowledged).toEqual(Array.from({ length: 49 }, (_, i) => i + 1));
});

test("Sparkplug messages that wait for a missing one are read when the source stops, and nothing is published", async () => {
  const { tags } = mqttConfig({
    options: { url: "mqtt://broker" },
    tags: [{ topic: "spBv1.0/#", format: "sparkplugB" }],
  });
  const published: string[] = [];
  const link = { acknowledge() {}, publish: (topic: string) => void published.push(topic), resume() {} };
  const options = { source: "hall", tags, maxPayload: 1_000, requestRebirth: true };
  const clock = new ManualClock();
  const receiver = openMessageReceiver(options, testRuntime({ clock }), link);
  const send = (type: string, seq: number, int: number) => {
    const payload = sparkplugPayload({ seq, metrics: [{ name: "Speed", datatype: 3, int }] });
    receiver.receive({ topic: `spBv1.0/G1/${type}/E1`, payload, retained: false, held: undefined });
  };
  send("NBIRTH", 0, 1);
  send("NDATA", 2, 3);
  await clock.advance(0);

  const stopped = AbortSignal.abort(new Error("stopped"));
  const readings: Reading[] = [];
  for await (const delivery of receiver.deliveries(stopped)) readings.push(...delivery.readings);

  expect(readings.map(({ value }) => value)).toEqual([1, 3]);
  expect(published).toEqual([]);
});

test("a message that was skipped for its properties is not reported as too large or as invalid JSON", async () => {
  const { tags } = mqttConfig({ options: { url: "mqtt://broker" }, tags: [{ topic: "line/1", value: "$.v" }] });
  const link = { acknowledge() {}, publish() {}, resume() {} };
  const runtime = testRuntime();
  const receiver = openMessageReceiver({ source: "hall", tags, maxPayload: 100, requestRebirth: false }, runtime, link);
  receiver.receive({ topic: "line/1", payload: Buffer.alloc(0), skippedBytes: 7, retained: false, held: undefined });

  const { readings } = await next(receiver.deliveries(never));
  expect(readings).toMatchObject([{ reason: "payload was not read: its properties have more than 65536 bytes" }]);
  expect(receiver.details).toMatchObject({
    lastOversized: "line/1: its properties have more than 65536 bytes: narrow the topic of the tag",
  });
  expect(runtime.lines.map(({ message }) => message)).toEqual([
    "a message with too long properties was skipped; narrow the topic of the tag",
  ]);
});
