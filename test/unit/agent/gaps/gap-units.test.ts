// Units behind one connection answer, fail and stay away each on its own. The record is right for each of them.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Gap } from "../../../../src/agent/gaps/gap.ts";
import { readGapFolder } from "../../../../src/agent/gaps/gap-file.ts";
import { AgentError } from "../../../../src/core/errors.ts";
import { epochMicros } from "../../../../src/core/point.ts";
import type { Reading } from "../../../../src/core/source.ts";
import { badReading } from "../../../../src/lib/readings/reading-batch.ts";
import type { Mapping } from "../../../../src/mapping/mapping.ts";
import { eventually } from "../../../support/eventually.ts";
import { type GapStory, gapStory, withStory } from "../../../support/gap-story.ts";
import { reading, tagId, tryMapping } from "../../../support/mapping.ts";
import { runs } from "../../../support/property.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

const units = [0, 1, 2];
const gapStates: readonly Gap["state"][] = ["open", "filling", "filled", "partly", "lost"];
const polled = units.map((unit) => ({ tag: tagId(unit), captures: {}, address: `${unit}` }));
/** `slow`: the unit has not answered its first request yet, and the request has not failed either. */
const manners = ["good", "bad", "slow"] as const;
type Manner = (typeof manners)[number];
type Event =
  | { readonly kind: "poll"; readonly times: number; readonly afterMs: number }
  | { readonly kind: "unit"; readonly unit: number; readonly manner: Manner; readonly afterMs: number }
  | { readonly kind: "lost"; readonly afterMs: number }
  | { readonly kind: "online"; readonly afterMs: number }
  | { readonly kind: "disk"; readonly afterMs: number }
  | { readonly kind: "restart"; readonly killed: boolean; readonly afterMs: number }
  | { readonly kind: "suspend"; readonly forMs: number; readonly afterMs: number };
const afterMs = fc.integer({ min: 1, max: 20_000 });
const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("poll"), times: fc.integer({ min: 1, max: 90 }), afterMs }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("unit"),
      unit: fc.constantFrom(...units),
      manner: fc.constantFrom(...manners),
      afterMs,
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom("lost", "online", "disk"), afterMs }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("restart"), killed: fc.boolean(), afterMs }) },
  // A shorter suspension is not told from a busy machine.
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("suspend"), forMs: fc.integer({ min: 6_000, max: 100_000 }), afterMs }),
  },
);

/** A device with the agent that polls it, and what is known of each unit. */
class Plant {
  readonly story: GapStory;
  #mapping: Mapping;
  isOnline = false;
  readonly #manners: Manner[] = units.map(() => "good");
  /** Whether the unit has answered or failed since the connection. */
  readonly #isFirst = units.map(() => true);
  /** Since when values of the unit are missing. Undefined: they are read. */
  readonly #missingSince: (number | undefined)[] = units.map(() => undefined);
  readonly #lastGood = units.map(() => 0);
  isFull = false;
  #fullSince = 0;
  /** When the connection was lost with the disk full. The pipeline notices it once what was read is stored. */
  #goneAt: number | undefined;
  /** When the disk last took what had waited for it. */
  #storedAt = 0;
  /** Readings that wait for the disk. They are lost with the agent. */
  #queue: Reading[] = [];
  /** First and last time of good readings, each a second after the one before. */
  readonly #readSince: (number | undefined)[] = units.map(() => undefined);
  readonly missing: (readonly [unit: number, from: number, to: number])[] = [];
  readonly read: (readonly [unit: number, from: number, to: number])[] = [];

  constructor(story: GapStory) {
    this.story = story;
    this.#mapping = this.#open();
  }

