import { expect, test } from "vitest";
import { epochMicros } from "../../../../src/core/point.ts";
import type { ReadRequest, UnitRequest } from "../../../../src/source/modbus/config/pdu.ts";
import { openModbusConnection } from "../../../../src/source/modbus/connection/modbus-connection.ts";
import type { Exchange, Result } from "../../../../src/source/modbus/connection/result.ts";
import { ManualClock, testRuntime } from "../../../support/runtime.ts";

const { signal } = new AbortController();
const request: ReadRequest = { unit: 1, table: "hr", start: 0, count: 2 };
const resync: ReadRequest = { ...request, count: 1 };

/** A connection with late replies pending. Its requests have these `results`, each after this many milliseconds. */
async function linkWithLateReply(results: readonly (readonly [afterMs: number, kind: "data" | "silence"])[]) {
  const clock = new ManualClock();
  const asked: [request: UnitRequest, timeoutMs: number][] = [];
  const exchange: Exchange = {
    resync: () => resync,
    lost: undefined,
    stale: false,
    discarded: 0,
    receivedAt: Number.NEGATIVE_INFINITY,
    async run(each, timeoutMs): Promise<Result> {
      const [afterMs, kind] = results[asked.length] ?? [0, "silence"];
      asked.push([each, timeoutMs]);
      await clock.advance(afterMs);
      if (kind === "silence") return { kind, mismatch: undefined, received: true };
      return { kind, bytes: Uint8Array.of(0, 0), at: clock.now(), tookMs: 0 };
    },
    async [Symbol.asyncDispose]() {},
  };
  const options = { name: "bus", units: new Set([1]), delayMs: 0, pauseAfterConnectMs: 0 };
  const link = await openModbusConnection(
    { ...options, connect: async () => exchange },
    testRuntime({ clock }),
    signal,
  );
  return { link, asked };
}

test("before an ambiguous answer a distinguishing request is sent, and without its answer no other", async () => {
  const silent = await linkWithLateReply([[100, "silence"]]);
  expect(await silent.link.read(request, 100, signal)).toMatchObject({ kind: "silence" });
  expect(silent.asked).toEqual([[resync, 100]]);

  const quick = await linkWithLateReply([
    [10, "data"],
    [10, "data"],
  ]);
  expect(await quick.link.read(request, 100, signal)).toMatchObject({ kind: "data" });
  expect(quick.asked).toEqual([
    [resync, 100],
    [request, 100],
  ]);
});

test("a unit that needed longer than its timeout for a distinguishing answer gets as much again, within bounds", async () => {
  for (const [tookMs, givenMs] of [
    [200, 240],
    [5_000, 800],
  ] as const) {
    const slow = await linkWithLateReply([
      [tookMs, "data"],
      [tookMs, "data"],
    ]);
    await slow.link.read(request, 100, signal);
    expect(slow.asked.at(-1)).toEqual([request, givenMs]);
  }
});

test("waiting for a turn and holding an answer do not count as response time of the unit", async () => {
  const clock = new ManualClock();
  const exchange: Exchange = {
    resync: () => undefined,
    lost: undefined,
    stale: false,
    discarded: 0,
    receivedAt: Number.NEGATIVE_INFINITY,
    async run(): Promise<Result> {
      await clock.advance(600);
      return { kind: "data", bytes: Uint8Array.of(0, 7), at: clock.now(), tookMs: 20 };
    },
    async [Symbol.asyncDispose]() {},
  };
  const options = { name: "bus", units: new Set([1]), delayMs: 0, pauseAfterConnectMs: 0 };
  const link = await openModbusConnection(
    { ...options, connect: async () => exchange },
    testRuntime({ clock }),
    signal,
  );
  await link.read(request, 1_000, signal);
  expect(link.unlikelyAfter(1_000)).toBe(80);
});

test("requests are counted by unit and outcome, exceptions by code, and discarded frames", async () => {
  const runtime = testRuntime({ clock: new ManualClock() });
  let discarded = 0;
  const results: Result[] = [
    { kind: "data", bytes: Uint8Array.of(0, 7), at: runtime.clock.now(), tookMs: 0 },
    { kind: "exception", code: 4, at: runtime.clock.now(), tookMs: 0 },
    { kind: "silence", mismatch: "noise", received: true },
  ];
  const exchange: Exchange = {
    resync: () => undefined,
    lost: undefined,
    stale: false,
    get discarded() {
      return discarded;
    },
    receivedAt: Number.NEGATIVE_INFINITY,
    async run() {
      const result = results.shift() ?? { kind: "silence", mismatch: undefined, received: true };
      if (result.kind === "silence") discarded++;
      return result;
    },
    async [Symbol.asyncDispose]() {},
  };
  const options = { name: "bus", units: new Set([1]), delayMs: 0, pauseAfterConnectMs: 0 };
  const link = await openModbusConnection({ ...options, connect: async () => exchange }, runtime, signal);
  for (let i = 0; i < 3; i++) await link.read({ ...request, unit: 3 }, 100, signal);

  const requests = (outcome: string) =>
    runtime.metric("source_modbus_requests_total", { source: "bus", unit: "3", outcome });
  expect([requests("ok"), requests("exception"), requests("timeout")]).toEqual([1, 1, 1]);
  expect(runtime.metric("source_modbus_exceptions_total", { unit: "3", code: "4" })).toBe(1);
  expect(runtime.metric("source_modbus_discarded_replies_total", { source: "bus" })).toBe(1);
  // Only answers count for the round-trip time.
  expect(runtime.metric("source_modbus_round_trip_seconds", { source: "bus" })).toBe(2);
});

