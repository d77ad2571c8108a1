// A status as a running agent would report it, for tests to show and change.
import { overallOf } from "../../src/agent/status/overall.ts";
import type { SourceStatus, Status, TagStatus } from "../../src/agent/status/status.ts";
import { epochMicros } from "../../src/core/point.ts";

const start = epochMicros(Date.parse("2026-03-01T08:00:00Z") * 1_000);

/** Healthy and small. `changes` replace whole members. */
export function statusWith(changes: Partial<Status> = {}): Status {
  const status = {
    time: epochMicros(start + 90e6),
    agent: {
      name: "north-gw1",
      version: "0.1.0",
      config: { checksum: "9f86d081884c", loadedAt: start, needRestart: [] },
      startedAt: start,
      uptimeMs: 90_000,
    },
    sources: [sourceWith()],
    tags: [tagWith()],
    buffer: {
      bytes: 4_194_304,
      segments: 2,
      appendedPoints: 12_000,
      settledPoints: 11_800,
      refusedPoints: 0,
      unsettledPoints: 200,
      oldest: epochMicros(start + 88e6),
      duplicatePoints: 0,
      collidedPoints: 0,
      losses: [],
      degraded: undefined,
      maxBytes: 2 ** 31,
      maxAgeMs: 30 * 86_400_000,
    },
    upload: {
      state: "delivering",
      since: start,
      url: "http://127.0.0.1:8420/v1",
      integration: "c8ktonqsahsmemfs7lv0",
      lagMs: 1_200,
      backlogPoints: 200,
      backlog: { trend: "none", text: "keeps up" },
      requests: 90,
      points: 11_800,
      refusedPoints: 0,
      pointsPerRequest: 131,
      bytesPerRequest: 6_300,
      budgetShare: 0.98,
      intervalMs: 1_000,
    },
    gaps: { open: 0, day: 0, dayLost: 0, revision: 1 },
    refusedInputs: [],
    timeFaults: { standing: 0, repeats: 0, first: [] },
    warnings: [],
    ...changes,
  } satisfies Omit<Status, "overall">;
  return { overall: overallOf(status), ...status };
}

export function sourceWith(changes: Partial<SourceStatus> = {}): SourceStatus {
  return {
    name: "hall",
    type: "mqtt",
    url: "mqtt://127.0.0.1:1883",
    state: "online",
    since: start,
    tags: 1,
    readings: 12_000,
    points: 12_000,
    reconnects: 0,
    readingsPerSecond: 133.3,
    details: {},
    ...changes,
  };
}

export function tagWith(changes: Partial<TagStatus> = {}): TagStatus {
  return {
    source: "hall",
    tag: 0,
    input: "hall.room1.temp",
    address: "sensors/room1/env",
    value: 21.5,
    unit: "°C",
    quality: "good",
    time: epochMicros(start + 89e6),
    readings: 90,
    failures: 0,
    ...changes,
  };
}
