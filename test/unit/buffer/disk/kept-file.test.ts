// Values with equal, coarse times and `sameTime: keep`: none replaces another, however the process ends in between.

import fc from "fast-check";
import { expect, test } from "vitest";
import { keepSameTime } from "../../../../src/buffer/disk/format/input-table.ts";
import { keptFileName } from "../../../../src/buffer/disk/segments/kept-times.ts";
import {
  folder,
  group,
  moment,
  type OpenedStore,
  openStore,
  settle,
  type Triple,
  take,
} from "../../../support/disk-store.ts";
import { failure, MemoryDisk } from "../../../support/memory-disk.ts";
import { runs } from "../../../support/property.ts";
import { seeded } from "../../../support/runtime.ts";

const t0 = 1_767_225_600_000_000;
const setup = { segmentBytes: 12_000 };

function appendKept({ store }: OpenedStore, points: readonly Triple[], seconds = 0): void {
  const columns = group(store, points);
  for (let i = 0; i < columns.count; i++) columns.inputs[i]! += keepSameTime;
  store.append(columns, moment(seconds));
}

/** Delivers everything to a service that keeps the last write per time. */
function deliver({ store }: OpenedStore, service: Map<string, number>): void {
  for (let block = take(store); block; block = take(store)) {
    for (const [input, time, value] of block.points) service.set(`${input} ${time}`, value);
    settle(store, block);
  }
}

type Step = { readonly kind: "append" | "deliver" | "kill" | "cut" | "close" | "tick"; readonly size: number };

const steps = fc.array(
  fc.record({
    kind: fc.constantFrom<Step["kind"]>("append", "append", "append", "deliver", "kill", "cut", "close", "tick"),
    size: fc.integer({ min: 1, max: 120 }),
  }),
  { minLength: 1, maxLength: 40 },
);

test("every kept value is delivered under a time of its own, over kills, power cuts and redelivery", () => {
  fc.assert(
    fc.property(steps, fc.nat(), (all, seed) => {
      const random = seeded(seed);
      let disk = new MemoryDisk();
      let opened = openStore(disk, setup);
      const service = new Map<string, number>();
      const appended: Triple[] = [];
      let value = 0;
      for (const [at, { kind, size }] of all.entries()) {
        if (kind === "append") {
          // A coarse clock: five appends share a time.
          const points = Array.from(
            { length: size },
            (_, i): Triple => [`i${i % 3}`, t0 + Math.floor(at / 5) * 1e6, ++value],
          );
          appendKept(opened, points, at);
          appended.push(...points);
        } else if (kind === "deliver") deliver(opened, service);
        else if (kind === "tick") opened.store.tick(moment(at * 10));
        else {
          if (kind === "close") opened.store.close(moment(at));
          disk = kind === "cut" ? disk.afterPowerCut(() => random() < 0.5) : disk.afterKill();
          opened = openStore(disk, { ...setup, seed: at + 1, at });
          // The broker redelivers messages whose acknowledgements it has not received.
          const again = appended.slice(-Math.floor(random() * size));
          if (again.length > 0) appendKept(opened, again, at);
        }
      }
      deliver(opened, service);
      const held = new Set(Array.from(service, ([key, held]) => `${key.split(" ")[0]} ${held}`));
      expect(appended.filter(([input, , each]) => !held.has(`${input} ${each}`))).toEqual([]);
    }),
    runs(60),
  );
});

test("a value that could not be stored leaves no gap in the times of those that follow", () => {
  const disk = new MemoryDisk();
  const opened = openStore(disk, setup);
  appendKept(opened, [["a", t0, 1]]);
  disk.fault = (call) => {
    if (call === "sync") throw failure("EIO", "sync");
    return undefined;
  };
  for (let i = 0; i < 3; i++) expect(() => appendKept(opened, [["a", t0, 2]])).toThrow("EIO");
  disk.fault = () => undefined;
  appendKept(opened, [["a", t0, 2]]);

  const service = new Map<string, number>();
  deliver(opened, service);
  expect([...service]).toEqual([
    [`a ${t0}`, 1],
    [`a ${t0 + 1}`, 2],
  ]);
});

test("points are stored and keep their times when the file is deleted", () => {
  const disk = new MemoryDisk();
  const opened = openStore(disk, setup);
  appendKept(opened, [["a", t0, 1]]);
  disk.remove(`${folder}/${keptFileName}`);

  appendKept(opened, [["b", t0, 2]]);
  const again = openStore(disk.afterKill(), { ...setup, seed: 2 });
  appendKept(again, [
    ["a", t0, 3],
    ["b", t0, 4],
  ]);

  const service = new Map<string, number>();
  deliver(again, service);
  expect([...service].toSorted(([a], [b]) => (a < b ? -1 : 1))).toEqual([
    [`a ${t0}`, 1],
    [`a ${t0 + 1}`, 3],
    [`b ${t0}`, 2],
    [`b ${t0 + 1}`, 4],
  ]);
});

test("the file of another buffer and a damaged file are not applied", () => {
  const first = new MemoryDisk();
  appendKept(openStore(first, { ...setup, seed: 7 }), [["a", t0, 1]]);
  const bytes = first.open(`${folder}/${keptFileName}`, "read");
  const text = new Uint8Array(bytes.size());
  bytes.read(text, 0);
  bytes.close();
  for (const content of [text, Uint8Array.from(text, (byte, i) => (i === 20 ? byte ^ 1 : byte))]) {
    const disk = new MemoryDisk();
    openStore(disk, { ...setup, seed: 8 }).store.close(moment(0));
    const file = disk.open(`${folder}/${keptFileName}`, "create");
    file.write(content, 0);
    file.close();
    const opened = openStore(disk, { ...setup, seed: 9 });
    appendKept(opened, [["a", t0, 2]]);
    expect(take(opened.store)?.points).toEqual([["a", t0, 2]]);
  }
});
