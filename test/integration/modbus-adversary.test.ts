// The adversary on a real socket: whatever it does, what is stored is right, and polling goes on.
import { createServer } from "node:net";
import { expect, test } from "vitest";
import { isAgentError } from "../../src/core/errors.ts";
import type { Reading } from "../../src/core/source.ts";
import { adversary, honestWord, mbapFrame } from "../support/modbus-adversary.ts";
import { openModbusSource } from "../support/modbus-source.ts";
import { seeded, testRuntime } from "../support/runtime.ts";

/** A server that answers every request as the adversary says. */
async function adversaryServer(seed: number) {
  const device = adversary(mbapFrame, seeded(seed), { honesty: 0.8 });
  const server = createServer((socket) => {
    device.reconnected();
    let received = Buffer.alloc(0);
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      received = Buffer.concat([received, chunk]);
      for (; received.length >= 12; received = received.subarray(12)) {
        const { chunks, reset } = device.answer({
          id: received.readUInt16BE(0),
          unit: received.readUInt8(6),
          start: received.readUInt16BE(8),
          count: received.readUInt16BE(10),
        });
        for (const piece of chunks) socket.write(piece);
        if (reset) socket.resetAndDestroy();
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address ? address.port : 0;
  return {
    url: `tcp://127.0.0.1:${port}`,
    done: device.done,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

test("of a device that does everything wrong every good reading is right, every other says why, and polling goes on", async () => {
  await using server = await adversaryServer(7);
  const runtime = testRuntime();
  const signal = AbortSignal.timeout(25_000);
  // Blocks of their own, of one and of two registers.
  const tags = Array.from({ length: 40 }, (_, i) => ({
    at: `hr:${i * 20} ${i % 2 ? "u16" : "u32"}`,
    unit: 1 + (i % 20),
  }));
  const readings: Reading[] = [];
  let opened = 0;
  while (readings.filter((reading) => reading.quality === "good").length < 200) {
    opened++;
    await using source = await openModbusSource({ url: server.url, timeout: "12ms" }, tags, runtime, signal);
    try {
      for await (const delivery of source.deliveries(signal)) {
        readings.push(...delivery.readings);
        if (readings.filter((reading) => reading.quality === "good").length >= 200) break;
      }
    } catch (error) {
      expect(isAgentError(error)).toBe(true);
    }
  }

  for (const { tag, value, quality, reason } of readings) {
    const start = tag * 20;
    const right = tag % 2 ? honestWord(start) : honestWord(start) * 65_536 + honestWord(start + 1);
    if (quality === "good") expect(value).toBe(right);
    else expect([value, reason === undefined || reason === ""]).toEqual([undefined, false]);
  }
  expect(opened).toBeGreaterThan(1);
  expect(server.done.size).toBeGreaterThan(12);
  expect(runtime.metric("source_modbus_discarded_replies_total")).toBeGreaterThan(0);
});
