// Foreign files in the folder, and segments that were copied, renamed or truncated. The log continues where it was, and
// the counters equal those of an oracle that knows what was appended and settled.
import { copyFileSync, mkdirSync, readdirSync, renameSync, truncateSync, writeFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { nodeDisk } from "../../../../src/buffer/disk/files/disk.ts";
import { bufferInspector } from "../../../../src/buffer/disk/inspector.ts";
import { append, folder, moment, openStore, settle, type Triple, take, takeAll } from "../../../support/disk-store.ts";
import { MemoryDisk } from "../../../support/memory-disk.ts";
import { runs } from "../../../support/property.ts";
import { seeded } from "../../../support/runtime.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

const t0 = 1_767_225_600_000_000;
const pointOf = (number: number): Triple => [`i${number % 3}`, t0 + number * 1_000, number / 8];
const numberOf = ([, time]: Triple) => (time - t0) / 1_000;
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);
const segmentsOf = (disk: MemoryDisk) =>
  disk
    .list(folder)
    .filter((name) => name.startsWith("seg-"))
    .toSorted();
const setup = { segmentBytes: 5_000 };

interface Filled {
  readonly disk: MemoryDisk;
  readonly count: number;
  readonly settled: ReadonlySet<number>;
}

/** A buffer of several segments. The oldest one is partly settled. */
function filled(seed: number, closed: boolean): Filled {
  const disk = new MemoryDisk();
  const { store } = openStore(disk, { ...setup, seed });
  const count = 500;
  for (let i = 0; i < count; i += 20) append(store, range(i, i + 20).map(pointOf), i / 20);
  const settled = new Set<number>();
  for (const inputs of [undefined, ["i1"]]) {
    const block = take(store, "backlog", 60)!;
    settle(store, block, inputs);
    for (const point of block.points) if (!inputs || inputs.includes(point[0])) settled.add(numberOf(point));
  }
  store.tick(moment(100));
  if (closed) store.close(moment(101));
  return { disk: disk.afterKill(), count, settled };
}

function put(disk: MemoryDisk, name: string, bytes: Uint8Array): void {
  if (disk.list(folder).includes(name)) return;
  const file = disk.open(`${folder}/${name}`, "create");
  if (bytes.length > 0) file.write(bytes, 0);
}

/** `cut`: numbers of the points that a truncated segment may have lost. */
function judge({ disk: found, count, settled }: Filled, cut: ReadonlySet<number> = new Set()): MemoryDisk {
  const disk = found.afterKill();
  const { store } = openStore(disk, { ...setup, seed: 50, at: 200 });
  const lost = () => store.stats().losses.reduce((sum, { points }) => sum + points, 0);
  const there = takeAll(store).map(numberOf);
  const drained = new Set(there);
  const missing = range(0, count).filter((number) => !drained.has(number) && !settled.has(number));
  expect(there).toHaveLength(drained.size);
  expect(there.filter((number) => settled.has(number))).toEqual([]);
  expect(missing.filter((number) => !cut.has(number))).toEqual([]);
  expect(lost()).toBe(missing.length);
  expect(store.stats()).toMatchObject({
    appendedPoints: count,
    settledPoints: settled.size,
    unsettledPoints: there.length,
  });
  // The next start continues from there.
  store.releaseAll();
  append(store, [pointOf(count)], 201);
  store.close(moment(202));
  const again = openStore(
    disk.afterPowerCut(() => false),
    { ...setup, seed: 51, at: 300 },
  ).store;
  expect(new Set(takeAll(again).map(numberOf))).toEqual(drained.add(count));
  expect(again.stats()).toMatchObject({ appendedPoints: count + 1, losses: store.stats().losses });
  return disk;
}

test.each([
  ["an empty file far ahead", "seg-0000000000050000.log", 0],
  ["a file beyond all sequence numbers", "seg-9999999999999999.log", 0],
  ["zeros far ahead", "seg-0000000000050000.log", 9_000],
  ["an empty file within a segment", "seg-0000000000000030.log", 0],
  ["an empty file next to a segment", "seg-0000000000000000-1.log", 0],
])("%s changes nothing", (_what, name, bytes) => {
  for (const closed of [true, false]) {
    const from = filled(1, closed);
    put(from.disk, name, new Uint8Array(bytes));
    expect(judge(from).list(folder)).not.toContain(name);
  }
});

test("a folder named like a segment changes nothing", () => {
  using home = temporaryFolder();
  const own = home.file("buffer");
  const disk = nodeDisk();
  const first = openStore(disk, { ...setup, folder: own }).store;
  append(first, range(0, 100).map(pointOf));
  first.close(moment(1));
  mkdirSync(`${own}/seg-0000000000000040.log`);
  mkdirSync(`${own}/seg-0000000000009000.log`);

  const { store } = openStore(disk, { ...setup, folder: own, at: 2 });
  append(store, [pointOf(100)], 3);

  expect(takeAll(store)).toHaveLength(101);
  expect(store.stats()).toMatchObject({ appendedPoints: 101, losses: [] });
  expect(readdirSync(`${own}/quarantine`)).toHaveLength(2);
});

