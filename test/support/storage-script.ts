// A short life of a log that goes through everything it does to a disk, for tests that stop it or make it fail anywhere.
import type { Disk } from "../../src/buffer/disk/disk.ts";
import { append, moment, openStore, type StoreSetup, settle, type Triple, take } from "./disk-store.ts";
import { seeded } from "./runtime.ts";

export interface ScriptRun {
  /** Points whose append returned. */
  readonly acknowledged: Set<string>;
  /** Points whose append failed or did not end: they may be stored. */
  readonly unsure: Set<string>;
  /** Points that were settled: they may be gone. */
  readonly settled: Set<string>;
  /** Errors of appends and of opening. */
  readonly errors: unknown[];
}

export const keyOf = ([input, time, value]: Triple) => `${input} ${time} ${value}`;
const t0 = 1_767_225_600_000_000;

export function emptyRun(): ScriptRun {
  return { acknowledged: new Set(), unsure: new Set(), settled: new Set(), errors: [] };
}

/** `variant` changes how many points are appended at a time. Runs the script and keeps `run` up to date, so that it is right whenever the script is stopped. An append that fails is tried once more. */
export function runScript(disk: Disk, run: ScriptRun, variant = 0, setup: StoreSetup = {}): void {
  const random = seeded(variant);
  const options = { segmentBytes: 4_700, whenFull: "block", ...setup } as const;
  let at = 0;
  let next = 0;
  const appendTo = (store: ReturnType<typeof openStore>["store"], usual: number) => {
    const count = variant === 0 ? usual : 1 + Math.floor(random() * 30);
    const points = Array.from({ length: count }, (): Triple => {
      next++;
      return [`tag${next % 3}`, t0 + next * 1_000, next / 4];
    });
    for (const point of points) run.unsure.add(keyOf(point));
    for (let attempt = 0; attempt < 2; attempt++)
      try {
        append(store, points, (at += 1));
        for (const point of points) {
          run.unsure.delete(keyOf(point));
          run.acknowledged.add(keyOf(point));
        }
        return;
      } catch (error) {
        run.errors.push(error);
      }
  };
  for (let life = 0; life < 2; life++) {
    let opened: ReturnType<typeof openStore>;
    try {
      opened = openStore(disk, { ...options, seed: life + 3, at: (at += 1) });
    } catch (error) {
      run.errors.push(error);
      continue;
    }
    const { store } = opened;
    for (let i = 0; i < 3; i++) appendTo(store, 8);
    for (const lane of ["live", "backlog"] as const) {
      const block = take(store, lane, 10);
      if (!block) continue;
      for (const point of block.points) run.settled.add(keyOf(point));
      settle(store, block);
    }
    store.tick(moment((at += 10)));
    for (let i = 0; i < 3; i++) appendTo(store, 12);
    const block = take(store, "backlog", 40, ["tag1"]);
    if (block) {
      for (const point of block.points) run.settled.add(keyOf(point));
      settle(store, block);
    }
    store.tick(moment((at += 10)));
    at += 100;
    for (let i = 0; i < 20 && store.work(moment(at)); i++);
    appendTo(store, 6);
    if (life === 0) store.close(moment((at += 1)));
  }
}
