import { expect, test } from "vitest";
import { AgentError } from "../../../../src/core/errors.ts";
import type { ReadRequest } from "../../../../src/source/modbus/config/pdu.ts";
import { streamExchange } from "../../../../src/source/modbus/connection/exchange.ts";
import { rtuCodec } from "../../../../src/source/modbus/framing/bus-codec.ts";
import { BusFraming } from "../../../../src/source/modbus/framing/bus-framing.ts";
import { BusWatch } from "../../../../src/source/modbus/framing/bus-watch.ts";
import type { ByteStreamListener } from "../../../../src/source/modbus/transport/byte-stream.ts";
import { typedFraming } from "../../../support/modbus-typed-framing.ts";
import { ManualClock } from "../../../support/runtime.ts";

const read = (start: number, count: number, unit = 1): ReadRequest => ({ unit, table: "hr", start, count });
const frame = (unit: number, ...pdu: number[]) => rtuCodec.encode({ unit, pdu: Uint8Array.from(pdu) });
const one = (value: number, unit = 1) => frame(unit, 3, 2, 0, value);
const data = (...bytes: number[]) => ({ kind: "data", bytes: Uint8Array.from(bytes) });

/** `toConfirm`: how many answers of each kind are confirmed by another request. Most tests use none. */
function onBus(toConfirm = 0, clock = new ManualClock(), watch = new BusWatch(clock, 300, toConfirm)) {
  const framing = new BusFraming({ codec: rtuCodec, reopen: false, watch });
  return { clock, watch, framing, bus: typedFraming(framing) };
}

test("an answer is held, and accepted when no other one follows", async () => {
  const { clock, framing, bus } = onBus();
  bus.begin(read(0, 1));
  expect(bus.receive(one(7))).toBeUndefined();
  expect(framing.settlesAt).toBeGreaterThan(clock.monotonic());
  expect(bus.settle()).toEqual(data(0, 7));
});

test("of two different answers to one request none is accepted, of two equal ones the first", () => {
  for (const [second, expected] of [
    [8, undefined],
    [7, data(0, 7)],
  ] as const) {
    const { bus } = onBus();
    bus.begin(read(0, 1));
    bus.receive(one(7));
    bus.receive(one(second));
    expect(bus.settle()).toEqual(expected);
  }
});

test("while another master waits for an answer of the same form, none is accepted", () => {
  const foreign = frame(1, 3, 0, 50, 0, 1);
  for (const before of [true, false]) {
    const { bus } = onBus();
    if (before) bus.receive(foreign);
    bus.begin(read(0, 1));
    if (!before) bus.receive(foreign);
    bus.receive(one(7));
    expect(bus.settle()).toBeUndefined();
  }
  const other = onBus();
  other.bus.begin(read(0, 1));
  other.bus.receive(frame(1, 3, 0, 50, 0, 2));
  other.bus.receive(one(7));
  expect(other.bus.settle()).toEqual(data(0, 7));
});

test("a request whose answer would look like one just received waits, longer if repeats arrive later", async () => {
  const { clock, watch, bus } = onBus();
  bus.begin(read(0, 1));
  bus.receive(one(7));
  bus.settle();
  expect(watch.clearAt(read(20, 1))).toBe(40);
  expect(watch.clearAt(read(20, 2))).toBe(Number.NEGATIVE_INFINITY);
  await clock.advance(100);
  bus.receive(one(7));
  expect(watch.clearAt(read(20, 1))).toBe(250);
});

test("a reply to another master that equals the agent's is not a repeat of it", async () => {
  const { clock, watch, bus } = onBus();
  for (let i = 0; i < 3; i++) {
    await clock.advance(600);
    bus.begin(read(0, 1));
    bus.receive(one(7));
    bus.settle();
    await clock.advance(400);
    bus.receive(frame(1, 3, 0, 0, 0, 1));
    bus.receive(one(7));
  }
  expect(watch.disturbances.map(({ kind }) => kind)).toEqual(["another master"]);
  expect(watch.clearAt(read(20, 1)) - clock.monotonic()).toBe(40);
});

test("requests received more than ten minutes before the last sign of another master are ignored", async () => {
  const { clock, watch, bus } = onBus();
  bus.begin(read(0, 1));
  bus.receive(one(7));
  bus.settle();
  await clock.advance(300);
  for (let i = 0; i < 3; i++) bus.receive(one(7));
  expect(watch.clearAt(read(20, 1)) - clock.monotonic()).toBe(450);

  await clock.advance(600_000);
  bus.begin(read(0, 1));
  bus.receive(one(8));
  bus.settle();
  expect(watch.clearAt(read(20, 1)) - clock.monotonic()).toBe(40);
  bus.receive(one(9, 4));
  expect(watch.disturbances).toEqual([]);
});

