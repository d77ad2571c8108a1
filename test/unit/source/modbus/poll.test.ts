import { expect, test } from "vitest";
import { epochMicros } from "../../../../src/core/point.ts";
import type { ReadingBatch } from "../../../../src/core/reading.ts";
import { readingsOf } from "../../../../src/lib/readings/reading-batch.ts";
import type { ReadRequest } from "../../../../src/source/modbus/config/pdu.ts";
import type { BlockBoundary } from "../../../../src/source/modbus/config/plan.ts";
import { pollTargets } from "../../../../src/source/modbus/config/tag-reads.ts";
import { probeBudget, unitBreaker } from "../../../../src/source/modbus/connection/breaker.ts";
import type { Result } from "../../../../src/source/modbus/connection/result.ts";
import { Poll } from "../../../../src/source/modbus/polling/poll.ts";
import { modbusConfig } from "../../../support/modbus-source.ts";
import { ManualClock, testRuntime } from "../../../support/runtime.ts";

const { signal } = new AbortController();
const answered = { at: epochMicros(0), tookMs: 0 };
const silence: Result = { kind: "silence", mismatch: undefined, received: false };
const refused = (code: number): Result => ({ kind: "exception", code, ...answered });
/** Each register holds its address. */
const given = ({ start, count }: ReadRequest): Result => ({
  kind: "data",
  bytes: Uint8Array.from(Array.from({ length: count }, (_, i) => [(start + i) >> 8, (start + i) & 0xff]).flat()),
  ...answered,
});

/** One unit with a register per tag. `answer` is its behaviour. */
function polled(
  addresses: readonly number[],
  answer: (request: ReadRequest) => Result | Promise<Result>,
  briefly?: (ms: number) => number,
) {
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  const config = modbusConfig(
    { url: "tcp://127.0.0.1" },
    addresses.map((address) => ({ at: `hr:${address}` })),
  );
  const [target] = pollTargets(config);
  if (!target) throw new Error("nothing to poll");
  const asked: ReadRequest[] = [];
  const cuts: BlockBoundary[] = [];
  const breaker = unitBreaker(clock, () => 0.5, probeBudget(clock));
  const poll = new Poll(
    {
      target,
      time: "poll",
      retries: 0,
      restMs: 0,
      link: {
        async read(request, timeoutMs) {
          if ("identity" in request) throw new Error("only registers are read");
          asked.push(request);
          const result = await answer(request);
          // Otherwise a timeout takes no time.
          if (briefly && result.kind === "silence") await clock.advance(timeoutMs);
          return result;
        },
        isNearlyLost: false,
        unlikelyAfter: briefly ?? ((ms) => ms),
      },
      mayBePatient: () => false,
      breaker,
      quirks: { cuts: () => cuts, add: (_unit, cut) => cuts.push(cut) },
    },
    runtime,
  );
  return {
    clock,
    runtime,
    asked,
    breaker,
    /** The readings of a cycle by tag, and the number of its requests. */
    cycle: async () => {
      const before = asked.length;
      const batches: ReadingBatch[] = [];
      await poll.cycle(clock.now(), batches, signal);
      const values = readingsOf(batches)
        .toSorted((a, b) => a.tag - b.tag)
        .map(({ value }) => value);
      return { values, requests: asked.length - before };
    },
  };
}

test("a unit found down by another poll while a block is divided is polled again later", async () => {
  let isBack = false;
  let found: number | undefined;
  let requests = 0;
  const { clock, breaker, cycle } = polled([0, 1], async (request) => {
    requests++;
    if (isBack) return given(request);
    // The unit answers a single time, to the request that tests whether it is alive.
    if (request.count === 1 && found === undefined) {
      found = request.start;
      return given(request);
    }
    // Before that value is read again.
    if (requests === (found === 0 ? 3 : 4)) {
      for (let i = 0; i < 3; i++) breaker.failed("silent to another poll", 0);
      await clock.advance(11_000);
    }
    return silence;
  });
  await cycle();
  expect(breaker.down).toBeDefined();
  isBack = true;
  await clock.advance(1_000_000);
  await cycle();
  await clock.advance(1_000_000);
  expect((await cycle()).values).toEqual([0, 1]);
});

