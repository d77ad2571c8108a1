// The slots of the state file after a kill and a power cut.
import { expect, test } from "vitest";
import {
  type BufferState,
  openStateFile,
  readStates,
  type StateFile,
} from "../../../../src/buffer/disk/counters/state-file.ts";
import { readFile } from "../../../../src/buffer/disk/files/disk.ts";
import { epochMicros } from "../../../../src/core/point.ts";
import { append, folder, moment, openStore, type Triple } from "../../../support/disk-store.ts";
import { failure, MemoryDisk } from "../../../support/memory-disk.ts";
import { seeded } from "../../../support/runtime.ts";

const stateOf = (settled: number): BufferState => ({
  stream: "0".repeat(32),
  opens: 1,
  uptime: 0,
  durable: settled,
  origin: 0,
  integration: "plant",
  settled,
  refused: 0,
  duplicates: 0,
  collided: 0,
  losses: [],
  leased: [],
  // Enough segments for a slot to span several sectors, any of which a power cut may lose.
  segments: Array.from({ length: 200 }, (_, i) => ({
    name: `seg-${i}`,
    salt: settled * 1_000 + i,
    settledBySeries: 0,
    whole: [settled],
    series: [],
    gaps: [],
  })),
  newest: "",
  oldest: undefined,
  latest: undefined,
  removed: [],
  starts: [],
});

function open(disk: MemoryDisk): StateFile {
  const { states } = readStates(disk, folder);
  return openStateFile(disk, folder, states, states[0]);
}

test("a power cut during the first write after a kill leaves a complete state file", () => {
  for (let seed = 1; seed <= 40; seed++) {
    const disk = new MemoryDisk();
    disk.makeFolder(folder);
    const first = open(disk);
    for (let i = 1; i <= 7; i++) first.write(stateOf(i), i === 1);
    // The process dies. Its unsynced writes can still be read, but are not on disk yet.
    const second = open(disk);
    disk.fault = (call) => {
      if (call === "sync") throw new Error("the power fails");
      return undefined;
    };
    expect(() => second.write(stateOf(8), true)).toThrow("the power fails");
    const random = seeded(seed);
    const { states } = readStates(
      disk.afterPowerCut(() => random() < 0.5),
      folder,
    );
    expect({ seed, states: states.length > 0 }).toEqual({ seed, states: true });
  }
});

test.each(["state-a", "state-b", "state-c", "state-"])("with bad blocks in %s, an outage drops no more", (bad) => {
  const outage = (isBad: boolean) => {
    const disk = new MemoryDisk();
    const { store } = openStore(disk, { segmentBytes: 10_000, maxSize: 100_000 });
    disk.fault = (call, path) => {
      if (isBad && call === "sync" && path.includes(bad)) throw failure("EIO", path);
      return undefined;
    };
    for (let at = 0; at < 400; at += 2) {
      const points = Array.from({ length: 60 }, (_, i): Triple => ["a", (at * 60 + i) * 1_000, Math.sqrt(at * 60 + i)]);
      append(store, points, at);
      store.tick(moment(at + 1));
    }
    // Without any slot, dropped segments stay until the disk is sound.
    if (bad === "state-") {
      disk.fault = () => undefined;
      store.tick(moment(410));
    }
    const names = disk.list(folder).filter((name) => name.startsWith("seg-"));
    return { segments: names.length, points: store.stats().unsettledPoints };
  };

  expect(outage(true)).toEqual(outage(false));
});

test("the bytes of a state stay the same, so that another version of the agent reads it", () => {
  const [from, to] = [epochMicros(1e15), epochMicros(2e15)];
  const state: BufferState = {
    stream: "0123456789abcdef".repeat(2),
    opens: 3,
    uptime: 5_000,
    durable: 700,
    origin: 0,
    integration: "plant",
    settled: 320,
    refused: 2,
    duplicates: 1,
    collided: 4,
    losses: [
      { reason: "damage", points: 7, from, to, found: 3, intervals: [{ number: 1, points: 7, from, to }] },
      { reason: "age", points: 1, from: undefined, to: undefined, found: undefined, intervals: [] },
    ],
    leased: [{ reason: "age", points: 2, from, to: from }],
    segments: [
      {
        name: "seg-0000000000000100.log",
        salt: 0xdeadbeef,
        settledBySeries: -5,
        whole: [100, 400],
        series: [{ place: 4, bounds: [400, 420] }],
        gaps: [{ place: 2, bounds: [100, 300] }],
      },
      {
        name: "seg-0000000000000500.log",
        salt: 7,
        settledBySeries: 25,
        whole: [],
        series: [{ place: 1, bounds: [500, 600] }],
        gaps: [],
      },
    ],
    newest: "seg-0000000000000600.log",
    oldest: from,
    latest: to,
    removed: [
      { first: 0, end: 100, lost: 2, reason: "age" },
      { first: 450, end: 500, lost: 0, reason: "" },
    ],
    starts: [100, 500, 600],
  };
  const bytes =
    "5446535441320d0a000000000000f03f1d010000b590a95e0f3483d8000000002030313233343536373839616263646566303132333435" +
    "36373839616263646566038827bc050005706c616e74c002020104020664616d6167650700003426f56b0c4300003426f56b1c43010107" +
    "00003426f56b0c4300003426f56b1c430361676501000000000000f87f000000000000f87f0001036167650200003426f56b0c43000034" +
    "26f56b0c4302187365672d303030303030303030303030303130302e6c6f67efbeadde00050264ac0201040290031401020264c8011873" +
    "65672d303030303030303030303030303530302e6c6f6707000000190000010102f4036400187365672d30303030303030303030303030" +
    "3630302e6c6f6700003426f56b0c4300003426f56b1c4303000200640203616765de0232000364900364";
  const disk = new MemoryDisk();
  disk.makeFolder(folder);
  open(disk).write(state, true);
  const [slot] = readStates(disk, folder).states;

  expect(slot?.state).toEqual(state);
  expect(Buffer.from(readFile(disk, `${folder}/state-a.bin`)).toString("hex", 0, bytes.length / 2)).toBe(bytes);
});
