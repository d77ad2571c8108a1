// The long form of modbus-adversary.test.ts.
import { expect, test } from "vitest";
import type { Reading } from "../../src/core/source.ts";
import { endure, endureMany } from "../support/modbus-endurance.ts";
import { modbusSlowLine } from "../support/modbus-slow-line.ts";
import { seed } from "../support/property.ts";
import { seeded, testRuntime } from "../support/runtime.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

test(`50,000 replies of faulty devices give no wrong value and no hanging poll, seed ${seed}`, async () => {
  const { faults, answered } = await endureMany({ devices: 150, replies: 50_000, timeoutMs: 1_800_000 });

  expect(faults).toEqual([]);
  expect(answered).toBeGreaterThanOrEqual(50_000);
}, 1_810_000);

test(`units on a line with late and missing answers on any connection give no wrong value, seed ${seed}`, async () => {
  const lines = Array.from({ length: 20 }, async (_, i) => {
    using folder = temporaryFolder();
    await using line = await modbusSlowLine({ random: seeded(seed + i), longestMs: 90 });
    let good = 0;
    const enough = ({ quality }: Reading) => (quality === "good" ? ++good : good) >= 150;
    const signal = AbortSignal.timeout(600_000);
    const runtime = testRuntime({ seed: seed + i });
    const { faults } = await endure(line.url, { enough, stateDir: folder.path }, runtime, signal);
    return { faults, late: runtime.metric("source_modbus_discarded_replies_total") };
  });
  const endured = await Promise.all(lines);

  expect(endured.flatMap(({ faults }) => faults)).toEqual([]);
  expect(endured.reduce((sum, { late }) => sum + late, 0)).toBeGreaterThan(500);
}, 610_000);
