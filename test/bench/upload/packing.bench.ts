// How many points one request carries and how much processor time it takes to build, over fixed and seeded workloads;
// medians. Run: node test/bench/upload/packing.bench.ts
import { Block, type BlockId } from "../../../src/core/block.ts";
import type { InputId } from "../../../src/core/point.ts";
import { type Steps, sliceWork } from "../../../src/lib/flow/in-slices.ts";
import { Envelope, FrameWriter, firstRequestId, type PackedPlan } from "../../../src/upload/packing/frame.ts";
import { Packer } from "../../../src/upload/packing/packer.ts";
import { Window } from "../../../src/upload/window/window.ts";
import { seeded } from "../../support/runtime.ts";

const envelope = new Envelope("c8ktonqsahsmemfs7lv0");
const maxBytes = 8 * 2 ** 20;
const start = Date.parse("2026-01-01T00:00:00Z") * 1_000;
const input = (tag: number) => `line1.machine2.t${String(tag).padStart(3, "0")}` as InputId;

interface Workload {
  readonly name: string;
  /** The time of a point in microseconds after the start. */
  readonly time: (tick: number, tag: number) => number;
  readonly tags: number;
  readonly ticks: number;
}

const random = seeded(7);
const phases = Array.from({ length: 10_000 }, () => Math.floor(random() * 1_000));
const shared = (tick: number) => tick * 1e6;
const jittered = (tick: number, tag: number) => (tick * 1_000 + phases[tag]! + Math.floor(random() * 5) - 2) * 1_000;
const many = seeded(8);
const manyPhases = Array.from({ length: 20_000 }, () => Math.floor(many() * 1_000_000));
/** 5 poll groups of 100, 30 devices of 10, 200 single tags. Tags with the same phase share their times. */
const grouped = (tick: number, tag: number) => {
  const group = tag < 500 ? Math.floor(tag / 100) : tag < 800 ? 5 + Math.floor((tag - 500) / 10) : tag;
  return tick * 1e6 + phases[group]! * 1_000;
};
/**
 * A slow bus reads 20 blocks of 50 registers in 2.4 s, every 5 s. Times are those of the blocks, on a grid of `gridMs`.
 */
const slowBus = (gridMs: number) => (tick: number, tag: number) => {
  const readMs = tick * 5_000 + Math.floor(tag / 50) * 120 + (phases[tick * 20 + Math.floor(tag / 50)]! % 30);
  return Math.floor(readMs / gridMs) * gridMs * 1_000;
};
const workloads: Workload[] = [
  { name: "slow bus, time of the slot", time: slowBus(5_000), tags: 1_000, ticks: 400 },
  { name: "slow bus, read times by 100 ms", time: slowBus(100), tags: 1_000, ticks: 400 },
  { name: "slow bus, read times by 1 ms", time: slowBus(1), tags: 1_000, ticks: 400 },
  { name: "A, 60 ticks", time: shared, tags: 1_000, ticks: 60 },
  { name: "A, 2,000 ticks", time: shared, tags: 1_000, ticks: 2_000 },
  { name: "B, 1 s", time: jittered, tags: 1_000, ticks: 1 },
  { name: "B, 10 s", time: jittered, tags: 1_000, ticks: 10 },
  { name: "B, 60 s", time: jittered, tags: 1_000, ticks: 60 },
  { name: "B, 600 s", time: jittered, tags: 1_000, ticks: 600 },
  { name: "B, 3,600 s", time: jittered, tags: 1_000, ticks: 3_600 },
  { name: "C, 60 s", time: grouped, tags: 1_000, ticks: 60 },
  { name: "C, 600 s", time: grouped, tags: 1_000, ticks: 600 },
  { name: "C, 2,000 s", time: grouped, tags: 1_000, ticks: 2_000 },
  { name: "one tag, 1 kHz", time: (tick) => tick * 1_000, tags: 1, ticks: 400_000 },
  { name: "10 tags, 100 Hz", time: (tick, tag) => tick * 10_000 + tag, tags: 10, ticks: 50_000 },
  { name: "B of 20,000 tags, 5 s", time: (tick, tag) => tick * 1e6 + manyPhases[tag]!, tags: 20_000, ticks: 5 },
];