test("a block refused as a whole is read more and more rarely, logged once, and read again when the device has it", async () => {
  let has = false;
  const { clock, runtime, asked, cycle } = polled([0, 1, 2, 3], (request) => (has ? given(request) : refused(2)));
  const cycles = 12 * 60 * 6;
  for (let i = 0; i < cycles; i++) {
    const { values } = await cycle();
    expect(values).toEqual([undefined, undefined, undefined, undefined]);
    await clock.advance(10_000);
  }
  // Seven requests each time: after 1, 2, 4 … 32 minutes, then every hour.
  expect(asked.length).toBeLessThanOrEqual(7 * (1 + 6 + 12));
  expect(runtime.lines.filter(({ message }) => message === "address refused")).toHaveLength(7);

  has = true;
  for (let i = 0; i < 361; i++) {
    await cycle();
    await clock.advance(10_000);
  }
  expect(await cycle()).toEqual({ values: [0, 1, 2, 3], requests: 1 });
});

test("a device silent at long requests gets shorter and shorter ones until it answers", async () => {
  const { clock, cycle } = polled([...Array(64).keys()], (request) => (request.count > 5 ? silence : given(request)));
  const cycles: (readonly unknown[])[] = [];
  while (cycles.length < 20 && (cycles.at(-1) ?? [undefined]).includes(undefined)) {
    cycles.push((await cycle()).values);
    await clock.advance(10_000);
  }

  // After three timeouts the unit is down. When it answers again, the whole search runs at once.
  expect(cycles.at(-1)).toEqual([...Array(64).keys()]);
  expect(cycles.length).toBeLessThanOrEqual(6);
});

test("the length limit of a unit is found without reading every part that is too long", async () => {
  const { clock, asked, cycle } = polled([...Array(64).keys()], (request) =>
    request.count > 5 ? silence : given(request),
  );
  let values: readonly unknown[] = [undefined];
  for (let i = 0; i < 10 && values.includes(undefined); i++) {
    ({ values } = await cycle());
    await clock.advance(1_000);
  }

  expect(values).toEqual([...Array(64).keys()]);
  // The whole block three times, then two requests of each length; trying each part would take 1 + 2 + 4 + 8.
  expect(asked.filter(({ count }) => count > 5).length).toBeLessThanOrEqual(3 + 3 * 2);
});

test("a unit that fails during the search for its length limit is not polled for each of its values", async () => {
  let answers = 3;
  const { clock, asked, cycle } = polled([...Array(64).keys()], (request) =>
    request.count > 5 || answers-- <= 0 ? silence : given(request),
  );
  for (let i = 0; i < 5; i++) {
    await cycle();
    await clock.advance(1_000);
  }

  expect(asked.length).toBeLessThanOrEqual(25);
});

test("a table at which a unit is silent is read more and more rarely, and its other tables as usual", async () => {
  const { clock, asked, cycle } = polled([0, 1, 2, 1_000], (request) =>
    request.start < 1_000 ? silence : given(request),
  );
  for (let i = 0; i < 360; i++) {
    expect((await cycle()).values).toEqual([undefined, undefined, undefined, 1_000]);
    await clock.advance(10_000);
  }
  // The block three times and two of its values, then a request after 1, 2, 4 … minutes.
  expect(asked.filter(({ start }) => start < 1_000).length).toBeLessThanOrEqual(3 + 2 + 3 * 6);
});

test("exception 1 at a hole affects only the value in it, and a missing table is read once an hour", async () => {
  const { cycle } = polled([0, 1, 2, 3, 4, 5, 6, 7], ({ start, count, ...rest }) =>
    start <= 5 && start + count > 5 ? refused(1) : given({ start, count, ...rest }),
  );
  expect((await cycle()).values).toEqual([0, 1, 2, 3, 4, undefined, 6, 7]);

  const missing = polled([0, 1, 2, 3, 4, 5, 6, 7], () => refused(1));
  await missing.cycle();
  const before = missing.asked.length;
  for (let i = 0; i < 59; i++) {
    await missing.clock.advance(60_000);
    await missing.cycle();
  }
  expect(missing.asked.length).toBe(before);
  await missing.clock.advance(60_000);
  expect((await missing.cycle()).requests).toBeGreaterThan(0);
});