test("silence at a possibly too large request does not end the connection; silence at another does", async () => {
  const exchange: Exchange = {
    resync: () => undefined,
    lost: undefined,
    stale: false,
    discarded: 0,
    receivedAt: Number.NEGATIVE_INFINITY,
    run: async () => ({ kind: "silence", mismatch: undefined, received: false }),
    async [Symbol.asyncDispose]() {},
  };
  const options = { name: "bus", units: new Set([1]), delayMs: 0, pauseAfterConnectMs: 0 };
  const clock = new ManualClock();
  const link = await openModbusConnection(
    { ...options, connect: async () => exchange },
    testRuntime({ clock }),
    signal,
  );
  const nearlyLost: boolean[] = [];
  for (let i = 0; i < 5; i++) {
    await link.read(request, 100, signal, false);
    nearlyLost.push(link.isNearlyLost);
  }

  expect(nearlyLost).toEqual([false, true, true, true, true]);
  await expect(link.read(request, 100, signal)).rejects.toMatchObject({ code: "SOURCE_UNREACHABLE" });
});

test("bytes between requests are counted and keep the connection alive", async () => {
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  let discarded = 0;
  let receivedAt = Number.NEGATIVE_INFINITY;
  const exchange: Exchange = {
    resync: () => undefined,
    lost: undefined,
    stale: false,
    get discarded() {
      return discarded;
    },
    get receivedAt() {
      return receivedAt;
    },
    async run(_request, timeoutMs) {
      await clock.advance(timeoutMs);
      return { kind: "silence", mismatch: undefined, received: false };
    },
    async [Symbol.asyncDispose]() {},
  };
  const options = { name: "bus", units: new Set([1]), delayMs: 0, pauseAfterConnectMs: 0 };
  const link = await openModbusConnection({ ...options, connect: async () => exchange }, runtime, signal);
  // A unit whose answers take 1.3 s, polled every 5 s with a timeout of 1 s.
  for (let i = 0; i < 10; i++) {
    await link.read(request, 1_000, signal);
    await clock.advance(300);
    discarded++;
    receivedAt = clock.monotonic();
    await clock.advance(3_700);
  }
  await link[Symbol.asyncDispose]();

  expect(runtime.metric("source_modbus_discarded_replies_total")).toBe(10);
});

/** A connection whose unit 1 is polled, with what its exchange answers. */
async function pollLink(run: Exchange["run"]) {
  const runtime = testRuntime({ clock: new ManualClock() });
  const exchange: Exchange = {
    resync: () => undefined,
    lost: undefined,
    stale: false,
    discarded: 0,
    receivedAt: Number.NEGATIVE_INFINITY,
    run,
    async [Symbol.asyncDispose]() {},
  };
  const options = { name: "bus", units: new Set([1]), delayMs: 0, pauseAfterConnectMs: 0 };
  return { runtime, link: await openModbusConnection({ ...options, connect: async () => exchange }, runtime, signal) };
}

const silence: Result = { kind: "silence", mismatch: undefined, received: false };
const data: Result = { kind: "data", bytes: Uint8Array.of(0, 7), at: epochMicros(0), tookMs: 900 };

test("silence of units that a search looks for does not bring the connection closer to its end", async () => {
  const { link, runtime } = await pollLink(async ({ unit }) => (unit === 1 ? data : silence));
  await link.read(request, 100, signal);
  for (let unit = 2; unit < 20; unit++) await link.search({ ...request, unit }, 100, signal);

  expect(link.isNearlyLost).toBe(false);
  expect(runtime.metric("source_modbus_requests_total", { source: "bus" })).toBe(1);
  expect(runtime.metric("source_modbus_requests_total", { source: "browse" })).toBe(18);
});

test("a unit that only a search reads does not keep a connection whose own units are silent", async () => {
  const { link } = await pollLink(async ({ unit }) => (unit === 5 ? data : silence));
  await link.search({ ...request, unit: 5 }, 1_000, signal);
  expect(link.unlikelyAfter(1_000)).toBe(1_000);
  const polls = async () => {
    for (let i = 0; i < 3; i++) await link.read(request, 100, signal);
  };
  await expect(polls()).rejects.toMatchObject({ code: "SOURCE_UNREACHABLE" });
  expect(link.isLost).toBe(true);
});

test("a search that is aborted waits for the end of its request, so that its answer is not taken for that of a poll", async () => {
  const leave = new AbortController();
  const seen: boolean[] = [];
  const { link } = await pollLink(async (_request, _timeoutMs, given) => {
    leave.abort();
    seen.push(given.aborted);
    return data;
  });
  expect(await link.search(request, 100, leave.signal)).toMatchObject({ kind: "data" });
  expect(seen).toEqual([false]);
  await expect(link.search(request, 100, leave.signal)).rejects.toBe(leave.signal.reason);
});
