// What the status tells an operator.
import { expect, test } from "vitest";
import { snapshot } from "../../../src/agent/snapshot.ts";
import { loadConfig } from "../../../src/config/load.ts";
import type { BufferStats } from "../../../src/core/buffer.ts";
import { epochMicros } from "../../../src/core/point.ts";
import { environmentOf, head, withPassword } from "../../support/config.ts";

test("a loss is told with its cause, its times and a remedy", async () => {
  const { warnings } = await snapshotOf({
    losses: [
      { reason: "diskFull", points: 12, from: epochMicros(1_000_000), to: epochMicros(2_000_000) },
      { reason: "maxAge", points: 0, from: undefined, to: undefined },
    ],
  });

  expect(warnings).toEqual([
    {
      level: "error",
      message:
        "12 points were lost from the buffer: diskFull, times from 1970-01-01T00:00:01.000Z to 1970-01-01T00:00:02.000Z",
      remedy: expect.stringContaining("whenFull: block"),
    },
  ]);
});

async function snapshotOf(buffer: Partial<BufferStats>) {
  const config = await loadConfig(
    "agent.yaml",
    environmentOf(withPassword, { "/site/agent.yaml": `${head}sources: {}\n` }),
  );
  const time = epochMicros(0);
  return snapshot({
    time,
    agent: { name: "gw1", version: "0", startedAt: time, uptimeMs: 0 },
    config: { ...config, warnings: [] },
    sources: [],
    buffer: { ...emptyBuffer, ...buffer },
    delivery: { status: () => undefined, standstill: undefined },
    gaps: { open: 0, day: 0, dayLost: 0, revision: 0 },
  });
}

const emptyBuffer: BufferStats = {
  bytes: 0,
  segments: 0,
  appendedPoints: 0,
  settledPoints: 0,
  refusedPoints: 0,
  unsettledPoints: 0,
  oldest: undefined,
  duplicatePoints: 0,
  collidedPoints: 0,
  losses: [],
  degraded: undefined,
};