test("a unit that is always busy is polled more and more rarely, with the reason, and recovers", async () => {
  let isBusy = true;
  const { clock, runtime, asked, cycle } = polled([0, 1, 1_000], (request) => (isBusy ? refused(6) : given(request)));
  // Advances time while the poll waits for a busy unit.
  const cycleInTime = async () => {
    const running = cycle();
    let isOver = false;
    void running.then(() => (isOver = true));
    while (!isOver) await clock.advance(200);
  };
  for (let i = 0; i < 600; i++) {
    await cycleInTime();
    await clock.advance(1_000);
  }

  // Three requests with their repetitions, then one after 5 s, 10 s … up to a minute.
  expect(asked.length).toBeLessThanOrEqual(3 + 3 * 3 + 4 + 1_000 / 30);
  expect(runtime.lines.filter(({ message }) => message === "unit is down")).toMatchObject([
    { fields: { reason: "exception 6: server device busy" } },
  ]);

  isBusy = false;
  await clock.advance(61_000);
  expect((await cycle()).values).toEqual([0, 1, 1_000]);
});

test("an exception during the search for refused registers affects only its own registers", async () => {
  // The block contains a refused address. During the search for it, the unit fails once and times out once.
  const trouble = [refused(4), silence];
  const { clock, cycle } = polled([0, 1, 2, 3, 4, 5, 6, 7], (request) => {
    const { start, count } = request;
    if (start <= 5 && start + count > 5) return refused(2);
    if (count < 4) return trouble.shift() ?? given(request);
    return given(request);
  });
  await cycle();
  await clock.advance(1_000);
  const { values, requests } = await cycle();

  expect(values).toEqual([0, 1, 2, 3, 4, undefined, 6, 7]);
  await clock.advance(1_000);
  expect((await cycle()).requests).toBeLessThanOrEqual(requests);
});

test("a block with a register on which the device fails is divided, and a device that fails on everything is not", async () => {
  let fails = false;
  const { clock, asked, cycle } = polled([0, 1, 2, 3, 4, 5, 6, 7], (request) => {
    const { start, count } = request;
    return fails || (start <= 5 && start + count > 5) ? refused(4) : given(request);
  });
  for (let i = 0; i < 3; i++) {
    await cycle();
    await clock.advance(1_000);
  }
  expect((await cycle()).values).toEqual([0, 1, 2, 3, 4, undefined, 6, 7]);

  fails = true;
  await cycle();
  const before = asked.length;
  for (let i = 0; i < 100; i++) {
    await clock.advance(100);
    await cycle();
  }
  // The blocks, and occasionally two values of each.
  expect(asked.length - before).toBeLessThanOrEqual(100 * 4 + 2 * 2 * 6);
});

test("when no answer of a block's length can be distinguished from another master's its parts are read, and the unit is not down", async () => {
  const { breaker, cycle } = polled([0, 1, 2, 3], (request) =>
    request.count > 2 ? { kind: "contested", always: true } : given(request),
  );
  expect((await cycle()).values).toEqual([0, 1, 2, 3]);

  const alone = polled([7], () => ({ kind: "contested", always: true }));
  for (let i = 0; i < 5; i++) expect((await alone.cycle()).values).toEqual([undefined]);
  expect([breaker.down, alone.breaker.down]).toEqual([undefined, undefined]);
});

test("a unit that is dead from the start costs little more than one timeout while others answer", async () => {
  const { clock, cycle } = polled(
    [0, 1, 2, 3],
    () => silence,
    () => 50,
  );
  const start = clock.monotonic();
  await cycle();
  expect(clock.monotonic() - start).toBe(1_050);
});
