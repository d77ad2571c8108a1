// Calls of one method: in order, one at a time, an interval apart as the service sees them.
import { expect, test } from "vitest";
import { Pacer, type RateLease } from "../../../src/upload/client/pacer.ts";
import { ManualClock } from "../../support/runtime.ts";

const never = new AbortController().signal;

/** Runs calls that take `durations` one after the other. Returns their start times. */
async function starts(durations: readonly number[], requestsPerSecond = 1): Promise<number[]> {
  const clock = new ManualClock();
  const pacer = new Pacer(clock, requestsPerSecond);
  const seen: number[] = [];
  const calls = durations.map((ms) =>
    pacer.run(async () => {
      seen.push(clock.monotonic());
      if (ms > 0) await clock.sleep(ms, never);
    }, never),
  );
  await clock.advance(60_000);
  await Promise.all(calls);
  return seen;
}

test("calls start one interval apart, the first one an interval after the pacer was created", async () => {
  expect(await starts([0, 0, 0])).toEqual([1_000, 2_000, 3_000]);
  expect(await starts([0, 0], 0.25)).toEqual([4_000, 8_000]);
});

test("a call starts when the previous one is answered, if that takes longer than the interval", async () => {
  const [first, second] = await starts([5_000, 0]);
  expect(second! - first!).toBeGreaterThanOrEqual(5_000);
});

test("after a late call the next one waits longer, so that the service sees them one interval apart", async () => {
  // The third request may have reached the service after 300 ms, and the fourth at once.
  const [, , third, fourth] = await starts([5, 5, 300, 5]);
  expect(fourth! - third!).toBeGreaterThanOrEqual(1_000 + 295);
});

test("a service with constant latency costs at most 50 ms a request", async () => {
  const seen = (await starts(Array.from({ length: 12 }, () => 200))).slice(7);
  expect(seen.slice(1).map((start, i) => start - seen[i]!)).toEqual([1_050, 1_050, 1_050, 1_050]);
});

test("the first seven calls are assumed late by their whole duration: a shorter one may follow", async () => {
  const [first, second, third] = await starts([300, 330, 5]);
  expect(second! - first!).toBe(1_300);
  expect(third! - second!).toBe(1_330);
});

test("an aborted wait does not delay the next call", async () => {
  const clock = new ManualClock();
  const pacer = new Pacer(clock, 1);
  const stop = new AbortController();
  const given = pacer.run(async () => "first", stop.signal);
  const next = pacer.run(async () => clock.monotonic(), never);
  stop.abort(new Error("enough"));
  await expect(given).rejects.toThrow("enough");
  await clock.advance(1_000);
  expect(await next).toBe(1_000);
});

/** Turns that a process takes and releases. */
class SharedTurns {
  holder: string | undefined;
  next: number | undefined;

  of(name: string): RateLease {
    return {
      take: () => {
        if (this.holder !== undefined) return false;
        this.holder = name;
        return true;
      },
      give: async () => {
        if (this.holder === name) this.holder = undefined;
      },
      next: async () => this.next,
      callAgainAt: (time) => {
        this.next = time;
      },
    };
  }
}

test("two processes keep the rate together, and their calls do not overlap", async () => {
  const clock = new ManualClock();
  const turns = new SharedTurns();
  const seen: { by: string; start: number; end: number }[] = [];
  const calls = ["agent", "command"].flatMap((by) => {
    const pacer = new Pacer(clock, 1, turns.of(by));
    return [0, 300, 2_000, 0, 0].map((ms) =>
      pacer.run(async () => {
        const start = clock.monotonic();
        await clock.sleep(ms, never);
        seen.push({ by, start, end: clock.monotonic() });
      }, never),
    );
  });
  await clock.advance(60_000);
  await Promise.all(calls);
  expect(seen.length).toBe(10);
  const gaps = seen.slice(1).map(({ start }, i) => start - seen[i]!.start);
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(1_000);
  for (const [i, { start }] of seen.slice(1).entries()) expect(start).toBeGreaterThanOrEqual(seen[i]!.end);
  // Neither waits until the other has no more requests.
  expect(seen.findLastIndex(({ by }) => by === "agent")).toBeGreaterThan(5);
  expect(seen.findLastIndex(({ by }) => by === "command")).toBeGreaterThan(5);
});

test("a call counts from its start: the next one waits also when the process of the first one dies", async () => {
  const clock = new ManualClock();
  const turns = new SharedTurns();
  const pacer = new Pacer(clock, 1, turns.of("agent"));
  const started = Promise.withResolvers<void>();
  void pacer.run(() => {
    started.resolve();
    return new Promise<never>(() => {});
  }, never);
  await clock.advance(1_000);
  await started.promise;
  expect(turns.next).toBe(2_000);
});

test("times recorded before a reboot do not delay calls for long", async () => {
  const clock = new ManualClock();
  const turns = new SharedTurns();
  turns.next = 86_400_000;
  const pacer = new Pacer(clock, 1, turns.of("agent"));
  const started = pacer.run(async () => clock.monotonic(), never);
  await clock.advance(10_000);
  expect(await Promise.race([started, Promise.resolve("waiting")])).toBeLessThanOrEqual(3_000);
});

test("a process suspended during its call delays the others for a minute", async () => {
  const clock = new ManualClock();
  const turns = new SharedTurns();
  expect(turns.of("command").take()).toBe(true);
  const pacer = new Pacer(clock, 1, turns.of("agent"));
  const started = pacer.run(async () => clock.monotonic(), never);
  await clock.advance(60_000);
  expect(turns.holder).toBe("command");
  await clock.advance(2_000);
  expect(await started).toBeGreaterThanOrEqual(61_000);
  expect(turns.holder).toBe("command");
});
