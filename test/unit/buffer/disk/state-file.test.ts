// The slots of the state file after a kill and a power cut.
import { expect, test } from "vitest";
import {
  type BufferState,
  openStateFile,
  readStates,
  type StateFile,
} from "../../../../src/buffer/disk/counters/state-file.ts";
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
    settledPoints: 0,
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