test("an exception just received delays requests of any length of that function", () => {
  const { watch, bus } = onBus();
  bus.begin(read(0, 1));
  bus.receive(frame(1, 0x83, 2));
  bus.settle();
  expect(watch.clearAt(read(20, 5))).toBe(40);
});

const rules = { mayRead: () => true, isAmbiguous: () => false };

test("a block that another master reads is requested with additional registers after or before it", () => {
  const { watch, bus } = onBus();
  expect(watch.distinct(read(8, 1), rules)).toEqual(read(8, 1));
  bus.receive(one(9));
  bus.receive(frame(1, 3, 4, 0, 1, 0, 2));
  expect(watch.distinct(read(8, 1), rules)).toEqual(read(8, 3));
  watch.came("refused", read(8, 3), read(8, 1));
  expect(watch.distinct(read(8, 1), rules)).toEqual(read(6, 3));
});

test("a block without a length that differs from another master's is not read, and named", async () => {
  const { clock, watch, bus } = onBus();
  for (let i = 0; i < 3; i++) bus.receive(one(i));
  const none = { ...rules, mayRead: () => false };
  expect(watch.distinct(read(8, 1), none)).toBeUndefined();
  expect(watch.disturbances[0]?.message).toMatch(/asked for: unit 1 hr:8 \(1\)$/);
  // No reply of this length was received.
  expect(watch.distinct(read(0, 125), none)).toEqual(read(0, 125));

  await clock.advance(600_000);
  expect(watch.distinct(read(8, 1), none)).toEqual(read(8, 1));
});

test("when longer requests are not answered the others are tried, and finally the longer ones again", () => {
  const { watch, bus } = onBus();
  bus.receive(one(9));
  const asked = Array.from({ length: 5 }, () => {
    const each = watch.distinct(read(8, 1), rules) ?? read(0, 0);
    watch.came("silent", each, read(8, 1));
    return each;
  });
  expect(asked).toEqual([read(8, 2), read(7, 2), read(8, 2), read(7, 2), read(8, 2)]);
  watch.came("read", read(7, 2), read(8, 1));
  expect(watch.distinct(read(8, 1), rules)).toEqual(read(7, 2));
});

test("a continuously active master delays a request for at most 300 ms", async () => {
  const { clock, framing } = onBus();
  const sentAt: number[] = [];
  let listener: ByteStreamListener | undefined;
  const stream = {
    listen(given: ByteStreamListener) {
      listener = given;
    },
    write: () => void sentAt.push(clock.monotonic()),
    async [Symbol.asyncDispose]() {},
  };
  const exchange = streamExchange(stream, framing, clock);
  const stop = new AbortController();
  listener?.data(one(0, 9));
  const result = exchange.run(read(0, 1), 60_000, stop.signal).catch(() => {});
  for (let i = 0; i < 100; i++) {
    await clock.advance(20);
    listener?.data(one(i, 9));
  }
  expect(sentAt).toEqual([300]);
  stop.abort();
  await result;
});

test("with longer requests than another master's, a late answer is not accepted for the next request", async () => {
  const { clock, framing, bus } = onBus();
  let listener: ByteStreamListener | undefined;
  const stream = {
    listen(given: ByteStreamListener) {
      listener = given;
    },
    write() {},
    async [Symbol.asyncDispose]() {},
  };
  const exchange = streamExchange(stream, framing, clock);
  const { signal } = new AbortController();
  bus.receive(one(9));
  await clock.advance(1_000);
  expect(await exchange.run(read(0, 1), 5, signal)).toMatchObject({ kind: "silence" });

  expect(exchange.resync(read(20, 1))).toBeUndefined();
  const next = exchange.run(read(20, 1), 5, signal);
  listener?.data(frame(1, 3, 4, 0, 7, 0, 8));
  expect(await next).toMatchObject({ kind: "silence", received: true });
});

test.each([6, 11])(
  "exception %i to a request for more than another master reads does not end asking for more",
  async (code) => {
    const { clock, framing, bus } = onBus();
    const sent: Uint8Array[] = [];
    let listener: ByteStreamListener | undefined;
    const stream = {
      listen(given: ByteStreamListener) {
        listener = given;
      },
      write: (bytes: Uint8Array) => void sent.push(bytes),
      async [Symbol.asyncDispose]() {},
    };
    const exchange = streamExchange(stream, framing, clock);
    bus.receive(one(9));
    for (let i = 0; i < 2; i++) {
      await clock.advance(1_000);
      const result = exchange.run(read(0, 1), 60_000, new AbortController().signal);
      listener?.data(frame(1, 0x83, code));
      await clock.advance(1_000);
      expect(await result).toMatchObject({ kind: "exception", code });
    }
    expect(sent).toEqual([frame(1, 3, 0, 0, 0, 2), frame(1, 3, 0, 0, 0, 2)]);
  },
);

