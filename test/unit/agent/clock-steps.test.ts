// The clock is set while the agent runs, or between two runs. The service is the judge: it keeps the last value per
// time, and no value may overwrite another because the agent's clock went back.
import fc from "fast-check";
import { expect, test } from "vitest";
import { AgentClock, type ClockEpoch, resumeClock } from "../../../src/agent/clock/agent-clock.ts";
import { holdForClock } from "../../../src/agent/clock/clock-hold.ts";
import { openClockWatch } from "../../../src/agent/clock/clock-watch.ts";
import { type Life, signOfLife } from "../../../src/agent/gaps/gap-file.ts";
import type { Runtime } from "../../../src/core/runtime.ts";
import type { Delivery, Reading, TagId } from "../../../src/core/source.ts";
import { tagOptions } from "../../../src/mapping/options.ts";
import { openMapping } from "../../../src/mapping/source-mapping.ts";
import { slots } from "../../../src/source/modbus/polling/schedule.ts";
import { runs } from "../../support/property.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";

const second = 1_000;
/** More than the agent waits for, like an hour. */
const long = 150 * second;

interface Setting {
  readonly policy?: "hold" | "write";
  readonly synchronised?: "yes" | "unknown";
  readonly everyMs?: number;
}

/** A machine with a polled tag. The value is the true time in seconds since the start; its clock can be set. */
class Machine {
  readonly wall = new ManualClock("2026-05-01T12:00:00Z");
  readonly #setting: Required<Setting>;
  /** The values at the service, and how often one overwrote another. */
  readonly stored = new Map<number, number>();
  overwritten = 0;
  /** Values with a time later than the clock showed. */
  ofFuture = 0;
  /** How long the device takes to answer. */
  answersAfterMs = 0;
  status: string | undefined;
  #written: ClockEpoch | undefined;
  #life: Life | undefined;

  constructor(setting: Setting = {}) {
    this.#setting = { policy: "hold", synchronised: "unknown", everyMs: second, ...setting };
  }

