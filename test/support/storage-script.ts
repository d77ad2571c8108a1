// A short sequence that makes a log perform every kind of disk operation, for tests that interrupt it anywhere.
import type { Disk } from "../../src/buffer/disk/files/disk.ts";
import type { Store } from "../../src/buffer/disk/log/store.ts";
import { AgentError } from "../../src/core/errors.ts";
import {
  append,
  moment,
  type OpenedStore,
  openStore,
  type StoreSetup,
  settle,
  type TakenBlock,
  type Triple,
  take,
} from "./disk-store.ts";
import { seeded } from "./runtime.ts";
import { watched } from "./watched-disk.ts";

export interface ScriptRun {
  /** Points whose append returned. */
  readonly acknowledged: Set<number>;
  /** Points whose append failed or did not end: they may be stored. */
  readonly unsure: Set<number>;
  /** Points that were settled: they may be gone. */
  readonly settled: Set<number>;
  /** Points that are settled in the state on disk: they must not be delivered again. Valid only while no call fails. */
  readonly done: Set<number>;
  /**
   * Points whose settlement returned: they must not be delivered again after a kill. Valid only while no call fails.
   */
  readonly returned: Set<number>;
  /** Points that were appended more than once: they may be stored as often. */
  readonly repeated: Set<number>;
  /** Errors of appends and of opening. */
  readonly errors: unknown[];
}

const t0 = 1_767_225_600_000_000;

const pointOf = (number: number, variant: number): Triple => [
  `tag${number % 3}`,
  t0 + number * 1_000,
  variant === 0 ? number / 4 : Math.sqrt(number),
];

/** The number of a point of the script; −1 for any other point. */
export function keyOf([input, time, value]: Triple): number {
  const number = (time - t0) / 1_000;
  const isValue = value === number / 4 || value === Math.sqrt(number);
  return isValue && input === `tag${number % 3}` ? number : -1;
}

export function emptyRun(): ScriptRun {
  return {
    acknowledged: new Set(),
    unsure: new Set(),
    settled: new Set(),
    done: new Set(),
    returned: new Set(),
    repeated: new Set(),
    errors: [],
  };
}

/** The first broken promise after the script was stopped or killed anywhere. Undefined if all were kept. */
export function problemAfterRestart(
  open: () => OpenedStore,
  run: ScriptRun,
  end: "killed" | "powerCut",
): string | undefined {
  const { acknowledged, unsure, settled, repeated } = run;
  const done = end === "killed" ? run.returned : run.done;
  try {
    const { store, notes } = open();
    const alarm = notes.find(({ level, message }) => level === "error" || message.includes("rebuilt"));
    if (alarm) return `says ${alarm.message}`;
    const there = new Set<number>();
    for (let block = take(store); block; block = take(store))
      for (const point of block.points) {
        const key = keyOf(point);
        if (!acknowledged.has(key) && !unsure.has(key)) return `never appended: ${point.join(" ")}`;
        if (there.has(key) && !repeated.has(key)) return `came twice: ${point.join(" ")}`;
        if (done.has(key) && !repeated.has(key)) return `settled, and there again: ${point.join(" ")}`;
        there.add(key);
      }
    for (const key of acknowledged) if (!there.has(key) && !settled.has(key)) return `lost: point ${key}`;
    const { appendedPoints, settledPoints, unsettledPoints, losses } = store.stats();
    if (losses.length > 0) return `says it lost ${JSON.stringify(losses)}`;
    if (settledPoints + unsettledPoints !== appendedPoints) return "the counters do not add up";
    return undefined;
  } catch (error) {
    return `does not open: ${String(error)}`;
  }
}

/**
 * Variants other than 0 append more points in other sizes, with several sectors per write. Runs the script and keeps
 * `run` up to date, so that it is correct whenever the script is interrupted. A failed append is tried once more.
 *
 * Three processes: the first ends in order. The second is killed between the write and the sync of an append, which the
 * third repeats. `closed` is called when the first has closed its store.
 */
