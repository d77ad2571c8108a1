import { connect, connectAsync } from "mqtt";
import { expect, test } from "vitest";
import { DeliveredRecord } from "../../../src/demo/comparison.ts";
import { openMqttDevice } from "../../../src/demo/mqtt-device.ts";
import { eventually } from "../../support/eventually.ts";
import { testRuntime } from "../../support/runtime.ts";

const signal = new AbortController().signal;
const session = { username: "gateway", password: "demo", clientId: "agent", clean: false };

test("the broker requires user name and password", async () => {
  await using hall = await openMqttDevice(
    { tags: 2, everyMs: 20, record: new DeliveredRecord() },
    testRuntime(),
    signal,
  );
  const wrong = connectAsync(hall.url, { ...session, password: "guess", reconnectPeriod: 0 });
  await expect(wrong).rejects.toThrow(/not authorized|bad user name/i);
});

test("no value is published before a subscription exists, and values are kept for an offline client", async () => {
  const record = new DeliveredRecord();
  await using hall = await openMqttDevice({ tags: 2, everyMs: 20, record }, testRuntime(), signal);
  const before = await connectAsync(hall.url, session);
  expect(record.count).toBe(0);
  await before.subscribeAsync("demo/+/climate", { qos: 1 });
  await before.endAsync(true);
  await eventually(() => record.count >= 20);

  let stopped = false;
  const stopping = hall.stop(signal).then(() => {
    stopped = true;
  });
  const received = new Set<number>();
  const after = connect(hall.url, session);
  after.on("message", (_topic, payload) => {
    // The device must not report that it has stopped before it has received the last acknowledgement.
    expect(stopped).toBe(false);
    received.add((JSON.parse(payload.toString()) as { co2: number }).co2); // the simulated device writes this payload
  });
  await stopping;
  await after.endAsync();
  const delivered = [...record.values].find(([input]) => input === "demo.room1.co2")?.[1];
  expect(received).toEqual(delivered);
});