interface Built {
  readonly planMs: number;
  readonly writeMs: number;
  readonly sliceMs: number;
  readonly plan: PackedPlan;
}

/** Processor time of this thread in milliseconds, which other load does not affect. */
const cpu = () => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
};

/** Runs all steps. Returns the longest slice between two yields to the event loop as well. */
function timed<T>(work: Steps<T>): { value: T; ms: number; sliceMs: number } {
  const begun = cpu();
  let sliceMs = 0;
  let before = begun;
  let done = 0;
  for (;;) {
    const step = work.next();
    if (step.done !== true && (done += step.value) < sliceWork) continue;
    done = 0;
    const after = cpu();
    sliceMs = Math.max(sliceMs, after - before);
    before = after;
    if (step.done === true) return { value: step.value, ms: after - begun, sliceMs };
  }
}

for (const { name, time, tags, ticks } of workloads) {
  const window = new Window(tags * ticks + 100_000);
  const values = Array.from({ length: tags }, () => random() * 100);
  for (let tick = 0; tick < ticks; tick++) {
    const series = Array.from({ length: tags }, (_, tag) => {
      values[tag]! += random() - 0.5;
      const decimals = 10 ** (1 + (tag % 3));
      return {
        input: input(tag),
        times: Float64Array.of(start + time(tick, tag)),
        values: Float64Array.of(Math.round(values[tag]! * decimals) / decimals),
      };
    });
    window.add("live", Block.of(tick as BlockId, series), tick);
  }
  const packer = new Packer();
  const writer = new FrameWriter(envelope, maxBytes);
  const build = (): Built | undefined => {
    const candidates = { queues: window.filled("live"), since: () => 0 };
    const limits = { maxBytes, envelopeBytes: envelope.bytes, maxSeries: 20_000, urgentBefore: -1 };
    const planned = timed(packer.plan(candidates, limits));
    if (!planned.value) return undefined;
    const written = timed(writer.write(planned.value, firstRequestId));
    const sliceMs = Math.max(planned.sliceMs, written.sliceMs);
    return { planMs: planned.ms, writeMs: written.ms, sliceMs, plan: planned.value };
  };
  // The first frame several times, so that warm code is measured; then all frames.
  const first = Array.from({ length: 9 }, build).filter((built) => built !== undefined);
  const frames: PackedPlan[] = [];
  let settleMs = 0;
  for (let built = build(); built; built = build()) {
    frames.push(built.plan);
    const begun = cpu();
    for (const { source, count } of built.plan.parts) window.settle(source, count);
    window.takeSettled();
    settleMs += cpu() - begun;
  }
  const sum = (of: (plan: PackedPlan) => number) => frames.reduce((total, plan) => total + of(plan), 0);
  const median = (of: (built: Built) => number) => first.map(of).toSorted((a, b) => a - b)[first.length >> 1] ?? 0;
  const points = first[0]?.plan.points ?? 1;
  const buildMs = median(({ planMs, writeMs }) => planMs + writeMs);
  console.log(
    `${name}: ${frames.length} requests; first ${points} points, ${first[0]?.plan.bytes} bytes, ${first[0]?.plan.nulls} nulls; ` +
      `${(sum(({ bytes }) => bytes) / sum(({ points: of }) => of)).toFixed(2)} bytes/point; ` +
      `plan ${median(({ planMs }) => planMs).toFixed(1)} ms, write ${median(({ writeMs }) => writeMs).toFixed(1)} ms, ` +
      `${((buildMs * 1e6) / points).toFixed(0)} ns/point, settle ${settleMs.toFixed(1)} ms in all, longest slice ${median(({ sliceMs }) => sliceMs).toFixed(1)} ms`,
  );
}
