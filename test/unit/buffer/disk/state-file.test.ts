// The slots of the state file after a kill and a power cut.
import { expect, test } from "vitest";
import { type BufferState, StateFile } from "../../../../src/buffer/disk/counters/state-file.ts";
import { folder } from "../../../support/disk-store.ts";
import { MemoryDisk } from "../../../support/memory-disk.ts";
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
  const { states } = StateFile.read(disk, folder);
  return StateFile.open(disk, folder, states, states[0]);
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
    const { states } = StateFile.read(
      disk.afterPowerCut(() => random() < 0.5),
      folder,
    );
    expect({ seed, states: states.length > 0 }).toEqual({ seed, states: true });
  }
});
