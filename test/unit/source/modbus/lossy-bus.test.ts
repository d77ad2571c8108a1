// A second master on a bus that loses requests, in simulated time. A reply to the other master must not be taken for a
// missing answer. A million values each: `TAGFERRY_SHARED_BUS=1000000 npx vitest run …`.
import { expect, test, vi } from "vitest";
import { systemClock } from "../../../../src/lib/time/clock.ts";
import { streamExchange } from "../../../../src/source/modbus/connection/exchange.ts";
import { openModbusConnection } from "../../../../src/source/modbus/connection/modbus-connection.ts";
import type { Result, TimedOut } from "../../../../src/source/modbus/connection/result.ts";
import { asciiCodec, rtuCodec } from "../../../../src/source/modbus/framing/bus-codec.ts";
import { BusFraming } from "../../../../src/source/modbus/framing/bus-framing.ts";
import { BusWatch } from "../../../../src/source/modbus/framing/bus-watch.ts";
import { lateReplyTracker } from "../../../../src/source/modbus/framing/distinct-replies.ts";
import type { ByteStreamListener } from "../../../../src/source/modbus/transport/byte-stream.ts";
import { type Disturbances, disturbedBus, wordOf } from "../../../support/modbus-disturbed-bus.ts";
import { seed } from "../../../support/property.ts";
import { seeded, testRuntime } from "../../../support/runtime.ts";

const spans = Number(process.env.TAGFERRY_SHARED_BUS ?? 1_500);
const timeoutMs = 400;
/** The same blocks as in the test with real transports: two units, two lengths. */
const blocks = Array.from({ length: 8 }, (_, i) => ({
  unit: 1 + (i % 2),
  table: "hr" as const,
  start: i * 40,
  count: i % 4 === 3 ? 4 : 2,
}));
const disturbed: Disturbances = { repeatMs: 20, foreign: 0.2, foreignCounts: [2, 4], lost: 0.1 };

type Kind = "rtu" | "ascii" | "rtu+tcp";

/** The percentage of timers at which the process is delayed. All overdue timers then fire at once. */
const heldUp = 1;
const heldUpMs = 60;

/** Simulated time that advances when no other work is left. */
function simulatedTime(random: () => number): Disposable & { until(done: () => boolean): Promise<void> } {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance", "Date"] });
  return {
    async until(done) {
      while (!done()) {
        for (let i = 0; i < 4; i++) await new Promise<void>((resolve) => setImmediate(resolve));
        if (random() * 100 < heldUp) vi.advanceTimersByTime(heldUpMs);
        else vi.advanceTimersToNextTimer();
      }
    },
    [Symbol.dispose]: () => void vi.useRealTimers(),
  };
}

/** The relay stalls now and then for longer than an answer is held, as on a machine under load. */
const stalls = { share: 0.3, longestMs: 300 };

/** Passes each chunk to `deliver` in order, and `share` of them with a delay. */
function relay(random: () => number, share: number, deliver: (chunk: Uint8Array) => void) {
  let freeAt = 0;
  return (chunk: Uint8Array) => {
    const now = performance.now();
    freeAt = Math.max(freeAt, random() < share ? now + random() * stalls.longestMs : now);
    // After all timers that are due.
    const arrive = () => void setImmediate(() => deliver(chunk));
    if (freeAt > now) setTimeout(arrive, freeAt - now);
    else arrive();
  };
}

async function pollBus(kind: Kind, disturbances: Disturbances, values: number, own: number, stalled = 0) {
  const random = seeded(own);
  using time = simulatedTime(random);
  const clock = systemClock();
  const bus = disturbedBus(kind === "ascii" ? "ascii" : "rtu", disturbances, random, (ms, then) => {
    setTimeout(then, ms);
  });
  let listener: ByteStreamListener | undefined;
  // Chunks in transit reach the client that is connected when they arrive.
  const send = relay(random, stalled, (chunk) => listener?.data(chunk));
  const watch = new BusWatch(clock, kind === "rtu+tcp" ? 300 : 50);
  const lateReplies = lateReplyTracker();
  const timedOut: TimedOut = new Map();
  const codec = kind === "ascii" ? asciiCodec : rtuCodec;
  const connect = async () =>
    streamExchange(
      {
        listen(given) {
          listener = given;
        },
        write: (bytes) => bus.receive(bytes, send),
        async [Symbol.asyncDispose]() {},
      },
      new BusFraming({ codec, reopen: kind === "rtu+tcp", lateReplies, watch }),
      clock,
      kind === "rtu+tcp" ? undefined : { quietMs: 20, guardMs: 50 },
      timedOut,
    );
  const { signal } = new AbortController();
  const options = { name: "bus", units: new Set([1, 2]), delayMs: 0, pauseAfterConnectMs: 0, connect };
  const link = await openModbusConnection(options, testRuntime({ clock }), signal);
  const wrong: string[] = [];
  const outcomes: Record<Result["kind"], number> = { data: 0, exception: 0, silence: 0, contested: 0 };
  let done = false;
  const polling = (async () => {
    for (let i = 0; i < values; i++) {
      const request = blocks[i % blocks.length]!;
      const result = await link.read(request, timeoutMs, signal, false);
      outcomes[result.kind]++;
      if (result.kind === "data" && !Buffer.from(result.bytes).equals(honest(request)))
        wrong.push(`read ${i}, ${JSON.stringify(request)}: ${Buffer.from(result.bytes).toString("hex")}`);
    }
  })().finally(() => {
    done = true;
  });
  await time.until(() => done);
  await polling;
  return { wrong, outcomes, watch };
}

function honest({ unit, start, count }: (typeof blocks)[number]): Buffer {
  const words = Array.from({ length: count }, (_, i) => wordOf(unit, start + i));
  return Buffer.from(words.flatMap((word) => [word >> 8, word & 0xff]));
}

const timeout = 90_000 + spans * 2;

test.each(["rtu", "ascii", "rtu+tcp"] as const)(
  `where requests are lost no reply to another master is a value over %s, seed ${seed}`,
  { timeout },
  async (kind) => {
    const { wrong, outcomes, watch } = await pollBus(kind, disturbed, spans, seed);

    expect(wrong).toEqual([]);
    expect(outcomes.data).toBeGreaterThan(spans * 0.8);
    expect(watch.disturbances.map((each) => each.kind)).toContain("another master");
  },
);

test.each(["rtu", "ascii"] as const)(
  `what another master is given before it was noticed is no value over %s, however late our own answer comes, seed ${seed}`,
  { timeout },
  async (kind) => {
    const wrong: string[] = [];
    for (let bus = 0; bus < spans / 10; bus++)
      wrong.push(...(await pollBus(kind, { foreign: 0.2, foreignCounts: [2, 4] }, 10, seed + bus, stalls.share)).wrong);

    expect(wrong).toEqual([]);
  },
);

test(`with a device that gives only what another master reads, no ambiguous value is accepted, seed ${seed}`, async () => {
  const { wrong, outcomes, watch } = await pollBus("rtu", { ...disturbed, foreignCounts: [2], most: 2 }, 400, seed);

  expect(wrong).toEqual([]);
  expect(outcomes.contested).toBeGreaterThan(100);
  expect(watch.disturbances[0]?.message).toContain("it reads each length that can be asked for: unit");
});
