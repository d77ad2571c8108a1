import { createServer, type Socket } from "node:net";
import { expect, test } from "vitest";
import { AgentError } from "../../../../src/core/errors.ts";
import { epochMicros } from "../../../../src/core/point.ts";
import type { Clock } from "../../../../src/core/runtime.ts";
import { systemClock } from "../../../../src/lib/time/clock.ts";
import type { ReadRequest } from "../../../../src/source/modbus/config/pdu.ts";
import { streamExchange } from "../../../../src/source/modbus/connection/exchange.ts";
import { rtuCodec } from "../../../../src/source/modbus/framing/bus-codec.ts";
import { BusFraming } from "../../../../src/source/modbus/framing/bus-framing.ts";
import { BusWatch } from "../../../../src/source/modbus/framing/bus-watch.ts";
import { lateReplyTracker } from "../../../../src/source/modbus/framing/distinct-replies.ts";
import { MbapFraming } from "../../../../src/source/modbus/framing/mbap-framing.ts";
import {
  type ByteStream,
  type ByteStreamListener,
  connectTcp,
} from "../../../../src/source/modbus/transport/byte-stream.ts";
import { eventually } from "../../../support/eventually.ts";
import { mbapFrame } from "../../../support/modbus-adversary.ts";
import { modbusDevice } from "../../../support/modbus-device.ts";
import { has } from "../../../support/platform.ts";
import { ManualClock } from "../../../support/runtime.ts";

const { signal } = new AbortController();
const read: ReadRequest = { unit: 1, table: "hr", start: 0, count: 1 };
const word = (value: number) => Uint8Array.of(3, 2, value >> 8, value & 0xff);

/** A stream whose other end is the test. */
function scripted() {
  const written: Uint8Array[] = [];
  let listener: ByteStreamListener | undefined;
  let disposed = false;
  const stream: ByteStream = {
    listen(given) {
      listener = given;
    },
    write(bytes) {
      written.push(bytes);
    },
    async [Symbol.asyncDispose]() {
      disposed = true;
    },
  };
  return {
    stream,
    written,
    get disposed() {
      return disposed;
    },
    say: (bytes: Uint8Array) => listener?.data(bytes),
    close: () => listener?.closed(new AgentError("SOURCE_UNREACHABLE", "gone")),
  };
}

const tcp = () => new MbapFraming({ anyUnit: false });

test("an answer carries the time at which it was complete", async () => {
  const { stream, say } = scripted();
  const clock = new ManualClock();
  const exchange = streamExchange(stream, tcp(), clock);
  const result = exchange.run(read, 1_000, signal);
  const frame = mbapFrame(0, 1, word(7));
  say(frame.subarray(0, 5));
  await clock.advance(40);
  say(frame.subarray(5));
  expect(await result).toEqual({ kind: "data", bytes: Uint8Array.of(0, 7), at: clock.now(), tookMs: 40 });
});

test("without an answer the request ends at its deadline, with what was received instead", async () => {
  const { stream, say } = scripted();
  const exchange = streamExchange(stream, tcp(), new ManualClock());
  expect(await exchange.run(read, 5, signal)).toEqual({ kind: "silence", mismatch: undefined, received: false });
  const second = exchange.run(read, 5, signal);
  say(mbapFrame(9, 1, word(7)));
  expect(await second).toEqual({ kind: "silence", mismatch: "transaction 9 instead of 1", received: true });
  expect(exchange.discarded).toBe(1);
});

test.each([
  ["tcp", tcp, (id: number) => mbapFrame(id, 1, word(7))],
  [
    "a line",
    () => new BusFraming({ codec: rtuCodec, reopen: false }),
    () => rtuCodec.encode({ unit: 1, pdu: word(7) }),
  ],
] as const)(
  "over %s the time of an answer that came after its request had ended is reported",
  async (_name, framing, frame) => {
    const { stream, say } = scripted();
    const clock = new ManualClock();
    const exchange = streamExchange(stream, framing(), clock);
    await exchange.run(read, 5, signal);
    await clock.advance(30);
    say(frame(0));
    expect([exchange.discarded, exchange.receivedAt]).toEqual([1, clock.monotonic()]);
    await clock.advance(30);

    expect(await exchange.run(read, 5, signal)).toMatchObject({ kind: "silence", lateMs: 30 });
  },
);

test("an answer received in time is accepted also when the process was suspended beyond the deadline", async () => {
  await using device = await modbusDevice();
  device.unit(1).set("hr", 0, [7]);
  const { port } = device;
  const stream = await connectTcp({ host: "127.0.0.1", port, localAddress: undefined, timeoutMs: 10_000 }, signal);
  await using exchange = streamExchange(stream, tcp(), systemClock());
  device.answered = () => {
    for (const until = performance.now() + 300; performance.now() < until; );
  };
  expect(await exchange.run(read, 200, signal)).toMatchObject({ kind: "data", bytes: Uint8Array.of(0, 7) });
});

