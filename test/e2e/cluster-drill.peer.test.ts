// Servers, agents and networks of a cluster fail at random for a few minutes.
// TAGFERRY_DRILL_MINUTES=10 or 120 runs the long forms.
import { expect, test } from "vitest";
import { clusterDrill } from "../support/cluster-drill.ts";
import { clusterDrillFaults } from "../support/cluster-drill-faults.ts";
import { seed } from "../support/property.ts";

const durationMs = Number(process.env.TAGFERRY_DRILL_MINUTES ?? 3) * 60_000;
/** The agents space their requests for a service that may register a request this long after it was sent. */
const countedWithinMs = 500;

test("whatever fails in a cluster, what was acknowledged arrives, the last value wins, and the agents keep one rate", {
  // For a slow or busy machine. Each wait within the drill has its own limit.
  timeout: 3 * durationMs + 1_200_000,
}, async () => {
  console.log(`seed ${seed}`);
  const result = await clusterDrill({ durationMs, seed }, (line) => console.log(line));
  const { faults, ...rest } = result;
  console.log(JSON.stringify(rest));

  for (const { name } of clusterDrillFaults) expect(faults[name], name).toBeGreaterThan(0);
  expect(result).toMatchObject({ missing: [], unexplained: [], notLast: [], lost: 0, errors: [] });
  expect(result).toMatchObject({ sharedUnexplained: [], latePolls: 0 });
  for (const count of Object.values(result.sharedValues)) expect(count).toBeGreaterThan(200);
  expect(result.acknowledged).toBeGreaterThan(1_000);
  expect(result.sameTimes).toBeGreaterThan(100);
  const total = Object.values(faults).reduce((sum, count) => sum + count, 0);
  expect(result.repeats).toBeLessThanOrEqual(total);
  const stallMs = Math.max(0, result.stallMs - countedWithinMs);
  for (const [method, ms] of Object.entries(result.spacing)) expect(ms + stallMs, method).toBeGreaterThanOrEqual(1_000);
  expect(result.exits.every((status) => status === 0)).toBe(true);
});
