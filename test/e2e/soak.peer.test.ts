// All faults at once: about a minute, or as long as TAGFERRY_SOAK says, for example 2h.
import { expect, test } from "vitest";
import { parseDuration } from "../../src/lib/time/duration.ts";
import { seed } from "../support/property.ts";
import type { Footprint } from "../support/restartable-agent.ts";
import { soak } from "../support/soak.ts";
import { soakFaults } from "../support/soak-faults.ts";

const durationMs = parseDuration(process.env.TAGFERRY_SOAK ?? "60s") ?? 60_000;

test(`with faults in every part no acknowledged point is lost, missing values are in the gap record, and no resource grows, seed ${seed}`, {
  // For a slow or busy machine. Each wait within has its own limit.
  timeout: 2 * durationMs + 1_200_000,
}, async () => {
  const result = await soak({ durationMs, seed }, (line) => console.log(line));
  const { faults, footprints, ...rest } = result;
  console.log(
    JSON.stringify({ ...rest, footprints: footprints.length, first: footprints[0], last: footprints.at(-1) }),
  );

  for (const { name } of soakFaults) expect(faults[name], name).toBeGreaterThan(0);
  expect(result).toMatchObject({ missing: [], twice: [], unexplained: [], errors: [] });
  // Otherwise the run has not tested the gap record.
  expect(result.explained).toBeGreaterThan(0);
  expect(result.points.accounted).toBe(result.points.appended);
  expect(result.points.lost).toBe(0);
  expect(result.exits.every((status) => status === 0)).toBe(true);
  const quarter = Math.ceil(footprints.length / 4);
  const [first, last] = [footprints.slice(0, quarter), footprints.slice(-quarter)];
  // The heap of a new process grows to its working size. A leak per fault would add far more in a long run.
  expect(least(last, "rssMiB")).toBeLessThan(least(first, "rssMiB") * 1.25 + 40);
  expect(least(last, "descriptors")).toBeLessThanOrEqual(least(first, "descriptors") + 8);
});

/** The smallest value of a quarter. What the agent holds only for a moment does not count. */
function least(footprints: readonly Footprint[], what: keyof Footprint): number {
  return Math.min(...footprints.map((one) => one[what]));
}
