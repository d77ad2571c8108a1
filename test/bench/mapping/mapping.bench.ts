// The cost of mapping a reading: median over 250 deliveries of 10,000 readings of 1,000 tags.
// Run: node test/bench/mapping/mapping.bench.ts
import type { z } from "zod";
import { epochMicros } from "../../../src/core/point.ts";
import type { tagOptions } from "../../../src/mapping/options.ts";
import { openMapping } from "../../../src/mapping/source-mapping.ts";
import { reading, rule, tagId } from "../../support/mapping.ts";
import { testRuntime } from "../../support/runtime.ts";

interface Workload {
  readonly name: string;
  readonly options: Partial<z.input<typeof tagOptions>>;
  /** Whether a capture fills the Input ID, with ten rooms per tag. */
  readonly captured: boolean;
  readonly value: (n: number) => number;
}

const workloads: readonly Workload[] = [
  { name: "fixed input", options: {}, captured: false, value: (n) => n },
  { name: "fixed input, whole numbers × 0.1", options: { scale: 0.1 }, captured: false, value: (n) => n % 65_536 },
  { name: "captured input", options: {}, captured: true, value: (n) => n },
  {
    name: "fixed input, dead band, interval, heartbeat",
    options: { report: { deadband: 0.5, minInterval: "1s", heartbeat: "10m" } },
    captured: false,
    value: (n) => ((n * 7_919) % 100) / 10,
  },
  {
    name: "captured input, noisy floats × 0.1",
    options: { scale: 0.1 },
    captured: true,
    value: (n) => Math.fround(n * 0.1234),
  },
];

for (const { name, options, captured, value } of workloads) {
  const rules = Array.from({ length: 1_000 }, (_, i) =>
    rule({ ...options, input: captured ? `hall.{room}.t${i}` : `hall.t${i}` }),
  );
  const mapping = openMapping({ source: "bench", rules, catalog: { describe() {} } }, testRuntime());
  const rooms = Array.from({ length: 10 }, (_, i) => ({ room: `r${i}` }));
  const rounds: number[] = [];
  for (let round = 0; round < 300; round++) {
    const readings = Array.from({ length: 10_000 }, (_, i) =>
      reading(value(i + round), {
        tag: tagId(i % 1_000),
        captures: rooms[captured ? Math.floor(i / 1_000) : 0] ?? {},
        time: epochMicros(1e15 + round * 1e6 + i),
      }),
    );
    const from = performance.now();
    mapping.map({ readings, descriptions: [] });
    // The first rounds are a warm-up.
    if (round >= 50) rounds.push(performance.now() - from);
  }
  const medianMs = rounds.toSorted((a, b) => a - b)[rounds.length / 2] ?? 0;
  console.log(`${name}: ${((medianMs * 1e6) / 10_000).toFixed(0)} ns a reading`);
}
