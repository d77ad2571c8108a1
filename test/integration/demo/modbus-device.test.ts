import { connect } from "node:net";
import { expect, test } from "vitest";
import { DeliveredRecord } from "../../../src/demo/comparison.ts";
import { openModbusDevice } from "../../../src/demo/modbus-device.ts";
import { testRuntime } from "../../support/runtime.ts";

const signal = new AbortController().signal;

function open(record = new DeliveredRecord()) {
  return openModbusDevice({ tags: 14, everyMs: 500, record }, testRuntime(), signal);
}

/** Sends frames, given in hexadecimal, over one connection. Returns the answers in hexadecimal. */
async function talk(url: string, ...frames: string[]): Promise<string[]> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  const chunks = socket[Symbol.asyncIterator]();
  const answers: string[] = [];
  for (const frame of frames) {
    socket.write(Buffer.from(frame.replaceAll(" ", ""), "hex"));
    const { value, done } = await chunks.next();
    answers.push(done ? "closed" : Buffer.from(value).toString("hex"));
  }
  socket.destroy();
  return answers;
}

const readVoltage = "0001 0000 0006 01 03 0000 0001";

test("a read returns the registers of its unit, with a new value each time", async () => {
  const record = new DeliveredRecord();
  await using meters = await open(record);
  const answers = await talk(meters.url, readVoltage, readVoltage, "0009 0000 0006 02 03 0000 0001");
  expect(answers).toEqual(["0001000000050103020190", "0001000000050103020191", "0009000000050203020190"]);
  expect(record.count).toBe(3);
});

test("a missing register is refused as the protocol defines", async () => {
  await using meters = await open();
  const answers = await talk(
    meters.url,
    "0001 0000 0006 01 06 0000 0001",
    "0002 0000 0006 01 03 0008 0001",
    "0003 0000 0006 09 03 0000 0001",
  );
  expect(answers).toEqual(["000100000003018601", "000200000003018302", "00030000000309830b"]);
});

test("a frame that is not Modbus ends the connection", async () => {
  await using meters = await open();
  expect(await talk(meters.url, "0001 dead 0006 01 03 0000 0001")).toEqual(["closed"]);
});

test("after the stop the device answers busy and serves no more values", async () => {
  const record = new DeliveredRecord();
  await using meters = await open(record);
  await talk(meters.url, readVoltage);
  await meters.stop(signal);
  expect(await talk(meters.url, readVoltage)).toEqual(["000100000003018306"]);
  expect(record.count).toBe(1);
});

test("the stop waits for the next request of a client that was served", async () => {
  await using meters = await open();
  const socket = connect(Number(new URL(meters.url).port), "127.0.0.1");
  const answered = () => new Promise((resolve) => socket.once("data", resolve));
  const frame = Buffer.from(readVoltage.replaceAll(" ", ""), "hex");
  socket.write(frame);
  await answered();
  let stopped = false;
  const stopping = meters.stop(signal).then(() => {
    stopped = true;
  });
  // Longer than the interval at which the stop looks for new requests.
  await new Promise((resolve) => setTimeout(resolve, 60));
  expect(stopped).toBe(false);
  socket.write(frame);
  await Promise.all([answered(), stopping]);
  socket.destroy();
});