  #open(): Mapping {
    const { source } = this.story;
    const { mapping } = tryMapping(
      units.map((unit) => ({ input: `tag${unit}` })),
      { watch: source },
    );
    source.names((tag, captures, address) => mapping.inputOf(tag, captures, address));
    return mapping;
  }

  get now(): number {
    return this.story.clock.now();
  }

  #endRead(unit: number): void {
    const since = this.#readSince[unit];
    if (since !== undefined) this.read.push([unit, since, this.#lastGood[unit]!]);
    this.#readSince[unit] = undefined;
  }

  #fails(unit: number, since: number): void {
    this.#missingSince[unit] ??= since;
    this.#endRead(unit);
  }

  online(): void {
    if (this.isOnline) return;
    this.isOnline = true;
    this.#isFirst.fill(true);
    this.story.source.online({ polled });
    this.#mapping.reconnected();
  }

  lost(at = this.now): void {
    if (!this.isOnline) return;
    if (this.isFull) {
      this.#goneAt ??= at;
      return;
    }
    this.#goneAt = undefined;
    this.isOnline = false;
    this.story.source.lost(new AgentError("SOURCE_UNREACHABLE", "gone"));
    for (const unit of units) this.#fails(unit, at);
  }

  become(unit: number, manner: Manner): void {
    this.#manners[unit] = manner;
  }

  /** The disk takes nothing until the next call. What is read meanwhile waits in memory. */
  turnDisk(): void {
    if (!this.isOnline) return;
    this.isFull = !this.isFull;
    this.#fullSince = this.now;
    this.story.source.bufferFailed(
      this.isFull ? new AgentError("BUFFER_UNAVAILABLE", "no space left on the disk") : undefined,
    );
    if (this.isFull) return;
    for (const given of this.#queue.splice(0)) this.#deliver(given);
    this.#storedAt = this.now;
    if (this.#goneAt !== undefined) this.lost(this.#goneAt);
  }

  #deliver(given: Reading): void {
    const { tag: unit, time, quality } = given;
    this.#mapping.map({ readings: [given], descriptions: [] });
    this.story.source.delivered({ readings: [given] });
    if (quality === "bad") return this.#fails(unit, time);
    const since = this.#missingSince[unit];
    if (since !== undefined) this.missing.push([unit, since, time]);
    this.#missingSince[unit] = undefined;
    this.#readSince[unit] ??= time;
    this.#lastGood[unit] = time;
  }

  /** Polls every second. A unit that has given a reading is not slow any more: its request fails. */
  async poll(times: number): Promise<void> {
    for (let i = 0; i < times; i++) {
      await this.story.later(1_000);
      if (!this.isOnline || this.#goneAt !== undefined) continue;
      for (const unit of units) {
        const place = { ...polled[unit]!, time: epochMicros(this.now) };
        const manner = this.#manners[unit];
        if (manner === "slow" && this.#isFirst[unit]) continue;
        this.#isFirst[unit] = false;
        const given = manner === "good" ? reading(i, place) : badReading(place, `unit ${unit} did not answer`);
        if (this.isFull) this.#queue.push(given);
        else this.#deliver(given);
      }
    }
  }

  async suspend(ms: number): Promise<void> {
    // Otherwise the first value after an outage may be read before the suspension and stored after it.
    if (this.isFull) this.turnDisk();
    const from = this.now;
    await this.story.clock.suspend(ms);
    for (const unit of units) {
      this.missing.push([unit, from, this.now]);
      this.#endRead(unit);
    }
  }

  async restart(options: { readonly killed: boolean; readonly afterMs: number }): Promise<void> {
    // The disk needs real time for the heartbeats.
    await eventually(async () => {
      await this.poll(1);
      const { life } = await readGapFolder(this.story.folder);
      return (life?.time ?? 0) > Math.max(this.now - 12e6, this.#storedAt);
    });
    this.isOnline = false;
    for (const unit of units) this.#fails(unit, this.isFull ? this.#fullSince : this.now);
    this.#queue = [];
    this.#goneAt = undefined;
    this.isFull = false;
    await this.story.restart(options);
    this.#mapping = this.#open();
  }

  end(): void {
    for (const unit of units) {
      this.#endRead(unit);
      const since = this.#missingSince[unit];
      if (since !== undefined) this.missing.push([unit, since, this.now]);
    }
  }

  /** Whether a row, or one with lost values, claims this time of the unit. */
  covers(unit: number, moment: number, states: readonly Gap["state"][] = gapStates): boolean {
    return this.story.record
      .list(0, 5_000)
      .gaps.filter(({ state }) => states.includes(state))
      .filter(({ inputs }) => inputs.length === 0 || inputs.includes(`tag${unit}`))
      .flatMap(({ intervals, from, to }) => intervals ?? [[from, to ?? Number.POSITIVE_INFINITY] as const])
      .some(([from, to]) => from <= moment && moment <= to);
  }
}

/** A row may begin up to a minute early if nothing was read for so long, and a kill loses 10 s; it may end 5 s late. */
const earlyUs = 14e6;
const lateUs = 6e6;

/** Three units that were read, and an outage of 10 s before. */
async function withPlant(act: (plant: Plant) => Promise<void>): Promise<void> {
  await withStory(async (story) => {
    const plant = new Plant(story);
    plant.online();
    await plant.poll(10);
    plant.lost();
    await story.later(10_000);
    plant.online();
    await act(plant);
  });
}

test("units that answer within 5 s of each other after an outage share its row, which ends with the last of them", () =>
  withPlant(async (plant) => {
    plant.become(2, "slow");
    await plant.poll(3);
    expect(plant.story.rows()).toEqual(["line disconnected 10- all 10000 open"]);
    plant.become(2, "good");
    await plant.poll(1);
    expect(plant.story.rows()).toEqual([
      "line disconnected 10-24 all 10000 lost what happened meanwhile is kept nowhere",
    ]);
  }));

test("a unit that answers long after the others has a row of its own, also if the connection was lost in between", () =>
  withPlant(async (plant) => {
    plant.become(1, "slow");
    await plant.poll(10);
    plant.lost();
    await plant.story.later(5_000);
    plant.online();
    await plant.poll(20);
    plant.become(1, "good");
    await plant.poll(2);
    expect(plant.story.rows()).toEqual([
      "line disconnected 10-21 all 10000 lost what happened meanwhile is kept nowhere",
      "line bad 21-56 tag1 lost",
      "line disconnected 30-36 all 10000 lost what happened meanwhile is kept nowhere",
    ]);
  }));

test("time in which one unit was read is in no row of it if the connection is lost before the other one answers", () =>
  withPlant(async (plant) => {
    plant.become(1, "slow");
    await plant.poll(4);
    plant.lost();
    await plant.story.later(20_000);
    plant.online();
    plant.become(1, "good");
    await plant.poll(1);
    expect(plant.story.rows()).toEqual([
      "line disconnected 10-21 all 10000 lost what happened meanwhile is kept nowhere",
      "line bad 21-45 tag1 lost",
      "line disconnected 24-45 all 10000 lost what happened meanwhile is kept nowhere",
    ]);
  }));

test("time in which one unit was read is in no row of it if the agent is suspended before the other one answers", () =>
  withPlant(async (plant) => {
    plant.become(1, "slow");
    await plant.poll(4);
    await plant.suspend(20_000);
    await plant.poll(1);
    expect(plant.story.rows()).toEqual([
      "line disconnected 10-21 all 10000 lost what happened meanwhile is kept nowhere",
      "line bad 21- tag1 open",
      "line agentDown 24-44 all 10000 lost",
    ]);
  }));

test("the row of a unit that was not read yet ends when its request fails, and the row of the failure follows", () =>
  withPlant(async (plant) => {
    plant.become(1, "slow");
    await plant.poll(10);
    plant.become(1, "bad");
    await plant.poll(3);
    expect(plant.story.rows().slice(1)).toEqual(["line bad 21-31 tag1 lost", "line bad 31- tag1 open"]);
    expect(
      plant.story.record
        .list(0, 9)
        .gaps.map(({ reason }) => reason)
        .slice(0, 2),
    ).toEqual(["unit 1 did not answer", "not read since the source was connected"]);
  }));

test("after the disk was full, the next sign of life covers what was stored, for a kill soon after", () =>
  withPlant(async (plant) => {
    const { life } = plant.story.record;
    await plant.poll(3);
    plant.turnDisk();
    await plant.poll(40);
    // The last sign with the disk full. Without another event, the next one is due in 10 s.
    life.next(false);
    plant.turnDisk();
    expect(life.next(false)?.sources.line).toBe(plant.now);
  }));

test("a connection that is lost while the disk is full has an outage from the last value that was read", () =>
  withPlant(async (plant) => {
    await plant.poll(3);
    plant.turnDisk();
    await plant.poll(20);
    plant.lost();
    await plant.story.later(200_000);
    plant.turnDisk();
    await plant.story.later(20_000);
    expect(plant.story.rows().slice(1)).toEqual([
      "line buffer 23-43 all 10000 filled the agent kept them in memory",
      "line disconnected 43- all 10000 open",
    ]);
  }));

test("a unit that has not answered when the source stops has a row until then", () =>
  withPlant(async (plant) => {
    plant.become(1, "slow");
    await plant.poll(2);
    await plant.story.restart({ killed: false, afterMs: 5_000 });
    expect(plant.story.rows()).toEqual([
      "line disconnected 10-21 all 10000 lost what happened meanwhile is kept nowhere",
      "line bad 21-22 tag1 lost",
      "line agentDown 22- all 10000 open",
    ]);
  }));

test("each unit of a polled source has a row for all time in which it was not read, and none for time in which it was", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(event, { minLength: 1, maxLength: 16 }), async (events) => {
      using folder = temporaryFolder();
      const story = await gapStory(folder.path);
      const plant = new Plant(story);
      try {
        // Written at least once, so that a start after a kill knows that the source has run.
        await eventually(async () => {
          await story.later(1_000);
          return (await readGapFolder(story.folder)).life?.sources.line !== undefined;
        });
        plant.online();
        await plant.poll(3);
        for (const step of events) {
          if (step.kind !== "restart") await story.later(step.afterMs % 900);
          if (step.kind === "poll") await plant.poll(step.times);
          else if (step.kind === "unit") plant.become(step.unit, step.manner);
          else if (step.kind === "lost") plant.lost();
          else if (step.kind === "online") plant.online();
          else if (step.kind === "disk") plant.turnDisk();
          else if (step.kind === "restart") await plant.restart(step);
          else await plant.suspend(step.forMs);
        }
        if (plant.isFull) plant.turnDisk();
        // An outage that ended a moment ago may have other tags to wait for.
        await story.later(6_000);
        plant.end();
        for (const [unit, from, to] of plant.missing)
          for (const moment of [from, (from + to) / 2, to])
            expect([unit, moment, plant.covers(unit, moment)], story.rows().join("\n")).toEqual([unit, moment, true]);
        for (const [unit, from, to] of plant.read)
          for (let moment = from + lateUs; moment < to - earlyUs; moment += 1e6)
            expect([unit, moment, plant.covers(unit, moment, ["open", "lost"])], story.rows().join("\n")).toEqual([
              unit,
              moment,
              false,
            ]);
      } finally {
        await story.end();
      }
    }),
    runs(25),
  );
});
