// The counters after any history: segments are deleted, restored or damaged, or the disk cannot read some.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Store } from "../../../../src/buffer/disk/log/store.ts";
import { append, folder, moment, openStore, settle, type Triple, take, takeAll } from "../../../support/disk-store.ts";
import { failure, MemoryDisk } from "../../../support/memory-disk.ts";
import { runs } from "../../../support/property.ts";

const t0 = 1_767_225_600_000_000;
const pointOf = (number: number): Triple => [`i${number % 3}`, t0 + number * 1_000, number / 8];
const numberOf = ([, time]: Triple) => (time - t0) / 1_000;

/** A buffer, and the expected state of each of its points: stored, settled or lost. */
class History {
  readonly #disk = new MemoryDisk();
  readonly #points: ("stored" | "settled" | "lost")[] = [];
  /** Segments that were removed from the folder. */
  readonly #away = new Map<string, Uint8Array>();
  #leased: NonNullable<ReturnType<typeof take>>[] = [];
  #seconds = 0;
  #opens = 0;
  #store = this.#open();

  /** According to the counters. */
  get counts() {
    const { settledPoints, refusedPoints, unsettledPoints, losses } = this.#store.stats();
    const lost = losses.reduce((sum, { points }) => sum + points, 0);
    return { stored: unsettledPoints, settled: settledPoints + refusedPoints, lost };
  }

  append(count: number): void {
    const first = this.#points.length;
    append(
      this.#store,
      Array.from({ length: count }, (_, i) => pointOf(first + i)),
      this.#seconds,
    );
    for (let i = 0; i < count; i++) this.#points.push("stored");
  }