test.each([
  ["replaced by an older copy", (path: string, old: string) => renameSync(old, path)],
  [
    "replaced by another file",
    (path: string, old: string) => {
      writeFileSync(old, "text");
      renameSync(old, path);
    },
  ],
  ["truncated", (path: string) => truncateSync(path, 0)],
])("a segment that is %s while it is written costs none of the points that follow", (_what, change) => {
  using home = temporaryFolder();
  const own = home.file("buffer");
  const disk = nodeDisk();
  const { store, notes } = openStore(disk, { ...setup, folder: own });
  append(store, range(0, 20).map(pointOf));
  const path = `${own}/${disk.list(own).find((name) => name.startsWith("seg-"))}`;
  copyFileSync(path, home.file("old"));
  append(store, range(20, 40).map(pointOf), 1);
  change(path, home.file("old"));

  store.tick(moment(2));
  append(store, range(40, 60).map(pointOf), 3);

  expect(notes.map(({ message }) => message)).toContain(
    "the segment being written was replaced or truncated by another program",
  );
  const killed = openStore(disk, { ...setup, folder: own, seed: 2, at: 4 }).store;
  const there = takeAll(killed).map(numberOf);
  expect(there).toEqual(expect.arrayContaining(range(40, 60)));
  expect(killed.stats()).toMatchObject({ appendedPoints: 60, losses: [{ points: 60 - there.length }] });
});

test("a copy of a segment counts once, also for the inspector", () => {
  const from = filled(2, true);
  const [first = "", second = ""] = segmentsOf(from.disk);
  put(from.disk, first.replace(".log", "-3.log"), from.disk.content(`${folder}/${first}`));
  put(from.disk, "seg-0000000000077777.log", from.disk.content(`${folder}/${second}`));

  const inspector = bufferInspector(folder, from.disk);
  const points = inspector.names().reduce((sum, name) => sum + (inspector.segment(name)?.unsettledPoints ?? 0), 0);

  expect(points).toBe(from.count - from.settled.size);
  judge(from);
});

test("a truncated copy of a segment does not replace it", () => {
  const from = filled(2, true);
  const [first = ""] = segmentsOf(from.disk);
  const bytes = from.disk.content(`${folder}/${first}`);
  put(from.disk, first.replace(".log", "-1.log"), bytes.slice(0, bytes.length / 2 + 2_048));
  judge(from);
});

test("a segment under a wrong name is renamed back", () => {
  const from = filled(3, true);
  const [, second = ""] = segmentsOf(from.disk);
  from.disk.rename(`${folder}/${second}`, `${folder}/seg-0000000000066666.log`);
  judge(from);
});

test("a FORMAT of another buffer does not make segments foreign", () => {
  const from = filled(4, true);
  from.disk.change(`${folder}/FORMAT`, () => filled(5, true).disk.content(`${folder}/FORMAT`));
  judge(from);
});

type Deed =
  | {
      readonly kind: "empty" | "zeros" | "garbage" | "foreign" | "headless";
      readonly at: number;
      readonly attempt: number;
    }
  | { readonly kind: "copy" | "rename"; readonly which: number; readonly at: number; readonly attempt: number }
  | { readonly kind: "cut"; readonly which: number; readonly part: number };

const at = fc.oneof(fc.nat(600), fc.constantFrom(0, 500, 50_000, Number.MAX_SAFE_INTEGER));
const attempt = fc.nat(2);
const deed: fc.Arbitrary<Deed> = fc.oneof(
  fc.record({
    kind: fc.constantFrom(
      "empty" as const,
      "zeros" as const,
      "garbage" as const,
      "foreign" as const,
      "headless" as const,
    ),
    at,
    attempt,
  }),
  fc.record({ kind: fc.constantFrom("copy" as const, "rename" as const), which: fc.nat(5), at, attempt }),
  fc.record({ kind: fc.constant("cut" as const), which: fc.nat(5), part: fc.double({ min: 0, max: 1, noNaN: true }) }),
);

/** The greatest safe integer is written as sixteen nines, a sequence number that is out of range. */
const nameOf = (first: number, tries: number) =>
  `seg-${first === Number.MAX_SAFE_INTEGER ? "9".repeat(16) : String(first).padStart(16, "0")}${tries === 0 ? "" : `-${tries}`}.log`;

function commit(from: Filled, deeds: readonly Deed[], foreign: Uint8Array): Set<number> {
  const { disk } = from;
  const cut = new Set<number>();
  const random = seeded(7);
  for (const each of deeds) {
    const names = segmentsOf(disk);
    if (each.kind === "cut") {
      const own = names.filter((name) => disk.content(`${folder}/${name}`).length > 4_200);
      const name = own[each.which % own.length];
      if (name === undefined) continue;
      disk.change(`${folder}/${name}`, (bytes) => bytes.slice(0, 4_096 + (bytes.length - 4_096) * each.part));
      for (const number of range(0, from.count)) cut.add(number);
      continue;
    }
    const name = nameOf(each.at, each.attempt);
    if (each.kind === "copy" || each.kind === "rename") {
      const source = names[each.which % names.length]!;
      if (disk.list(folder).includes(name)) continue;
      if (each.kind === "copy") put(disk, name, disk.content(`${folder}/${source}`));
      else disk.rename(`${folder}/${source}`, `${folder}/${name}`);
    } else if (each.kind === "empty") put(disk, name, new Uint8Array());
    else if (each.kind === "zeros") put(disk, name, new Uint8Array(6_000));
    else if (each.kind === "garbage")
      put(
        disk,
        name,
        Uint8Array.from({ length: 6_000 }, () => random() * 256),
      );
    else {
      const bytes = foreign.slice();
      if (each.kind === "headless") bytes.fill(0, 0, 4_096);
      put(disk, name, bytes);
    }
  }
  return cut;
}

test("whatever is added, copied, renamed or truncated in the folder, no acknowledged and intact point is lost", () => {
  const other = filled(9, true).disk;
  const foreign = other.content(`${folder}/${segmentsOf(other)[1]}`);
  fc.assert(
    fc.property(fc.array(deed, { minLength: 1, maxLength: 6 }), fc.boolean(), (deeds, closed) => {
      const from = filled(1, closed);
      judge(from, commit(from, deeds, foreign));
    }),
    runs(120),
  );
});
