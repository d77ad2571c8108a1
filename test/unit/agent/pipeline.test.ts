// The order of operations between a source and the disk.
import { once } from "node:events";
import { expect, test } from "vitest";
import { runPipeline } from "../../../src/agent/pipeline.ts";
import { sourceMonitor } from "../../../src/agent/status/source-monitor.ts";
import type { AppendOptions, PointBuffer } from "../../../src/core/buffer.ts";
import { AgentError } from "../../../src/core/errors.ts";
import { epochMicros, type InputId, type Point } from "../../../src/core/point.ts";
import type { Delivery, Source, TagGap } from "../../../src/core/source.ts";
import { orAbort } from "../../../src/lib/flow/abort.ts";
import type { Mapping } from "../../../src/mapping/mapping.ts";
import { eventually } from "../../support/eventually.ts";
import { tagGap } from "../../support/gap-story.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";

test("a delivery is acknowledged after its points are stored, and not before", async () => {
  const story = openStory({ deliveries: [[1, 2]] });
  const stored = Promise.withResolvers<void>();
  story.buffer.storing = () => stored.promise;

  await eventually(() => story.log.includes("append 1,2"));
  expect(story.log).not.toContain("ack 1,2");
  stored.resolve();
  await eventually(() => story.log.includes("ack 1,2"));

  await story.stop();
});

test("a loss reported by a driver is in the gap record before the driver may forget it", async () => {
  const story = openStory({
    deliveries: [[1], [2]],
    gaps: [tagGap(1, "lost", 1, 2)],
  });
  await eventually(() => story.log.includes("ack 2"));
  expect(story.log.filter((line) => !/^(?:open|pull|append|reconnected|claim|online)/.test(line))).toEqual([
    "record",
    "written",
    "ack 1",
    "record",
    "written",
    "ack 2",
  ]);
  await story.stop();
});

test("a delivery that reports a loss waits for the gap record and delays no other", async () => {
  const story = openStory({
    deliveries: [[1], [2], [3]],
    gaps: [tagGap(1, "lost", 1, 2)],
    written: (times) => times > 2,
  });
  await eventually(() => story.log.includes("ack 3"));
  expect(story.log.filter((line) => /^(?:written|ack)/.test(line))).toEqual([
    "written",
    "written",
    "written",
    "ack 1",
    "ack 2",
    "ack 3",
  ]);
  await story.stop();
});

test("a full disk holds the source back until it has space, and nothing is lost or acknowledged meanwhile", async () => {
  const story = openStory({ deliveries: [[1], [2]] });
  story.buffer.storing = () => Promise.reject(new AgentError("BUFFER_UNAVAILABLE", "no space left on the disk"));

  await eventually(() => story.log.filter((line) => line === "append 1").length === 1);
  await story.clock.advance(10_000);
  expect(story.log).not.toContain("ack 1");
  expect(story.log).not.toContain("pull 2");
  expect(story.monitor.status().error).toBe("no space left on the disk");

  story.buffer.storing = () => Promise.resolve();
  await story.clock.advance(2_000);
  await eventually(() => story.log.includes("ack 2"));
  expect(story.stored).toEqual([1, 2]);
  // The source is not reopened: a device without a session would lose its values.
  expect(story.log.filter((line) => line === "open")).toHaveLength(1);
  expect(story.monitor.status().error).toBeUndefined();

  await story.stop();
});

test("values read before the agent stops are stored and acknowledged after reading has ended", async () => {
  const story = openStory({ deliveries: [[1]] });
  const stored = Promise.withResolvers<void>();
  story.buffer.storing = () => stored.promise;
  await eventually(() => story.log.includes("append 1"));

  const stopped = story.stop();
  stored.resolve();
  await stopped;

  expect(story.log).toContain("ack 1");
});

test("a delivery without points is acknowledged without a disk access", async () => {
  const story = openStory({ deliveries: [[], [1]] });
  await eventually(() => story.log.includes("ack 1"));

  expect(story.log.filter((line) => /^(?:append|ack)/.test(line))).toEqual(["ack ", "append 1", "ack 1"]);
  await story.stop();
});

test("the gap record has when points began to wait for the disk, that the disk fails, and when it recovers", async () => {
  const story = openStory({ deliveries: [[1]] });
  story.buffer.storing = () => Promise.reject(new AgentError("BUFFER_UNAVAILABLE", "no space left"));
  await eventually(() => story.disk.length === 2);
  story.buffer.storing = () => Promise.resolve();
  await story.clock.advance(2_000);
  await eventually(() => story.log.includes("ack 1"));

  expect(story.disk).toEqual(["storing", "no space left", "storing", "works"]);
  await story.stop();
});