export function runScript(
  disk: Disk,
  run: ScriptRun,
  variant = 0,
  setup: StoreSetup = {},
  closed: () => void = () => {},
): void {
  const script = new Script(run, variant);
  const segmentBytes = variant === 0 ? 4_700 : 14_000;
  for (let life = 0; life < 3; life++) {
    const mortal = new MortalDisk(disk);
    script.forget();
    const options = { segmentBytes, whenFull: "block", ...setup } as const;
    let store: Store;
    try {
      ({ store } = openStore(mortal.disk, { ...options, seed: life + 3, at: script.later(1) }));
    } catch (error) {
      run.errors.push(error);
      continue;
    }
    if (life === 2) script.append(store, script.last);
    for (let i = 0; i < 3; i++) script.append(store, script.newPoints(8));
    if (life === 1) script.settleAll(store);
    else for (const lane of ["live", "backlog"] as const) script.settle(store, take(store, lane, 10));
    script.tick(store);
    for (let i = 0; i < 3; i++) script.append(store, script.newPoints(12));
    script.settle(store, take(store, "backlog", 40, ["tag1"]));
    script.tick(store);
    // These points are settled, but the state does not contain that yet when their segment is rewritten without them.
    script.settle(store, take(store, "backlog", 40, ["tag2"]));
    const cold = moment(script.later(100));
    for (let i = 0; i < 20 && store.work(cold); i++);
    script.append(store, script.newPoints(6));
    if (life === 0) {
      store.close(moment(script.later(1)));
      closed();
    }
    if (life === 1) {
      mortal.dieAtSync = true;
      script.append(store, script.newPoints(9));
    }
  }
}

/** The caller of the buffer, and the promises that it received. */
class Script {
  readonly #run: ScriptRun;
  readonly #variant: number;
  readonly #random: () => number;
  #at = 0;
  #next = 0;
  /** Points settled by this process that may not be in the state on disk yet. */
  #settled: number[] = [];
  /** The points of the last append. */
  last: readonly Triple[] = [];

  constructor(run: ScriptRun, variant: number) {
    this.#run = run;
    this.#variant = variant;
    this.#random = seeded(variant);
  }

  /** After a kill, settlements that were not written are unknown. */
  forget(): void {
    this.#settled = [];
  }

  /** Advances time. Returns the total number of seconds. */
  later(seconds: number): number {
    this.#at += seconds;
    return this.#at;
  }

  newPoints(usual: number): Triple[] {
    const random = this.#random;
    const count = this.#variant === 0 ? usual : 1 + Math.floor(random() * (random() < 0.4 ? 350 : 20));
    return Array.from({ length: count }, () => pointOf(++this.#next, this.#variant));
  }

  append(store: Store, points: readonly Triple[]): void {
    const { acknowledged, unsure, repeated, errors } = this.#run;
    if (points === this.last) for (const point of points) repeated.add(keyOf(point));
    this.last = points;
    for (const point of points) unsure.add(keyOf(point));
    for (let attempt = 0; attempt < 2; attempt++)
      try {
        if (attempt > 0) for (const point of points) repeated.add(keyOf(point));
        append(store, points, this.later(1));
        for (const point of points) {
          unsure.delete(keyOf(point));
          acknowledged.add(keyOf(point));
        }
        return;
      } catch (error) {
        if (error instanceof AgentError && error.cause instanceof Killed) return;
        errors.push(error);
      }
  }

  settle(store: Store, block: TakenBlock | undefined): void {
    if (!block) return;
    for (const point of block.points) {
      this.#run.settled.add(keyOf(point));
      this.#settled.push(keyOf(point));
    }
    settle(store, block);
    for (const point of block.points) this.#run.returned.add(keyOf(point));
  }

  settleAll(store: Store): void {
    for (let block = take(store); block; block = take(store)) this.settle(store, block);
  }

  tick(store: Store): void {
    store.tick(moment(this.later(10)));
    for (const key of this.#settled.splice(0)) this.#run.done.add(key);
  }
}

class Killed extends Error {}

/** Passes calls on until the process is killed. */
class MortalDisk {
  readonly disk: Disk;
  dieAtSync = false;
  #isDead = false;

  constructor(disk: Disk) {
    this.disk = watched(disk, (call) => {
      this.#isDead ||= this.dieAtSync && call === "sync";
      if (this.#isDead) throw new Killed();
    });
  }
}