test("after 5,000 answers and nothing else the bus counts as exclusive, until other traffic is received", () => {
  const { watch, bus } = onBus();
  for (let i = 0; i < 5_000; i++) watch.answered(1, 5);
  bus.begin(read(0, 1));
  expect(bus.receive(one(7))).toEqual(data(0, 7));
  bus.receive(one(9));
  expect(watch.holdMs(1)).toBeGreaterThan(0);
});

test("late answers to timed-out requests are not a sign of another master", () => {
  const { watch, bus } = onBus();
  for (let i = 0; i < 5; i++) {
    bus.begin(read(i, 1));
    bus.abandon();
  }
  for (let i = 0; i < 10; i++) bus.receive(one(i));
  expect(watch.disturbances).toEqual([]);
});

test("the disturbance of a bus is reported after the third sign with a remedy, until ten minutes after the last", async () => {
  const { clock, watch, bus } = onBus();
  for (let i = 0; i < 3; i++) {
    expect(watch.disturbances).toEqual([]);
    bus.receive(one(i, 4));
  }
  expect(watch.disturbances).toMatchObject([{ kind: "another master", message: expect.stringContaining("units 4") }]);
  await clock.advance(600_000);
  expect(watch.disturbances).toEqual([]);
});

test("additional registers are cut off the answer, and not requested when the unit refuses them", async () => {
  const { clock, watch, framing } = onBus();
  const sent: Uint8Array[] = [];
  let listener: ByteStreamListener | undefined;
  const exchange = streamExchange(
    {
      listen(given) {
        listener = given;
      },
      write: (bytes) => void sent.push(bytes),
      async [Symbol.asyncDispose]() {},
    },
    framing,
    clock,
  );
  for (let i = 0; i < 3; i++) listener?.data(one(i));
  await clock.advance(1_000);
  const { signal } = new AbortController();

  const wider = exchange.run(read(0, 1), 60_000, signal);
  expect(sent.at(-1)).toEqual(frame(1, 3, 0, 0, 0, 2));
  listener?.data(frame(1, 3, 4, 0, 7, 0, 8));
  await clock.advance(1_000);
  expect(await wider).toMatchObject(data(0, 7));

  const refused = exchange.run(read(0, 1), 60_000, signal);
  listener?.data(frame(1, 0x83, 2));
  await clock.advance(1_000);
  expect(await refused).toEqual({ kind: "contested", always: true });
  expect(sent).toHaveLength(2);
  expect(watch.disturbances).toHaveLength(1);
});

test("a held answer is not accepted while another master waits for one of the same form", () => {
  for (const isAsked of [true, false]) {
    const { bus } = onBus();
    bus.begin(read(0, 1));
    bus.abandon();
    bus.begin(read(20, 1));
    if (isAsked) bus.receive(frame(1, 3, 0, 50, 0, 1));
    bus.receive(one(7));
    bus.receive(one(8));
    expect(bus.expire()).toEqual(isAsked ? undefined : data(0, 8));
  }
});

/**
 * An unknown bus whose traffic the test controls. `pauseMs` is the pause between a reply and the next request. `known`
 * is an earlier watch to continue with.
 */
function onScriptedBus(pauseMs = 0, known?: { readonly clock: ManualClock; readonly watch: BusWatch }) {
  const { clock, watch, framing } = onBus(32, known?.clock, known?.watch);
  const sent: Uint8Array[] = [];
  let listener: ByteStreamListener | undefined;
  const exchange = streamExchange(
    {
      listen(given) {
        listener = given;
      },
      write: (bytes) => void sent.push(bytes),
      async [Symbol.asyncDispose]() {},
    },
    framing,
    clock,
    undefined,
    undefined,
    pauseMs,
  );
  return {
    clock,
    watch,
    exchange,
    sent,
    /** Transmits `bytes`, and then advances time until no answer is held. */
    carries: async (...bytes: Uint8Array[]) => {
      for (const each of bytes) listener?.data(each);
      await clock.advance(1_000);
    },
    close: () => listener?.closed(new AgentError("SOURCE_UNREACHABLE", "gone")),
  };
}

const words = (...values: number[]) => frame(1, 3, 2 * values.length, ...values.flatMap((value) => [0, value]));
const askedFor = (start: number, count: number) => frame(1, 3, 0, start, 0, count);
const { signal } = new AbortController();