test.runIf(has.immediateLoopback)("an answer contradicted while the process is suspended is not accepted", async () => {
  const other = Promise.withResolvers<Socket>();
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => {
      socket.write(rtuCodec.encode({ unit: 1, pdu: word(666) }));
      other.resolve(socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address ? address.port : 0;
  const holding = Promise.withResolvers<void>();
  const over = Promise.withResolvers<void>();
  let slept = 0;
  const aborted = (until: AbortSignal) =>
    new Promise<void>((_, reject) => until.addEventListener("abort", () => reject(until.reason), { once: true }));
  // Time passes only when the test advances it, so that load on the machine does not matter.
  const clock: Clock = {
    now: () => epochMicros(0),
    monotonic: () => 0,
    sleep(_ms, until) {
      holding.resolve();
      return Promise.race([slept++ === 0 ? over.promise : new Promise<void>(() => {}), aborted(until)]);
    },
  };
  {
    const stream = await connectTcp({ host: "127.0.0.1", port, localAddress: undefined, timeoutMs: 10_000 }, signal);
    const framing = new BusFraming({ codec: rtuCodec, reopen: false, watch: new BusWatch(clock, 100, 0) });
    await using exchange = streamExchange(stream, framing, clock);
    const stop = new AbortController();
    const result = exchange.run(read, 60_000, stop.signal).catch((error: unknown) => error);
    await holding.promise;
    const socket = await other.promise;
    // As after a timer, outside the reading of sockets. The second answer waits in the socket when the hold ends.
    await new Promise<void>((resolve) => void setImmediate(resolve));
    socket.write(rtuCodec.encode({ unit: 1, pdu: word(7) }));
    over.resolve();
    await eventually(() => framing.settlesAt === undefined);
    // The contradictory answers are discarded and the request is repeated. The repetition gets no answer.
    stop.abort(new Error("not taken"));
    expect(await result).toEqual(new Error("not taken"));
  }
  await new Promise<void>((resolve) => server.close(() => resolve()));
});

test("bytes received while the process was suspended are read before the next request is sent", async () => {
  let now = 0;
  const wakers: (() => void)[] = [];
  const clock = {
    now: () => epochMicros(now * 1_000),
    monotonic: () => now,
    sleep: () => new Promise<void>((resolve) => void wakers.push(resolve)),
  };
  const wake = async () => {
    wakers.shift()?.();
    for (let i = 0; i < 5; i++) await new Promise<void>((resolve) => setImmediate(resolve));
  };
  const { stream, written, say } = scripted();
  const framing = new BusFraming({ codec: rtuCodec, reopen: false, watch: new BusWatch(clock, 100, 0) });
  const exchange = streamExchange(stream, framing, clock);
  const stop = new AbortController();
  const first = exchange.run(read, 60_000, stop.signal);
  say(rtuCodec.encode({ unit: 1, pdu: word(7) }));
  await wake();
  expect(await first).toMatchObject({ kind: "data", bytes: Uint8Array.of(0, 7) });

  const second = exchange.run({ ...read, start: 20 }, 60_000, stop.signal).catch(() => {});
  now = 60;
  setImmediate(() => say(rtuCodec.encode({ unit: 1, pdu: word(7) })));
  await wake();
  expect(written).toHaveLength(1);
  now = 200;
  await wake();
  expect(written).toHaveLength(2);
  stop.abort();
  await second;
});

test("a lost connection fails the request in flight and every later one", async () => {
  const { stream, close } = scripted();
  const exchange = streamExchange(stream, tcp(), new ManualClock());
  const result = exchange.run(read, 1_000, signal);
  close();
  await expect(result).rejects.toThrow("gone");
  await expect(exchange.run(read, 1_000, signal)).rejects.toThrow("gone");
});

test("the answer of a device server that closes the connection after it is accepted", async () => {
  const { stream, say, close } = scripted();
  const clock = new ManualClock();
  const framing = new BusFraming({ codec: rtuCodec, reopen: true, watch: new BusWatch(clock, 300) });
  const exchange = streamExchange(stream, framing, clock);
  const result = exchange.run(read, 60_000, signal);
  say(rtuCodec.encode({ unit: 1, pdu: word(7) }));
  close();
  expect(await result).toMatchObject({ kind: "data", bytes: Uint8Array.of(0, 7) });
  expect(exchange.lost).toMatchObject({ code: "SOURCE_UNREACHABLE" });
});

test("bytes that are not Modbus end the connection with SOURCE_PROTOCOL", async () => {
  const peer = scripted();
  const exchange = streamExchange(peer.stream, tcp(), new ManualClock());
  const result = exchange.run(read, 1_000, signal);
  peer.say(new TextEncoder().encode("SSH-2.0-OpenSSH"));
  await expect(result).rejects.toMatchObject({ code: "SOURCE_PROTOCOL" });
  expect(peer.disposed).toBe(true);
});

test("after a timeout without transaction IDs a connection that can be reopened is stale", async () => {
  const peer = scripted();
  const exchange = streamExchange(peer.stream, new BusFraming({ codec: rtuCodec, reopen: true }), new ManualClock());
  await exchange.run(read, 5, signal);
  expect([exchange.stale, peer.disposed]).toEqual([true, true]);
  await expect(exchange.run(read, 5, signal)).rejects.toMatchObject({ code: "SOURCE_UNREACHABLE" });
});

test("the answer to a lost or cancelled request may arrive on the next connection", async () => {
  for (const end of [(peer: ReturnType<typeof scripted>) => peer.close(), undefined]) {
    const peer = scripted();
    const lateReplies = lateReplyTracker();
    const framing = new BusFraming({ codec: rtuCodec, reopen: true, lateReplies });
    const exchange = streamExchange(peer.stream, framing, new ManualClock());
    const stop = new AbortController();
    const result = exchange.run(read, 10_000, stop.signal);
    if (end) end(peer);
    else stop.abort(new Error("enough"));
    await expect(result).rejects.toThrow(end ? "gone" : "enough");
    expect(lateReplies.isAmbiguous(read)).toBe(true);
  }
});

test("after a timeout a line is used again once it has been silent for a while", async () => {
  const { stream, written, say } = scripted();
  const clock = new ManualClock();
  const rest = { quietMs: 20, guardMs: 100 };
  const exchange = streamExchange(stream, new BusFraming({ codec: rtuCodec, reopen: false }), clock, rest);
  await exchange.run(read, 5, signal);
  const next = exchange.run({ ...read, unit: 2 }, 1_000, signal);
  await clock.advance(95);
  say(rtuCodec.encode({ unit: 1, pdu: word(1) }));
  await clock.advance(15);
  expect(written).toHaveLength(1);
  await clock.advance(10);
  expect(written).toHaveLength(2);
  say(rtuCodec.encode({ unit: 2, pdu: word(2) }));
  expect(await next).toMatchObject({ kind: "data", bytes: Uint8Array.of(0, 2) });
});

/**
 * A unit that is slower than its timeout: during the request for 20 it answers the previous one, for 10, and later 20.
 */
async function slowUnit(timeoutMs: number) {
  const peer = scripted();
  const answer = (value: number) => peer.say(rtuCodec.encode({ unit: 1, pdu: word(value) }));
  const { stream } = peer;
  const clock = new ManualClock();
  const late: ByteStream = {
    ...stream,
    write(bytes) {
      stream.write(bytes);
      if (peer.written.length === 2) queueMicrotask(() => answer(10));
    },
  };
  const framing = new BusFraming({ codec: rtuCodec, reopen: false });
  const exchange = streamExchange(late, framing, clock, { quietMs: 5, guardMs: 40 });
  await exchange.run({ ...read, start: 10 }, timeoutMs, signal);
  const second = exchange.run({ ...read, start: 20 }, timeoutMs, signal);
  await clock.advance(40);
  // Past the deadline, which is in real time. The exchange then waits until 40 + 1.2 * 40 on the clock that stands
  // still.
  await eventually(() => clock.sleeping === 1);
  return { ...peer, answer, clock, second };
}

test("a unit on a line that is slower than its time-out gives its own value, not that of the request before", async () => {
  const { answer, clock, second } = await slowUnit(20);
  await clock.advance(40);
  answer(20);
  await clock.advance(100);
  expect(await second).toMatchObject({ kind: "data", bytes: Uint8Array.of(0, 20) });
});

test("an answer without a further one belongs to the last request, and noise does not delay it", async () => {
  const { say, clock, second } = await slowUnit(20);
  for (let i = 0; i < 5; i++) {
    say(Uint8Array.of(0xff));
    await clock.advance(10);
  }
  expect(await second).toMatchObject({ kind: "data", bytes: Uint8Array.of(0, 10) });
});

test("a line that is never silent is finally used nevertheless", async () => {
  const { stream, written, say } = scripted();
  const clock = new ManualClock();
  const rest = { quietMs: 20, guardMs: 100 };
  const exchange = streamExchange(stream, new BusFraming({ codec: rtuCodec, reopen: false }), clock, rest);
  await exchange.run(read, 5, signal);
  const stop = new AbortController();
  const next = exchange.run(read, 1_000, stop.signal);
  for (let i = 0; i < 210; i++) {
    say(Uint8Array.of(0xff));
    await clock.advance(10);
  }
  expect(written).toHaveLength(2);
  stop.abort(new Error("enough"));
  await expect(next).rejects.toThrow("enough");
});
