// The adversary on a real socket: whatever it does, what is stored is right, and polling goes on.
import { createServer } from "node:net";
import { expect, test } from "vitest";
import { isAgentError } from "../../src/core/errors.ts";
import type { Reading } from "../../src/core/source.ts";
import { adversary, honestWord, mbapFrame } from "../support/modbus-adversary.ts";
import { openModbusSource } from "../support/modbus-source.ts";
import { seeded, type TestRuntime, testRuntime } from "../support/runtime.ts";

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

// Blocks of their own, of one and of two registers.
const tags = Array.from({ length: 40 }, (_, i) => ({
  at: `hr:${i * 20} ${i % 2 ? "u16" : "u32"}`,
  unit: 1 + (i % 20),
}));

/** What is wrong with a reading, if anything is. */
function faultOf({ tag, value, quality, reason }: Reading): string | undefined {
  const start = tag * 20;
  const right = tag % 2 ? honestWord(start) : honestWord(start) * 65_536 + honestWord(start + 1);
  if (quality === "good") return value === right ? undefined : `tag ${tag} is ${value} instead of ${right}`;
  return value === undefined && reason ? undefined : `tag ${tag} is ${value}, which is ${quality}: ${reason}`;
}

/** Polls, and opens anew whenever the connection is lost, until `enough`; gives all faults. */
async function endure(url: string, runtime: TestRuntime, signal: AbortSignal, enough: (reading: Reading) => boolean) {
  const faults: string[] = [];
  let opened = 0;
  let done = false;
  while (!done) {
    opened++;
    try {
      await using source = await openModbusSource({ url, timeout: "12ms" }, tags, runtime, signal);
      for await (const { readings } of source.deliveries(signal)) {
        for (const reading of readings) {
          const fault = faultOf(reading);
          if (fault !== undefined) faults.push(fault);
          done ||= enough(reading);
        }
        if (done) break;
      }
      if (!done) throw new Error(`polling hung or ended: ${String(signal.reason)}`);
    } catch (error) {
      if (!isAgentError(error)) throw error;
    }
  }
  return { faults, opened };
}

test("of a device that does everything wrong every good reading is right, every other says why, and polling goes on", async () => {
  await using server = await adversaryServer(7);
  const runtime = testRuntime();
  let good = 0;

  const { faults, opened } = await endure(server.url, runtime, AbortSignal.timeout(25_000), ({ quality }) => {
    if (quality === "good") good++;
    return good >= 200;
  });

  expect(faults).toEqual([]);
  expect(opened).toBeGreaterThan(1);
  expect(server.done.size).toBeGreaterThan(12);
  expect(runtime.metric("source_modbus_discarded_replies_total")).toBeGreaterThan(0);
});

// `TAGFERRY_ADVERSARY=1000000 npx vitest run --config test/vitest.config.ts test/integration/modbus-adversary`
const replies = Number(process.env.TAGFERRY_ADVERSARY ?? 0);

test.runIf(replies > 0)(
  `the same of 150 devices at once, for ${replies} replies`,
  async () => {
    const answered = (server: { done: ReadonlyMap<string, number> }) =>
      server.done.values().reduce((sum, count) => sum + count, 0);
    const all = await Promise.all(
      Array.from({ length: 150 }, async (_, seed) => {
        await using server = await adversaryServer(1_000 + seed);
        const runtime = testRuntime({ seed });
        // Looked at with each reading: if there is none, or no end, the signal says so.
        const enough = () => answered(server) >= replies / 150;
        const { faults } = await endure(server.url, runtime, AbortSignal.timeout(1_200_000), enough);
        return { faults, answered: answered(server) };
      }),
    );

    expect(all.flatMap(({ faults }) => faults)).toEqual([]);
    expect(all.reduce((sum, server) => sum + server.answered, 0)).toBeGreaterThanOrEqual(replies);
  },
  1_300_000,
);