test("on an unknown bus a reply to another master gives no value, however late the agent's own answer is", async () => {
  const { exchange, sent, carries, watch } = onScriptedBus();
  const result = exchange.run(read(10, 2), 60_000, signal);
  await carries(words(66, 66)); // for the other master, whose request was not seen
  expect(sent).toEqual([askedFor(10, 2), askedFor(10, 1)]);
  await carries(words(1, 2)); // the agent's own answer, a second later
  await carries(words(1));
  await carries();

  // Next to another master the driver uses a length that the other one does not, and confirms it as well.
  expect(sent.slice(2)).toEqual([askedFor(10, 3)]);
  await carries(words(1, 2, 3));
  await carries(words(1));
  expect(await result).toMatchObject(data(0, 1, 0, 2));
  expect(watch.disturbances).toEqual([]);
});

test("an uncontradicted answer is confirmed by a shorter read, or by a longer one if it cannot be shorter", async () => {
  for (const [count, other] of [
    [5, 1],
    [1, 2],
  ] as const) {
    const { exchange, sent, carries } = onScriptedBus();
    const result = exchange.run(read(10, count), 60_000, signal);
    const own = Array.from({ length: count }, (_, i) => i);
    await carries(words(...own));
    expect(sent).toEqual([askedFor(10, count), askedFor(10, other)]);
    await carries(words(...Array.from({ length: other }, () => 7)));
    expect(await result).toMatchObject(data(...own.flatMap((value) => [0, value])));
  }
});

test("a refused confirmation, and a connection that ends before it, leave the answer accepted", async () => {
  const refused = onScriptedBus();
  const first = refused.exchange.run(read(10, 1), 60_000, signal);
  await refused.carries(words(7));
  await refused.carries(frame(1, 0x83, 2));
  expect(await first).toMatchObject(data(0, 7));

  const closed = onScriptedBus();
  const second = closed.exchange.run(read(10, 1), 60_000, signal);
  await closed.carries(words(7));
  closed.close();
  expect(await second).toMatchObject(data(0, 7));
});

test("an unanswered confirmation is requested twice in all", async () => {
  const { exchange, sent, carries } = onScriptedBus();
  for (let i = 0; i < 2; i++) {
    const silent = exchange.run(read(10, 1), 5, signal);
    await carries(words(7));
    expect(await silent).toMatchObject({ kind: "silence" });
  }
  const count = sent.length;
  const third = exchange.run(read(10, 3), 60_000, signal);
  await carries(words(7, 8, 9));
  expect(await third).toMatchObject(data(0, 7, 0, 8, 0, 9));
  expect(sent).toHaveLength(count + 1);
});

test("a confirmation is requested no sooner than interRequestDelay after the answer", async () => {
  const { clock, exchange, sent, carries } = onScriptedBus(2_000);
  const result = exchange.run(read(10, 2), 60_000, signal);
  await carries(words(1, 2));
  expect(sent).toEqual([askedFor(10, 2)]);
  await clock.advance(2_000);
  expect(sent).toEqual([askedFor(10, 2), askedFor(10, 1)]);
  await carries(words(1));
  expect(await result).toMatchObject(data(0, 1, 0, 2));
});

test("a block without a confirming answer is confirmed twice at most, whatever the unit answers to others", async () => {
  const { exchange, sent, carries } = onScriptedBus();
  for (let i = 0; i < 3; i++) {
    const result = exchange.run(read(10, 1), 5, signal);
    await carries(words(7));
    expect(await result).toMatchObject(i < 2 ? { kind: "silence" } : data(0, 7));
    const other = exchange.run(read(20, 3), 60_000, signal);
    await carries(words(8, 9, 10));
    await carries(words(8));
    expect(await other).toMatchObject(data(0, 8, 0, 9, 0, 10));
  }
  expect(sent.filter((each) => String(each) === String(askedFor(10, 2)))).toHaveLength(2);
});

test("a device that closes the connection at a confirmation gets it twice in all", async () => {
  const known = onBus(32);
  const asked: number[] = [];
  for (let i = 0; i < 4; i++) {
    const { exchange, sent, carries, close } = onScriptedBus(0, known);
    const result = exchange.run(read(10, 1), 60_000, signal);
    await carries(words(7));
    close();
    expect(await result).toMatchObject(data(0, 7));
    asked.push(sent.length);
  }
  expect(asked).toEqual([2, 2, 1, 1]);
});

test("after 32 answers of a kind the next ones are not confirmed, until another master reads the same", async () => {
  const { exchange, sent, carries, watch } = onScriptedBus();
  for (let i = 0; i < 33; i++) {
    const result = exchange.run(read(10, 2), 500, signal);
    await carries(words(1, 2));
    if (i < 32) await carries(words(1));
    expect(await result, String(i)).toMatchObject(data(0, 1, 0, 2));
  }
  expect(sent).toHaveLength(65);
  expect(watch.needsConfirmation(read(50, 2))).toBe(false);
  await carries(words(3, 4));
  expect(watch.needsConfirmation(read(50, 2))).toBe(true);
});