  /** Runs an agent during `story`, then stops it in order or kills it. */
  async run(story: (machine: this) => Promise<void>, end: "stop" | "kill" = "stop"): Promise<void> {
    const clock = new AgentClock(this.wall);
    const runtime: Runtime = testRuntime({ clock });
    const file = {
      load: async () => this.#written,
      save: async (epoch: ClockEpoch) => void (this.#written = epoch),
    };
    const life = signOfLife(this.#life, clock);
    await resumeClock(clock, file, this.#life);
    const { policy, synchronised } = this.#setting;
    const evidence = { synchronised: async () => synchronised, hasHardwareClock: async () => true };
    const watch = await openClockWatch({ policy, evidence, lastRan: this.#life?.time, clock, file }, runtime);
    const hold = holdForClock("bus1", { watch, clock }, runtime);
    const rules = [tagOptions.parse({ input: "a" })];
    using mapping = openMapping({ source: "bus1", rules, catalog: { describe() {} } }, runtime);
    const stop = new AbortController();
    const signing = (async () => {
      for (;;) {
        this.#life = life.next(false) ?? this.#life;
        this.status = watch.problem?.reason;
        await clock.sleep(second, stop.signal);
      }
    })().catch(() => {});
    const polling = (async () => {
      for await (const delivery of hold.timed(this.#polled(runtime, stop.signal), stop.signal))
        for (const { time, value } of mapping.map(delivery)) this.#store(time, value);
    })();
    await story(this);
    stop.abort(new Error("over"));
    await Promise.all([signing, polling, watch[Symbol.asyncDispose]()]);
    if (end === "stop") this.#life = life.next(true) ?? this.#life;
  }

  /** The stored values whose time differs from the true time by more than `ms`. */
  wrongBy(ms: number): readonly number[] {
    const start = Date.parse("2026-05-01T12:00:00Z");
    return [...this.stored]
      .filter(([time, value]) => Math.abs(time / 1e3 - start - value * 1e3) > ms)
      .map(([, value]) => value);
  }

  #store(time: number, value: number): void {
    if (this.stored.has(time)) this.overwritten++;
    if (time > this.wall.now()) this.ofFuture++;
    this.stored.set(time, value);
  }

  async *#polled(runtime: Runtime, signal: AbortSignal): AsyncGenerator<Delivery> {
    try {
      for await (const { time } of slots(this.#setting.everyMs, runtime.clock, signal)) {
        const value = this.wall.monotonic() / second;
        if (this.answersAfterMs > 0) await runtime.clock.sleep(this.answersAfterMs, signal);
        const reading: Reading = {
          tag: 0 as TagId,
          captures: {},
          address: "hr:0",
          value,
          time,
          clock: "agent",
          quality: "good",
          historical: false,
        };
        yield { readings: [reading], descriptions: [], awaited: false, ack() {} };
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}

test.for([2, 30])(
  "while the clock is set back by %d s, times go on more slowly, and none is given twice",
  async (seconds) => {
    const machine = new Machine();
    await machine.run(async ({ wall }) => {
      await wall.advance(100 * second);
      wall.stepWall(-seconds * second);
      await wall.advance(400 * second);
    });
    expect(machine.overwritten).toBe(0);
    expect(machine.stored.size).toBeGreaterThan(490 - seconds);
    // Until the step, times are right. Afterwards they are off by at most the size of the step, and in the end by
    // exactly that.
    expect(machine.wrongBy((seconds + 1.2) * second)).toEqual([]);
    const end = (Date.parse("2026-05-01T12:08:20Z") - seconds * second) * 1_000;
    expect(Math.abs(([...machine.stored].at(-1)?.[0] ?? 0) - end)).toBeLessThanOrEqual(1e6);
  },
);

test("after a clock is set back by more than a minute readings wait two minutes, are stored under the new time, and overwrite nothing", async () => {
  const machine = new Machine();
  let doubt: string | undefined;
  await machine.run(async ({ wall }) => {
    await wall.advance(300 * second);
    wall.stepWall(-long);
    await wall.advance(10 * second);
    doubt = machine.status;
    expect(machine.stored.size).toBe(300);
    await wall.advance(400 * second);
  });
  expect(doubt).toMatch(/^it was set back by 2m30s, to 2026-05-01T12:02:/);
  expect(machine.overwritten).toBe(0);
  expect(machine.stored.size).toBeGreaterThan(705);
  const late = [...machine.stored].filter(([, value]) => value > 301);
  // The times follow the new clock. While they are behind the stored ones, they are shifted by a microsecond.
  const shift = Date.parse("2026-05-01T12:00:00Z") - long;
  expect(late.every(([time, value]) => Math.abs(time / 1e3 - shift - value * 1e3) < 2_000)).toBe(true);
  expect(late.slice(0, 140).every(([time]) => time % 1e6 === 1)).toBe(true);
  expect(late.slice(-50).every(([time]) => time % 1e6 === 0)).toBe(true);
});

test("a correction of minutes by time synchronisation is followed at once", async () => {
  const machine = new Machine({ synchronised: "yes" });
  await machine.run(async ({ wall }) => {
    await wall.advance(200 * second);
    wall.stepWall(-long);
    await wall.advance(10 * second);
    expect(machine.status).toBeUndefined();
    expect(machine.stored.size).toBeGreaterThan(207);
  });
  expect(machine.overwritten).toBe(0);
});

test("a clock that falls to 1970 and is corrected loses no value and no time", async () => {
  const machine = new Machine();
  await machine.run(async ({ wall }) => {
    await wall.advance(100 * second);
    const back = wall.now() / 1_000;
    wall.stepWall(-back);
    await wall.advance(200 * second);
    expect(machine.status).toMatch(/^it says 1970-01-01/);
    expect(machine.stored.size).toBe(100);
    wall.stepWall(back);
    await wall.advance(100 * second);
  });
  expect(machine.overwritten).toBe(0);
  expect(machine.stored.size).toBeGreaterThanOrEqual(399);
  expect(machine.wrongBy(second)).toEqual([]);
});

test("readings from before the step from 1970 to now get their right time", async () => {
  const machine = new Machine();
  machine.wall.stepWall(-Number(machine.wall.now()) / 1_000);
  await machine.run(async ({ wall }) => {
    await wall.advance(60 * second);
    wall.stepWall(Date.parse("2026-05-01T12:01:00Z") - wall.now() / 1_000);
    await wall.advance(60 * second);
  });
  expect(machine.overwritten).toBe(0);
  expect(machine.stored.size).toBeGreaterThanOrEqual(118);
  expect(machine.wrongBy(1.2 * second)).toEqual([]);
});

test.for<["stop" | "kill", number]>([
  ["stop", 2],
  ["stop", 30],
  ["stop", 150],
  ["kill", 2],
  ["kill", 30],
  ["kill", 150],
])("%s, the clock set back by %d s, and started: nothing is overwritten", async ([end, seconds]) => {
  const machine = new Machine();
  await machine.run(({ wall }) => wall.advance(160 * second + 7.5 * second), end);
  machine.wall.stepWall(-seconds * second);
  await machine.run(({ wall }) => wall.advance(300 * second));
  expect(machine.overwritten).toBe(0);
  expect(machine.stored.size).toBeGreaterThan(450);
});

test("no answer after a clock was set back replaces a value of the run before, however late it comes", async () => {
  for (const [ranMs, answersAfterMs] of [
    [21_000, 0],
    [21_200, 400],
    [21_200, 900],
  ] as const) {
    const machine = new Machine({ synchronised: "yes" });
    await machine.run(({ wall }) => wall.advance(ranMs));
    machine.wall.stepWall(-2 * second);
    await machine.wall.advance(second);
    machine.answersAfterMs = answersAfterMs;
    await machine.run(({ wall }) => wall.advance(20 * second));
    expect(machine.overwritten).toBe(0);
    expect(machine.stored.size).toBeGreaterThanOrEqual(39);
  }
});

test.for([
  [66, 54],
  [-61, 34],
])(
  "a slow answer on the way while the clock is set twice, by %d and %d s, replaces no other and is of no future",
  async ([first = 0, then = 0]) => {
    const machine = new Machine({ synchronised: "yes" });
    machine.answersAfterMs = 2_500;
    await machine.run(async ({ wall }) => {
      await wall.advance(20 * second);
      wall.stepWall(first * second);
      await wall.advance(second);
      wall.stepWall(then * second);
      await wall.advance(40 * second);
    });
    expect(machine.overwritten).toBe(0);
    expect(machine.ofFuture).toBe(0);
  },
);

test("an answer on the way while a clock in doubt is set forward by 2 s replaces no other", async () => {
  const machine = new Machine();
  machine.answersAfterMs = 300;
  await machine.run(({ wall }) => wall.advance(20 * second));
  machine.wall.stepWall(-long);
  await machine.run(async ({ wall, stored }) => {
    await wall.advance(20 * second);
    expect(stored.size).toBe(19);
    wall.stepWall(2 * second);
    await wall.advance(300 * second);
  });
  expect(machine.overwritten).toBe(0);
  expect(machine.stored.size).toBeGreaterThan(300);
});

test("a kill and a start within seconds keep times on their grid while the clock is right", async () => {
  const machine = new Machine();
  await machine.run(({ wall }) => wall.advance(17.5 * second), "kill");
  await machine.wall.advance(second);
  await machine.run(({ wall }) => wall.advance(20 * second));
  expect([...machine.stored.keys()].every((time) => time % 1e6 === 0)).toBe(true);
  expect(machine.overwritten).toBe(0);
});

test("whatever steps the clock makes, during and between runs, no value replaces another", async () => {
  const step = fc.oneof(
    fc.integer({ min: -90, max: 90 }),
    fc.integer({ min: -600, max: 600 }),
    fc.constantFrom(-2, -30, -60, -61, -150, 150),
  );
  const act = fc.record({
    step,
    forS: fc.integer({ min: 1, max: 160 }),
    end: fc.constantFrom("go on" as const, "go on" as const, "stop" as const, "kill" as const),
  });
  const setting = fc.record({
    policy: fc.constantFrom("hold" as const, "write" as const),
    synchronised: fc.constantFrom("yes" as const, "unknown" as const),
    everyMs: fc.constantFrom(1_000, 700, 5_000),
  });
  const answers = fc.array(fc.constantFrom(0, 300, 2_500), { minLength: 1, maxLength: 3 });
  await fc.assert(
    fc.asyncProperty(setting, answers, fc.array(act, { minLength: 1, maxLength: 5 }), async (given, late, acts) => {
      const machine = new Machine(given);
      const left = [...acts];
      while (left.length > 0) {
        let end: "stop" | "kill" = "stop";
        machine.answersAfterMs = late[left.length % late.length] ?? 0;
        await machine.run(async ({ wall }) => {
          await wall.advance(20 * second);
          for (let next = left.shift(); next; next = left.shift()) {
            wall.stepWall(next.step * second);
            await wall.advance(next.forS * second);
            if (next.end === "go on") continue;
            end = next.end;
            return;
          }
        }, end);
        if (left.length > 0) {
          machine.wall.stepWall((left[0]?.step ?? 0) * second);
          await machine.wall.advance(second);
        }
      }
      expect(machine.overwritten).toBe(0);
    }),
    runs(5),
  );
});
