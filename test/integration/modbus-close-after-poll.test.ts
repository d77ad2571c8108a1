// Devices that allow a single connection: other clients can connect between two polls.
// Gateways that close the connection after each reply.
import { expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { modbusDevice } from "../support/modbus-device.ts";
import { keepReading } from "../support/modbus-keep-reading.ts";

const tags = [
  { at: "hr:0", every: 500 },
  { at: "hr:500", every: 500 },
];

test("with closeAfterPoll the connection is closed between polls, and no reading is lost", async () => {
  await using device = await modbusDevice();
  device.unit(1);
  await using kept = keepReading({ url: device.url, closeAfterPoll: true, timeout: "10s" }, tags);
  for (let polls = 0; polls < 3; polls++) {
    const before = kept.count("good");
    await eventually(() => kept.count("good") >= before + 2);
    await eventually(() => device.connections === 0);
  }

  expect(kept.losses).toEqual([]);
  expect(kept.count("bad")).toBe(0);
});

test("while another client has the only connection the source is unreachable, and afterwards it is read again", async () => {
  await using device = await modbusDevice();
  device.unit(1);
  await using kept = keepReading({ url: device.url, closeAfterPoll: true, timeout: "10s" }, tags);
  await eventually(() => kept.count("good") > 0 && device.connections === 0);

  await device.listen(false);
  await eventually(() => kept.losses.length >= 2);
  const before = kept.count("good");
  await device.listen(true);
  await eventually(() => kept.count("good") >= before + 2);

  expect(new Set(kept.losses)).toEqual(new Set(["SOURCE_UNREACHABLE"]));
});

test("without closeAfterPoll the connection stays open", async () => {
  await using device = await modbusDevice();
  device.unit(1);
  await using kept = keepReading({ url: device.url, timeout: "10s" }, tags);
  await eventually(() => kept.count("good") >= 6);

  expect(device.accepted).toBe(1);
});

test("a gateway that closes the connection after each reply gives every value of each poll", async () => {
  await using device = await modbusDevice();
  device.unit(1);
  device.answered = () => device.disconnect();
  const three = ["hr:0", "hr:500", "hr:1000"].map((at) => ({ at, every: 200 }));
  await using kept = keepReading({ url: device.url, timeout: "10s" }, three);
  await eventually(() => kept.count("good", 0) >= 4);

  expect(kept.count("bad")).toBe(0);
  expect(kept.losses).toEqual([]);
});
