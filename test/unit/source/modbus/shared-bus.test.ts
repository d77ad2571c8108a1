// Duplicated replies and a second master, in memory and on a manual clock.
import { expect, test } from "vitest";
import type { ReadRequest } from "../../../../src/source/modbus/config/pdu.ts";
import { streamExchange } from "../../../../src/source/modbus/connection/exchange.ts";
import { asciiCodec, rtuCodec } from "../../../../src/source/modbus/framing/bus-codec.ts";
import { BusFraming } from "../../../../src/source/modbus/framing/bus-framing.ts";
import { BusWatch } from "../../../../src/source/modbus/framing/bus-watch.ts";
import { MbapFraming } from "../../../../src/source/modbus/framing/mbap-framing.ts";
import type { ByteStreamListener } from "../../../../src/source/modbus/transport/byte-stream.ts";
import { type Disturbances, disturbedBus, type Wire, wordOf } from "../../../support/modbus-disturbed-bus.ts";
import { seed } from "../../../support/property.ts";
import { ManualClock, seeded } from "../../../support/runtime.ts";

/** The number of values per test. `TAGFERRY_SHARED_BUS=100000` sets another one. */
const spans = Number(process.env.TAGFERRY_SHARED_BUS ?? 300);
/** Longer than any test takes, because no message is lost here. */
const timeoutMs = 60_000;

/** Reads blocks of two lengths from two units in turn, until `reads` were answered. */
async function readAll(wire: Wire, disturbances: Disturbances, reads: number, own = seed) {
  const clock = new ManualClock();
  const random = seeded(own);
  const stop = new AbortController();
  const bus = disturbedBus(
    wire,
    disturbances,
    random,
    (ms, then) => void clock.sleep(ms, stop.signal).then(then, () => {}),
  );
  let listener: ByteStreamListener | undefined;
  const watch = new BusWatch(clock, 300);
  const framing =
    wire === "mbap"
      ? new MbapFraming({ anyUnit: false, firstId: 40_000 })
      : new BusFraming({ codec: wire === "rtu" ? rtuCodec : asciiCodec, reopen: false, watch });
  const exchange = streamExchange(
    {
      listen(given) {
        listener = given;
      },
      write: (bytes) => bus.receive(bytes, (chunk) => listener?.data(chunk)),
      async [Symbol.asyncDispose]() {},
    },
    framing,
    clock,
  );
  const wrong: string[] = [];
  let right = 0;
  let none = 0;
  const reading = (async () => {
    for (let i = 0; i < reads; i++) {
      const request: ReadRequest = {
        unit: 1 + Math.floor(random() * 2),
        table: random() < 0.5 ? "hr" : "ir",
        start: Math.floor(random() * 200),
        count: random() < 0.8 ? 2 : 5,
      };
      const result = await exchange.run(request, timeoutMs, stop.signal);
      if (result.kind !== "data") none++;
      else if (Buffer.from(result.bytes).equals(honest(request))) right++;
      else wrong.push(`${JSON.stringify(request)}: ${Buffer.from(result.bytes).toString("hex")}`);
    }
  })();
  let done = false;
  void reading.finally(() => {
    done = true;
  });
  while (!done) await clock.advance(500);
  stop.abort();
  await reading;
  return { wrong, right, none, bus, watch, tookMs: clock.monotonic() };
}

function honest({ unit, start, count }: ReadRequest): Buffer {
  const words = Array.from({ length: count }, (_, i) => wordOf(unit, start + i));
  return Buffer.from(words.flatMap((word) => [word >> 8, word & 0xff]));
}

const wires = ["rtu", "ascii", "mbap"] as const;

test.each(wires)(
  `replies that come again 20 ms later are never the answer to another request over %s, seed ${seed}`,
  async (wire) => {
    const { wrong, right, bus, watch } = await readAll(wire, { repeatMs: 20 }, spans);

    expect(wrong).toEqual([]);
    expect(right).toBe(spans);
    expect(bus.repeated).toBeGreaterThanOrEqual(spans);
    if (wire !== "mbap") expect(watch.disturbances.map(({ kind }) => kind)).toEqual(["repeated replies"]);
  },
);

test.each(wires)(
  `what another master reads is never the answer to a request of ours over %s, seed ${seed}`,
  async (wire) => {
    const { wrong, right, bus, watch } = await readAll(wire, { foreign: 0.25, foreignCounts: [2, 5] }, spans);

    expect(wrong).toEqual([]);
    expect(right).toBeGreaterThan(spans * 0.9);
    expect(bus.foreign).toBeGreaterThan(spans / 3);
    if (wire !== "mbap") expect(watch.disturbances.map(({ kind }) => kind)).toContain("another master");
  },
);