test("a defect of the buffer causes a reconnection, and the points are not acknowledged", async () => {
  let failures = 1;
  const story = openStory({ deliveries: [[1]] });
  story.buffer.storing = () => (failures-- > 0 ? Promise.reject(new TypeError("a defect")) : Promise.resolve());
  await eventually(() => story.log.includes("lost"));
  expect(story.log).not.toContain("ack 1");

  await story.clock.advance(2_000);
  await eventually(() => story.log.includes("ack 1"));
  await story.stop();
});

test("a delivery that could not be stored before the stop is not acknowledged", async () => {
  const story = openStory({ deliveries: [[1]] });
  story.buffer.storing = () => Promise.reject(new AgentError("BUFFER_UNAVAILABLE", "broken"));
  await eventually(() => story.log.includes("append 1"));

  await story.stop();

  expect(story.log).not.toContain("ack 1");
});

test("a stop is not a loss: no gap begins and no connection is opened again", async () => {
  const story = openStory({ deliveries: [[1]] });
  await eventually(() => story.log.includes("ack 1"));

  await story.stop();

  expect(story.log).not.toContain("lost");
  expect(story.log.filter((line) => line === "open")).toHaveLength(1);
  expect(story.monitor.status()).toMatchObject({ state: "stopped" });
});

test("a source that ends by itself begins a gap and is opened again", async () => {
  const story = openStory({ deliveries: [[1]], ends: true });

  await eventually(() => story.log.includes("lost"));
  expect(story.monitor.status()).toMatchObject({ state: "waiting", error: "the source ended without a reason" });
  await story.clock.advance(2_000);
  await eventually(() => story.log.filter((line) => line === "online").length === 2);

  await story.stop();
});

test("each connection begins before its values: for the gap record, for the mapping and on the status page", async () => {
  const story = openStory({ deliveries: [[1]] });
  await eventually(() => story.log.includes("ack 1"));

  expect(story.log.slice(0, 5)).toEqual(["open", "online", "reconnected", "claim a,b", "pull 1"]);
  expect(story.monitor.status()).toMatchObject({ state: "online", readings: 1, points: 1 });
  await story.stop();
});

test("a connection that delivered values resets the back-off, one that delivered none does not", async () => {
  const waitsAfter = async (deliveries: readonly (readonly number[])[]) => {
    const story = openStory({ deliveries, ends: true });
    await story.clock.advance(120_000);
    await story.stop();
    return story.log.filter((line) => line === "open").length;
  };

  // With a delivery: every second. Without one: at growing intervals up to 30 s.
  expect(await waitsAfter([[1]])).toBeGreaterThan(60);
  expect(await waitsAfter([])).toBeLessThan(40);
});

test("a delivery that reports no loss does not wait for the gap record", async () => {
  const story = openStory({ deliveries: [[1]], gaps: [tagGap(1, "filled", 1, 2)] });
  await eventually(() => story.log.includes("ack 1"));

  expect(story.log).not.toContain("written");
  await story.stop();
});

test("a delivery that waited for the gap record is acknowledged with the next one, whatever that reports", async () => {
  const story = openStory({
    deliveries: [[1], [2], [3]],
    gaps: (values) => (values.includes(1) ? [tagGap(1, "lost", 1, 2)] : []),
    written: (times) => times > 2,
  });
  await eventually(() => story.log.includes("ack 3"));

  expect(story.log.filter((line) => line.startsWith("ack"))).toEqual(["ack 2", "ack 1", "ack 3"]);
  await story.stop();
});

test("at most 100 deliveries wait for a gap record that cannot be written: the oldest are redelivered instead", async () => {
  let canWrite = false;
  const values = Array.from({ length: 102 }, (_, i) => [i + 1]);
  const story = openStory({
    deliveries: values,
    gaps: [tagGap(1, "lost", 1, 2)],
    written: () => canWrite,
    hold: (delivery) => {
      canWrite = Number(delivery.readings[0]?.value) === 102;
      return delivery;
    },
  });
  await eventually(() => story.log.includes("ack 102"));

  expect(story.log.filter((line) => line.startsWith("ack"))).toEqual(
    values.slice(1).map((value) => `ack ${value.join()}`),
  );
  await story.stop();
});

test("deliveries that wait for the clock pass through, and are abandoned at the stop", async () => {
  const story = openStory({ deliveries: [[1]], hold: (delivery) => delivery });
  await eventually(() => story.log.includes("ack 1"));
  expect(story.log).not.toContain("hold closed");

  await story.stop();

  expect(story.log).toContain("hold closed");
});

test("points that the mapping holds back are stored when due, and the rest at the stop", async () => {
  const story = openStory({ deliveries: [[1]] });
  story.held.push(7);
  await story.clock.advance(300);
  await eventually(() => story.stored.includes(7));
  story.heldAtStop.push(8);

  await story.stop();

  expect(story.stored).toEqual([1, 7, 8]);
});

