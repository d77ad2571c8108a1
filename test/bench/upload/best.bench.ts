// How near the packer comes to the best of many random orders of the same clusters: points in the first frame, and frames
// to send everything. Run: node test/bench/upload/best.bench.ts [restarts]
import type { BlockId } from "../../../src/core/buffer.ts";
import type { InputId } from "../../../src/core/point.ts";
import type { Cluster } from "../../../src/upload/cluster.ts";
import { Envelope } from "../../../src/upload/frame-plan.ts";
import { Packer } from "../../../src/upload/packer.ts";
import { Window } from "../../../src/upload/window.ts";
import { seeded } from "../../support/runtime.ts";

const restarts = Number(process.argv[2] ?? 1_000);
const envelope = new Envelope("c8ktonqsahsmemfs7lv0");
const maxBytes = 8 * 2 ** 20;
const start = Date.parse("2026-01-01T00:00:00Z") * 1_000;
const random = seeded(3);
const phases = Array.from({ length: 1_000 }, () => Math.floor(random() * 1_000));

/** 5 poll groups of 100 tags, 30 devices of 10 that share a time, 200 single tags, each once a second. */
function grouped(seconds: number): Window {
  const window = new Window(1_000 * seconds + 10_000);
  const series = Array.from({ length: 1_000 }, (_, tag) => {
    const group = tag < 500 ? Math.floor(tag / 100) : tag < 800 ? 5 + Math.floor((tag - 500) / 10) : tag;
    return points(
      tag,
      Array.from({ length: seconds }, (__, i) => i * 1e6 + phases[group]! * 1_000),
    );
  });
  window.add("live", { id: 1 as BlockId, series }, 0);
  return window;
}

/** 1,000 tags that change when they change, at rates that follow a power law. */
function changing(seconds: number): Window {
  const rates = Array.from({ length: 1_000 }, (_, i) => 10 / (i + 1) ** 0.8);
  const series = rates.map((rate, tag) => {
    const count = Math.max(1, Math.round(rate * seconds));
    return points(
      tag,
      Array.from({ length: count }, () => Math.floor(random() * seconds * 1e3) * 1e3)
        .toSorted((a, b) => a - b)
        .filter((time, i, all) => time !== all[i - 1]),
    );
  });
  const window = new Window(series.reduce((sum, { times }) => sum + times.length + 8, 0));
  window.add("live", { id: 1 as BlockId, series }, 0);
  return window;
}

function points(tag: number, times: readonly number[]) {
  return {
    input: `line1.machine2.t${String(tag).padStart(3, "0")}` as InputId,
    times: Float64Array.from(times, (time) => start + time),
    values: Float64Array.from(times, () => Math.floor(random() * 10_000) / 10),
  };
}

function plan(packer: Packer, window: Window) {
  const candidates = [...window.queues("live")]
    .filter((queue) => queue.count > 0)
    .map((queue) => ({ queue, since: 0 }));
  const work = packer.plan(candidates, {
    maxBytes,
    envelopeBytes: envelope.bytes,
    maxSeries: 20_000,
    urgentBefore: -1,
  });
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}

/** Clusters whose size is as likely to lead as any other, the rest in any order or by likeness to the first. */
function shuffled(clusters: Cluster[]): Cluster[] {
  const keys = new Map(clusters.map((cluster) => [cluster, random()]));
  const order = clusters.toSorted((a, b) => keys.get(a)! - keys.get(b)!);
  const lead = order[0];
  if (!lead || random() < 0.3) return order;
  const weight = (cluster: Cluster) => cluster.rows * cluster.members.length;
  const noise = random();
  return order.toSorted(
    (a, b) =>
      Math.abs(Math.log(weight(a) / weight(lead))) -
      Math.abs(Math.log(weight(b) / weight(lead))) +
      noise * (keys.get(a)! - keys.get(b)!),
  );
}

for (const [name, make] of [
  ["C, 60 s", () => grouped(60)],
  ["C, 600 s", () => grouped(600)],
  ["C, 3,600 s", () => grouped(3_600)],
  ["D, 60 s", () => changing(60)],
  ["D, 600 s", () => changing(600)],
  ["D, 3,600 s", () => changing(3_600)],
] as const) {
  const window = make();
  const ours = plan(new Packer(), window)?.points ?? 0;
  const reference = new Packer(shuffled);
  let best = 0;
  for (let i = 0; i < restarts; i++) best = Math.max(best, plan(reference, window)?.points ?? 0);
  console.log(
    `${name}: first frame ${ours} points, best of ${restarts} random orders ${best}: ${((100 * ours) / best).toFixed(1)} %`,
  );
}
