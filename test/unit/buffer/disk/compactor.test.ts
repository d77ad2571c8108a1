import { expect, test } from "vitest";
import { append, folder, moment, openStore, settle, type Triple, take, takeAll } from "../../../support/disk-store.ts";
import { MemoryDisk } from "../../../support/memory-disk.ts";
import { seeded } from "../../../support/runtime.ts";

const t0 = 1_767_225_600_000_000;
const tags = 50;
/** One second of points of all tags. */
const poll = (second: number): Triple[] =>
  Array.from({ length: tags }, (_, tag) => [
    `line.tag${tag}`,
    t0 + second * 1e6,
    tag % 5 === 0 ? Math.sin(second + tag) : Math.round(1e4 * Math.sin((second + tag) / 9)) / 10 ** (tag % 4),
  ]);
const keys = (points: readonly Triple[]) =>
  points.map(([input, time, value]) => `${input} ${time} ${value}`).toSorted();

function withBacklog(seconds: number) {
  const disk = new MemoryDisk();
  const { store } = openStore(disk, { segmentBytes: 65_536 });
  for (let i = 0; i < seconds; i++) append(store, poll(i), i);
  return { disk, store };
}

/** Compacts until there is nothing left to do. */
function compact(store: ReturnType<typeof openStore>["store"], at: number): number {
  let steps = 0;
  while (store.work(moment(at))) steps++;
  return steps;
}

const segmentFiles = (disk: MemoryDisk) => disk.list(folder).filter((name) => name.startsWith("seg-"));

test("sealed segments of an outage are compacted, and every point is returned unchanged", () => {
  const { disk, store } = withBacklog(600);
  const before = store.stats();

  expect(compact(store, 1_000)).toBeGreaterThan(3);

  const after = store.stats();
  expect(after.bytes).toBeLessThan(before.bytes * 0.6);
  expect(after).toMatchObject({
    appendedPoints: before.appendedPoints,
    unsettledPoints: before.unsettledPoints,
    losses: [],
  });
  const expected = keys(Array.from({ length: 600 }, (_, i) => poll(i)).flat());
  const again = openStore(
    disk.afterPowerCut(() => false),
    { at: 600 },
  ).store;
  expect(keys(takeAll(again))).toEqual(expected);
  expect(keys(takeAll(store))).toEqual(expected);
});

test("compaction leaves out settled points, and the others are settled as before", () => {
  const { disk, store } = withBacklog(300);
  const some = take(store, "backlog", 1e6, ["line.tag3", "line.tag7"])!;
  settle(store, some);
  const first = take(store, "backlog", 500)!;
  settle(
    store,
    first,
    first.points.slice(0, 100).map(([input]) => input),
  );
  store.release([first.id]);
  const unsettled = store.stats().unsettledPoints;

  compact(store, 500);

  expect(store.stats()).toMatchObject({
    unsettledPoints: unsettled,
    settledPoints: tags * 300 - unsettled,
    losses: [],
  });
  const rest = openStore(
    disk.afterPowerCut(() => false),
    { at: 600 },
  ).store;
  expect(rest.stats()).toMatchObject({ unsettledPoints: unsettled, settledPoints: tags * 300 - unsettled, losses: [] });
  for (let block = take(rest, "live", 700); block; block = take(rest, "live", 700)) settle(rest, block);
  rest.tick(moment(700));
  expect(rest.stats()).toMatchObject({ unsettledPoints: 0, settledPoints: tags * 300, losses: [] });
  expect(segmentFiles(disk).length).toBeGreaterThan(1);
});

test("values with the same time keep their order in a cold segment and are not served by the live lane", () => {
  const { store } = withBacklog(100);
  for (const value of [7, 8, 7]) append(store, [["line.tag3", t0, value]], 101);
  append(
    store,
    Array.from({ length: 9_000 }, (_, i): Triple => ["filling", t0 + i, i * 1.1]),
    102,
  );
  compact(store, 1_000);

  const live: Triple[] = [];
  for (let block = take(store, "live"); block; block = take(store, "live")) live.push(...block.points);
  const points = [...live, ...takeAll(store)].filter(([input, time]) => input === "line.tag3" && time === t0);

  expect(live.some(([input]) => input === "line.tag3")).toBe(false);
  expect(points.map(([, , value]) => value)).toEqual([poll(0)[3]![2], 7, 8, 7]);
});

test("a segment that is being read is not compacted", () => {
  const { store } = withBacklog(300);
  store.work(moment(500));
  const block = take(store, "backlog", 1e6)!;

  compact(store, 500);

  settle(store, block);
  expect(store.stats()).toMatchObject({ settledPoints: block.points.length, losses: [] });
  expect(takeAll(store).length).toBe(tags * 300 - block.points.length);
});

test("fresh segments are not compacted, and an interrupted compaction leaves no effect", () => {
  const { disk, store } = withBacklog(300);
  expect(store.work(moment(230))).toBe(false);
  store.work(moment(500));
  expect(disk.list(folder)).toContain("compaction.tmp");

  const again = openStore(disk.afterKill(), { at: 501 }).store;

  compact(again, 900);
  expect(keys(takeAll(again))).toEqual(keys(Array.from({ length: 300 }, (_, i) => poll(i)).flat()));
});

test("a segment with damaged points is not compacted, so that a restart finds the same losses", () => {
  const disk = new MemoryDisk();
  const { store } = openStore(disk, { segmentBytes: 16_000 });
  for (let second = 0; !segmentFiles(disk)[1]; second++) append(store, poll(second), 1);
  // A record after the first one, because the first one contains the names.
  disk.change(`${folder}/${segmentFiles(disk)[0]}`, (bytes) => {
    bytes[4_096 + 3_000]! ^= 0x10;
    return bytes;
  });
  takeAll(store);
  store.releaseAll();
  const { losses } = store.stats();
  expect(losses).toMatchObject([{ reason: "damaged" }]);

  compact(store, 100);
  store.close(moment(110));

  expect(openStore(disk, { at: 120, seed: 2 }).store.stats().losses).toEqual(losses);
});

test("points that compress badly become several cold records, none longer than the readable maximum", () => {
  const disk = new MemoryDisk();
  const { store } = openStore(disk, { segmentBytes: 3_000_000 });
  const random = seeded(17);
  const count = 65_536;
  const year = 31_536_000_000_000;
  // Each series has one point with its own time and 50 random bits.
  const points = Array.from(
    { length: count },
    (_, i): Triple => [
      `meter.${i}`,
      t0 - Math.floor(random() * year),
      Math.floor((random() + random() / 2 ** 32) * 2 ** 49),
    ],
  );
  for (let from = 0; from < count; from += 8_192) append(store, points.slice(from, from + 8_192), 0);
  // Enough points to begin another segment.
  const others = Array.from({ length: 9_000 }, (_, i): Triple => ["filling", t0 + i, random()]);
  append(store, others, 1);
  expect(segmentFiles(disk)).toHaveLength(2);

  expect(compact(store, 1_000)).toBeGreaterThan(0);

  const again = openStore(
    disk.afterPowerCut(() => false),
    { at: 1_001 },
  ).store;
  expect(again.stats()).toMatchObject({ unsettledPoints: count + others.length, losses: [] });
  const stored = new Map(takeAll(again).map(([input, time, value]) => [input, [time, value]]));
  expect(
    points.filter(([input, time, value]) => stored.get(input)?.[0] !== time || stored.get(input)?.[1] !== value),
  ).toEqual([]);
});
