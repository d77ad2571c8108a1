import { expect, test } from "vitest";
import { type BufferInspector, bufferInspector, isBuffer } from "../../../../src/buffer/disk/inspector.ts";
import { append, folder, moment, openStore, settle, type Triple, take } from "../../../support/disk-store.ts";
import { MemoryDisk } from "../../../support/memory-disk.ts";

const t0 = 1_767_225_600_000_000;
const polls = (ticks: number, first = 0): Triple[] =>
  Array.from({ length: ticks }, (_, i) =>
    ["a", "b", "c"].map((input, k): Triple => [input, t0 + (first + i) * 1e6, (first + i) * 10 + k]),
  ).flat();

function exported(inspector: BufferInspector, all = false): Triple[] {
  return inspector
    .names()
    .flatMap((name) => [...inspector.points(name, all)].flat())
    .map(({ input, time, value }): Triple => [input, time, value])
    .toSorted((x, y) => x[1] - y[1] || (x[0] < y[0] ? -1 : 1));
}

test("a buffer in use is inspected without a lock and without writing a byte", () => {
  const disk = new MemoryDisk();
  const { store } = openStore(disk, { segmentBytes: 5_000 });
  for (let i = 0; i < 20; i++) append(store, polls(1, i));
  settle(store, take(store, "backlog", 6)!);
  settle(store, take(store, "backlog", 100, ["b"])!);
  store.tick(moment(10));
  const unsettled = store.stats().unsettledPoints;
  const before = disk.list(folder).map((name) => [name, disk.content(`${folder}/${name}`)]);

  const inspector = bufferInspector(folder, disk);
  const segments = inspector.names().flatMap((name) => inspector.segment(name) ?? []);

  expect(segments.reduce((sum, segment) => sum + segment.points, 0)).toBe(60);
  expect(segments.reduce((sum, segment) => sum + segment.unsettledPoints, 0)).toBe(unsettled);
  expect(segments.map(({ kind, damage, inputs }) => ({ kind, damage, inputs }))).toEqual(
    segments.map(() => ({ kind: "hot", damage: [], inputs: 3 })),
  );
  expect(segments.map(({ sealed }) => sealed)).toEqual([...segments.slice(1).map(() => true), false]);
  expect(inspector.accounts).toMatchObject({ integration: "plant", settledPoints: 60 - unsettled, losses: [] });
  expect(exported(inspector)).toHaveLength(unsettled);
  expect(exported(inspector, true)).toEqual(polls(20));
  expect(disk.list(folder).map((name) => [name, disk.content(`${folder}/${name}`)])).toEqual(before);
});

test("the inspector reports the damage of a folder and returns its readable points", () => {
  const disk = new MemoryDisk();
  const { store } = openStore(disk, { segmentBytes: 32_768 });
  for (let i = 0; i < 10; i++) append(store, polls(1, i));
  store.close(moment(1));
  const name = disk.list(folder).find((entry) => entry.startsWith("seg-")) ?? "";
  disk.change(`${folder}/${name}`, (bytes) => {
    bytes.fill(0, 0, 4_096);
    const at = Buffer.from(bytes).indexOf(Buffer.from(Float64Array.of(t0 + 4e6).buffer));
    bytes[at + 32]! ^= 1;
    return bytes;
  });
  for (const state of disk.list(folder).filter((entry) => !entry.startsWith("seg-"))) disk.remove(`${folder}/${state}`);

  const inspector = bufferInspector(folder, disk);

  expect(inspector.accounts).toBeUndefined();
  expect(inspector.segment(name)).toMatchObject({ kind: "damaged header", points: 27, damage: [{ from: 12, to: 15 }] });
  expect(exported(inspector)).toEqual(polls(10).filter(([, time]) => time !== t0 + 4e6));
});

test("a folder without a buffer is not mistaken for one", () => {
  const disk = new MemoryDisk();
  disk.makeFolder("/data");
  expect(isBuffer("/data", disk)).toBe(false);
  openStore(disk);
  expect(isBuffer(folder, disk)).toBe(true);
});