test("a point held back just when the last held point was stored is stored when due", async () => {
  for (let ahead = -10; ahead <= 10; ahead++) {
    const story = openStory({
      deliveries: [[1], [2]],
      holds: (values) => values.map((value) => value + 6),
    });
    const disks = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
    const [ofDelivery, ofHeld] = disks;
    let appends = 0;
    story.buffer.storing = () => disks[appends++]?.promise ?? Promise.resolve();
    await eventually(() => story.log.includes("append 1"));
    await story.clock.advance(300);
    await eventually(() => story.log.includes("append 7"));
    const [first, second] = ahead < 0 ? [ofDelivery, ofHeld] : [ofHeld, ofDelivery];
    first.resolve();
    for (let turn = 0; turn < Math.abs(ahead); turn++) await Promise.resolve();
    second.resolve();
    await eventually(() => story.log.includes("ack 2"));

    await story.clock.advance(300);
    await eventually(() => story.stored.includes(8));
    await story.stop();
  }
});

test("a lost source is opened again at growing intervals of at most 30 s, and shown with the remedy", async () => {
  const story = openStory({
    deliveries: [],
    fail: () => new AgentError("SOURCE_UNREACHABLE", "10.0.0.5:502 refused the connection"),
  });

  await story.clock.advance(600_000);

  const opened = story.log.filter((line) => line === "open").length;
  expect(opened).toBeGreaterThan(20);
  expect(opened).toBeLessThan(120);
  expect(story.monitor.status()).toMatchObject({
    state: "waiting",
    error: "10.0.0.5:502 refused the connection",
    remedy: expect.stringContaining("cable"),
  });
  expect(story.runtime.lines.filter(({ message }) => message === "source lost").length).toBeLessThanOrEqual(2);

  await story.stop();
});

test("a driver with cheap attempts retries soon while its device is unreachable, and only then", async () => {
  for (const [code, fewest, most] of [
    ["SOURCE_UNREACHABLE", 400, 601],
    ["SOURCE_REFUSED", 20, 120],
  ] as const) {
    const story = openStory({ deliveries: [], fail: () => new AgentError(code, "no"), unreachablePauseMs: 1_500 });
    await story.clock.advance(600_000);
    const opened = story.log.filter((line) => line === "open").length;
    expect(opened).toBeGreaterThanOrEqual(fewest);
    expect(opened).toBeLessThanOrEqual(most);
    await story.stop();
  }
});

test("an unexpected failure of a driver is logged with its stack and causes only a reconnection", async () => {
  let failures = 1;
  const story = openStory({
    deliveries: [[1]],
    fail: () => (failures-- > 0 ? new TypeError("not a function") : undefined),
  });

  await story.clock.advance(5_000);
  await eventually(() => story.log.includes("ack 1"));

  expect(story.runtime.lines).toContainEqual(
    expect.objectContaining({ level: "error", message: "source failed unexpectedly" }),
  );
  await story.stop();
});

test("without the lease of the source nothing is opened, stored or acknowledged", async () => {
  for (const [lost, expected] of [
    [undefined, []],
    ["pull 2", ["open", "append 1", "ack 1"]],
    ["append 2", ["open", "append 1", "ack 1", "append 2"]],
  ] as const) {
    const isHeld = (log: readonly string[]) => lost !== undefined && !log.includes(lost);
    const story = openStory({ deliveries: [[1], [2], [3]], isHeld });
    await eventually(() => story.monitor.status().state === "stopped");
    await story.stop();
    expect(story.log.filter((line) => /^(?:open|append|ack)/.test(line))).toEqual(expected);
    expect(story.monitor.status().error).toBeUndefined();
  }
});

test("a session taken over by another client is opened again after pauses of 10, 30 and 60 s", async () => {
  const opened: number[] = [];
  const story = openStory({
    deliveries: [],
    fail: () => {
      opened.push(story.clock.monotonic());
      return new AgentError("SOURCE_TAKEN_OVER", "another client took over the session");
    },
  });
  for (let seconds = 0; seconds < 200; seconds++) await story.clock.advance(1_000);
  const pauses = opened.slice(1).map((at, i) => (at - (opened[i] ?? 0)) / 1_000);
  expect(pauses.length).toBeGreaterThanOrEqual(3);
  for (const [i, seconds] of [10, 30, 60].entries()) {
    expect(pauses[i]).toBeGreaterThanOrEqual(seconds);
    expect(pauses[i]).toBeLessThanOrEqual(seconds * 1.2 + 1);
  }
  await story.stop();
});

