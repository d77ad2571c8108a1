// Polls over connections that break and reopen, of a device that does not answer where others answer with an exception.
import { expect, test } from "vitest";
import { AgentError, isAgentError } from "../../../../src/core/errors.ts";
import { epochMicros } from "../../../../src/core/point.ts";
import type { ReadingBatch } from "../../../../src/core/reading.ts";
import { readingsOf } from "../../../../src/lib/readings/reading-batch.ts";
import type { UnitRequest } from "../../../../src/source/modbus/config/pdu.ts";
import type { BlockBoundary } from "../../../../src/source/modbus/config/plan.ts";
import { pollTargets } from "../../../../src/source/modbus/config/tag-reads.ts";
import { probeBudget, unitBreaker } from "../../../../src/source/modbus/connection/breaker.ts";
import { openModbusConnection } from "../../../../src/source/modbus/connection/modbus-connection.ts";
import type { Exchange } from "../../../../src/source/modbus/connection/result.ts";
import { Poll } from "../../../../src/source/modbus/polling/poll.ts";
import { latest, modbusConfig } from "../../../support/modbus-source.ts";
import { ManualClock, testRuntime } from "../../../support/runtime.ts";

const { signal } = new AbortController();

/**
 * Polls a unit with a register per tag as a source does. The device does not answer requests for which `isSilent` is
 * true.
 * With `closes` it closes the connection instead.
 */
async function polled(
  addresses: readonly number[],
  isSilent: (start: number, count: number) => boolean,
  cycles: number,
  closes = false,
): Promise<{ values: readonly unknown[]; losses: number; connections: number }> {
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  const config = modbusConfig(
    { url: "tcp://127.0.0.1" },
    addresses.map((address) => ({ at: `hr:${address}` })),
  );
  const targets = pollTargets(config);
  let connections = 0;
  const opened = (lost?: AgentError): Exchange => ({
    resync: () => undefined,
    get lost() {
      return lost;
    },
    stale: false,
    discarded: 0,
    receivedAt: Number.NEGATIVE_INFINITY,
    async run(request: UnitRequest, timeoutMs) {
      if ("identity" in request) throw new Error("never asked");
      const { start, count } = request;
      const silent = isSilent(start, count);
      await clock.advance(silent && !closes ? timeoutMs : 10);
      if (silent && closes) throw (lost = new AgentError("SOURCE_UNREACHABLE", "the device closed the connection"));
      if (silent) return { kind: "silence", mismatch: undefined, received: false };
      const bytes = Array.from({ length: count }, (_, i) => [(start + i) >> 8, (start + i) & 0xff]).flat();
      return { kind: "data", bytes: Uint8Array.from(bytes), at: epochMicros(0), tookMs: 10 };
    },
    async [Symbol.asyncDispose]() {},
  });
  const open = async () => {
    connections++;
    return opened();
  };
  const cuts: BlockBoundary[] = [];
  const connect = async () => {
    const options = { name: "bus", units: new Set([1]), delayMs: 0, pauseAfterConnectMs: 0, isCloseable: true };
    const link = await openModbusConnection({ ...options, connect: open }, runtime, signal);
    const breaker = unitBreaker(clock, runtime.random, probeBudget(clock));
    return targets.map(
      (target) =>
        new Poll(
          {
            target,
            time: "poll",
            retries: 0,
            restMs: 0,
            link,
            mayBePatient: () => false,
            breaker,
            quirks: { cuts: () => cuts, add: (_unit, cut) => cuts.push(cut) },
          },
          runtime,
        ),
    );
  };
  let polls = await connect();
  let losses = 0;
  const readings: ReadingBatch[] = [];
  for (let i = 0; i < cycles; i++) {
    try {
      for (const poll of polls) await poll.cycle(clock.now(), readings, signal);
    } catch (error) {
      if (!isAgentError(error, "SOURCE_UNREACHABLE")) throw error;
      losses++;
      polls = await connect();
    }
    await clock.advance(1_000);
  }
  return { values: latest(readingsOf(readings)).map((reading) => reading?.value), losses, connections };
}

const numbers = (from: number, count: number) => Array.from({ length: count }, (_, i) => from + i);

test.each([1, 2, 5, 20, 59])(
  "of a device that is silent when asked for more than %i registers, and is asked for nothing else, 60 of 60 tags are read on the first connection",
  async (most) => {
    const { values, losses } = await polled(numbers(0, 60), (_start, count) => count > most, 10);

    expect(values).toEqual(numbers(0, 60));
    expect(losses).toBe(0);
  },
);

test("unread registers are examined at once, so that the first cycle has a value for each tag", async () => {
  const { values } = await polled(numbers(0, 60), (_start, count) => count > 20, 1);

  expect(values).toEqual(numbers(0, 60));
});

test.each([1, 9, 18])(
  "of a device that is silent across the hole at %i 19 of 19 tags are read on the first connection",
  async (hole) => {
    const addresses = numbers(0, 20).filter((address) => address !== hole);
    const { values, losses } = await polled(addresses, (start, count) => start <= hole && hole < start + count, 10);

    expect(values).toEqual(addresses);
    expect(losses).toBe(0);
  },
);

test.each([0, 3, 7])("a device silent at register %i gives the others", async (missing) => {
  const { values } = await polled(numbers(0, 8), (start, count) => start <= missing && missing < start + count, 15);

  expect(values.map((value, address) => (address === missing ? "missing" : value))).toEqual(
    numbers(0, 8).map((address) => (address === missing ? "missing" : address)),
  );
  expect(values[missing]).toBeUndefined();
});

test("a missing table in blocks far apart does not end the connection before the rest is read", async () => {
  // Three blocks time out before the first one that is answered.
  const { values } = await polled([0, 100, 200, 300, 400], (start) => start < 300, 10);

  expect(values).toEqual([undefined, undefined, undefined, 300, 400]);
});

test.each([1, 2, 5, 20, 59])(
  "of a device that closes the connection when asked for more than %i registers 60 of 60 tags are read, and then it closes no more",
  async (most) => {
    const { values, losses, connections } = await polled(numbers(0, 60), (_start, count) => count > most, 10, true);
    const longer = await polled(numbers(0, 60), (_start, count) => count > most, 30, true);

    expect(values).toEqual(numbers(0, 60));
    expect(losses).toBe(0);
    expect(longer.connections).toBe(connections);
  },
);

test.each([1, 9, 18])(
  "of a device that closes the connection when asked across the hole at %i 19 of 19 tags are read",
  async (hole) => {
    const addresses = numbers(0, 20).filter((address) => address !== hole);
    const isAcross = (start: number, count: number) => start <= hole && hole < start + count;
    const { values, losses } = await polled(addresses, isAcross, 10, true);

    expect(values).toEqual(addresses);
    expect(losses).toBe(0);
  },
);

test("a device that closes the connection at every request is lost, with the reason", async () => {
  const { values, losses } = await polled(numbers(0, 4), () => true, 10, true);

  expect(values.every((value) => value === undefined)).toBe(true);
  expect(losses).toBeGreaterThan(0);
});