  settle(most: number, inputs: readonly string[] | undefined, refused: number): void {
    const block = take(this.#store, "backlog", most);
    if (!block) return;
    settle(this.#store, block, inputs, refused);
    for (const point of block.points) if (inputs?.includes(point[0]) ?? true) this.#points[numberOf(point)] = "settled";
    this.#store.release([block.id]);
  }

  /** Leased points count as stored until they are settled. */
  lease(most: number): void {
    const block = take(this.#store, "backlog", most);
    if (block) this.#leased.push(block);
  }

  settleLeased(): void {
    for (const block of this.#leased.splice(0)) {
      settle(this.#store, block, undefined, 0);
      for (const point of block.points) this.#points[numberOf(point)] = "settled";
    }
  }

  /** As during an outage. */
  compact(): void {
    this.#seconds += 70;
    this.#store.tick(moment(this.#seconds));
    while (this.#store.work(moment(this.#seconds)));
  }

  /** Closes the buffer, or kills it some time after the last append, when the state includes every point. */
  stop(closes: boolean): void {
    this.#seconds += 10;
    if (closes) this.#store.close(moment(this.#seconds));
    else this.#store.tick(moment(this.#seconds));
  }

  remove(which: number): void {
    const names = this.#segments();
    const name = names[which % Math.max(1, names.length)];
    if (name === undefined) return;
    this.#away.set(name, this.#disk.content(`${folder}/${name}`));
    this.#disk.remove(`${folder}/${name}`);
  }

  putBack(which: number): void {
    const name = [...this.#away.keys()][which % Math.max(1, this.#away.size)];
    if (name === undefined || this.#segments().includes(name)) return;
    const file = this.#disk.open(`${folder}/${name}`, "create");
    file.write(this.#away.get(name)!, 0);
    this.#away.delete(name);
  }

  damage(which: number, part: number): void {
    const names = this.#segments();
    const name = names[which % Math.max(1, names.length)];
    if (name === undefined) return;
    this.#disk.change(`${folder}/${name}`, (bytes) => {
      const at = 4_096 + Math.floor((bytes.length - 4_097) * part);
      if (at < bytes.length) bytes[at]! ^= 0x10;
      return bytes;
    });
  }

  start(unreadable?: number): void {
    this.#leased = [];
    const names = this.#segments();
    // Never the newest segment, because no later one records how many points it holds.
    const name = unreadable === undefined ? undefined : names.slice(0, -1)[unreadable % names.length];
    const intact = this.#disk.afterKill();
    this.#disk.fault = (call, path) => {
      if (call === "read" && name !== undefined && path.endsWith(name)) throw failure("EIO", path);
      return undefined;
    };
    this.#store = this.#open();
    this.#judge(name === undefined ? this.#store : openStore(intact, { segmentBytes: 5_000, seed: 99 }).store);
  }

  /** Compares the counters with the expected states. `store` can read all segments that exist. */
  #judge(store: Store): void {
    // Damage is detected by reading.
    takeAll(this.#store);
    this.#store.releaseAll();
    const there = new Set(takeAll(store).map(numberOf));
    store.releaseAll();
    for (const [number, state] of this.#points.entries()) {
      if (there.has(number)) this.#points[number] = "stored";
      else if (state === "stored") this.#points[number] = "lost";
    }
    expect(this.counts).toEqual({
      stored: this.#count("stored"),
      settled: this.#count("settled"),
      lost: this.#count("lost"),
    });
  }

  #count(state: "stored" | "settled" | "lost"): number {
    return this.#points.filter((each) => each === state).length;
  }

  #open() {
    this.#seconds += 10;
    return openStore(this.#disk, { segmentBytes: 5_000, seed: ++this.#opens, at: this.#seconds }).store;
  }

  #segments(): string[] {
    return this.#disk
      .list(folder)
      .filter((name) => name.startsWith("seg-"))
      .toSorted();
  }
}

test("a lost segment that is put back no longer counts as lost", () => {
  const history = new History();
  history.append(100);
  history.stop(true);
  history.remove(0);
  history.start();
  expect(history.counts).toMatchObject({ stored: 0, settled: 0, lost: 100 });

  history.stop(true);
  history.putBack(0);
  history.start();

  expect(history.counts).toMatchObject({ stored: 100, settled: 0, lost: 0 });
});

test("putting a lost segment back does not reduce the count of delivered points", () => {
  const history = new History();
  history.append(60);
  history.settle(1_000, undefined, 0);
  history.stop(true);
  history.start();
  history.append(100);
  history.stop(true);
  history.start();
  history.append(10);
  history.stop(true);
  history.remove(0);
  history.start();
  expect(history.counts).toMatchObject({ settled: 60, lost: 100 });

  history.stop(true);
  history.putBack(0);
  history.start();

  expect(history.counts).toMatchObject({ stored: 110, settled: 60, lost: 0 });
});

test("a segment that is put back is delivered, also when the state file still lists it as settled", () => {
  const history = new History();
  history.append(100);
  history.stop(true);
  history.start();
  history.append(10);
  history.remove(0);
  history.compact();
  expect(history.counts).toMatchObject({ stored: 10, lost: 100 });

  // The process is killed before it writes the next state.
  history.putBack(0);
  history.start();

  expect(history.counts).toMatchObject({ stored: 110, lost: 0 });
});

test("a compacted segment that cannot be read at startup counts the points that were left in it", () => {
  const history = new History();
  history.append(90);
  history.settle(1_000, ["i1"], 0);
  history.append(90);
  history.stop(true);
  history.start();
  history.append(30);
  history.compact();

  history.stop(true);
  history.start(0);
  expect(history.counts).toMatchObject({ stored: 180, settled: 30, lost: 0 });
  history.stop(true);
  history.start();

  expect(history.counts).toMatchObject({ stored: 180, settled: 30, lost: 0 });
});

test("a segment that is deleted while blocks of it are leased counts once when it is put back after a kill", () => {
  const history = new History();
  history.append(100);
  history.stop(true);
  history.start();
  history.append(10);
  history.lease(40);
  history.remove(0);
  history.compact();
  history.settle(1_000, undefined, 0);
  history.stop(false);
  history.putBack(0);
  history.start();

  expect(history.counts).toMatchObject({ stored: 100, settled: 10, lost: 0 });
});

type Deed =
  | { readonly kind: "append"; readonly points: number }
  | { readonly kind: "settle"; readonly most: number; readonly inputs: number; readonly refused: number }
  | { readonly kind: "compact" }
  | { readonly kind: "lease"; readonly most: number }
  | { readonly kind: "settleLeased" }
  | { readonly kind: "remove"; readonly which: number }
  | {
      readonly kind: "restart";
      readonly closes: boolean;
      readonly remove: readonly number[];
      readonly putBack: readonly number[];
      readonly damage: readonly (readonly [which: number, part: number])[];
    }
  /**
   * A restart with an unreadable segment. Nothing is removed just before: a removed segment behind the unreadable one
   * could not be told apart from a part of it.
   */
  | { readonly kind: "restartUnreadable"; readonly closes: boolean; readonly which: number };

const which = fc.nat(6);
const deed: fc.Arbitrary<Deed> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant("append" as const), points: fc.integer({ min: 1, max: 60 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("settle" as const),
      most: fc.integer({ min: 1, max: 80 }),
      inputs: fc.nat(3),
      refused: fc.nat(5),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: "compact" as const }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("lease" as const), most: fc.integer({ min: 1, max: 80 }) }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: "settleLeased" as const }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("remove" as const), which }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("restart" as const),
      closes: fc.boolean(),
      remove: fc.array(which, { maxLength: 2 }),
      putBack: fc.array(which, { maxLength: 2 }),
      damage: fc.array(fc.tuple(which, fc.double({ min: 0, max: 1, noNaN: true })), { maxLength: 1 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("restartUnreadable" as const), closes: fc.boolean(), which }),
  },
);

test("after any history every point is settled, lost or stored, and is counted accordingly", () => {
  fc.assert(
    fc.property(fc.array(deed, { minLength: 1, maxLength: 25 }), (deeds) => {
      const history = new History();
      for (const each of deeds)
        switch (each.kind) {
          case "append":
            history.append(each.points);
            break;
          case "settle":
            history.settle(each.most, each.inputs === 3 ? undefined : [`i${each.inputs}`], each.refused);
            break;
          case "compact":
            history.compact();
            break;
          case "lease":
            history.lease(each.most);
            break;
          case "settleLeased":
            history.settleLeased();
            break;
          case "remove":
            history.remove(each.which);
            history.compact();
            break;
          case "restart":
            history.stop(each.closes);
            for (const segment of each.remove) history.remove(segment);
            for (const segment of each.putBack) history.putBack(segment);
            for (const [segment, part] of each.damage) history.damage(segment, part);
            history.start();
            break;
          case "restartUnreadable":
            history.stop(each.closes);
            history.start(each.which);
        }
      history.stop(true);
      history.start();
    }),
    runs(60),
  );
});