/** One pipeline. Records the calls of its surroundings in `log`. */
function openStory({
  deliveries,
  gaps = [],
  fail,
  ends = false,
  hold,
  holds = () => [],
  written = () => true,
  unreachablePauseMs,
  isHeld,
}: {
  /** Whether this agent holds the lease of the source, given the log. */
  isHeld?: (log: readonly string[]) => boolean;
  deliveries: readonly (readonly number[])[];
  /** Reported with each delivery. */
  gaps?: readonly TagGap[] | ((values: readonly number[]) => readonly TagGap[]);
  /** Whether the source ends after its deliveries. */
  ends?: boolean;
  /** Replaces a delivery while the clock is in doubt. */
  hold?: (delivery: Delivery) => Delivery;
  /** The values of a delivery that the mapping holds back, in addition to those that it passes. */
  holds?: (values: readonly number[]) => readonly number[];
  fail?: () => Error | undefined;
  unreachablePauseMs?: number;
  /** Whether the gap record can be written at this attempt. */
  written?: (times: number) => boolean;
}) {
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  const log: string[] = [];
  const disk: string[] = [];
  const stored: number[] = [];
  const held: number[] = [];
  const heldAtStop: number[] = [];
  const stop = new AbortController();
  const point = (value: number): Point => ({ input: "a" as InputId, time: epochMicros(value), value });

  const buffer = {
    storing: (): Promise<void> => Promise.resolve(),
    async append(points: readonly Point[], _options: AppendOptions, signal: AbortSignal) {
      log.push(`append ${points.map(({ value }) => value).join()}`);
      await orAbort(buffer.storing(), signal);
      stored.push(...points.map(({ value }) => value));
    },
  };
  const mapping: Mapping = {
    map(delivery) {
      const values = delivery.readings.map(({ value }) => Number(value));
      held.push(...holds(values));
      return values.map(point);
    },
    mapBatches: () => {
      throw new Error("its deliveries are plain");
    },
    due: () => held.splice(0).map(point),
    get nextDue() {
      return held.length > 0 ? clock.monotonic() : undefined;
    },
    flush: () => heldAtStop.splice(0).map(point),
    reconnected: () => log.push("reconnected"),
    tags: () => [],
    tagsIn: () => ({ total: 0, tags: [] }),
    values: () => 0,
    timeFaults: () => ({ standing: 0, repeats: 0, first: [] }),
    claim: (found) => log.push(`claim ${[...found].map(({ address }) => address).join()}`),
    inputOf: () => undefined,
    refusals: () => [],
    inspect: () => undefined,
    refusalOf: () => undefined,
    [Symbol.dispose]: () => {},
  };
  const delivery = (values: readonly number[]): Delivery => ({
    readings: values.map((value) => ({
      tag: 0 as never,
      captures: {},
      address: "a",
      value,
      time: epochMicros(value),
      clock: "agent",
      quality: "good",
      historical: false,
    })),
    descriptions: [],
    gaps: typeof gaps === "function" ? gaps(values) : gaps,
    awaited: true,
    ack: () => log.push(`ack ${values.join()}`),
  });
  const source: Source = {
    addresses: ["a", "b"].map((address) => ({ tag: 0 as never, captures: {}, address })),
    async *deliveries(signal) {
      for (const values of deliveries) {
        log.push(`pull ${values.join()}`);
        yield delivery(values);
      }
      if (!signal.aborted && !ends) await once(signal, "abort");
    },
    async [Symbol.asyncDispose]() {
      log.push("dispose");
    },
  };
  const monitor = sourceMonitor({ name: "line", type: "test", tags: 1 }, runtime);
  const running = runPipeline(
    {
      async open() {
        log.push("open");
        const error = fail?.();
        if (error) throw error;
        return source;
      },
      mapping,
      // A pipeline uses only `append`.
      buffer: buffer as unknown as PointBuffer,
      monitor,
      unreachablePauseMs,
      isHeld: isHeld && (() => isHeld(log)),
      gaps: {
        online: () => log.push("online"),
        delivered: () => log.push("record"),
        written: async () => {
          await Promise.resolve();
          log.push("written");
          return written(log.filter((line) => line === "written").length);
        },
        lost: () => log.push("lost"),
        storing: () => disk.push("storing"),
        bufferFailed: (error) => disk.push(error?.message ?? "works"),
      },
      ...(hold && { hold: clockHold(hold, log) }),
    },
    runtime,
    stop.signal,
  );
  return {
    log,
    disk,
    stored,
    held,
    heldAtStop,
    buffer,
    clock,
    monitor,
    runtime,
    async stop() {
      stop.abort(new Error("the test stops"));
      await running;
    },
  };
}

/** Passes deliveries at once. */
function clockHold(change: (delivery: Delivery) => Delivery, log: string[]) {
  return {
    async *timed(deliveries: AsyncIterable<Delivery>) {
      for await (const delivery of deliveries) yield change(delivery);
    },
    close: () => log.push("hold closed"),
  };
}
