// How close the packer comes to the best of many random restarts of a slow, independent packer: points in the first
// request of workloads C and D. Run: node test/bench/upload/best.bench.ts [restarts]
import { packingIntegration, planOf, windowOf } from "../../support/packing.ts";
import { changing, grouped } from "../../support/packing-workloads.ts";
import { bestFrame } from "../../support/reference-packer.ts";
import { seeded } from "../../support/runtime.ts";

const restarts = Number(process.argv[2] ?? 1_000);
const maxBytes = 8 * 2 ** 20;

for (const [name, make] of [
  ["C, 60 s", () => grouped(60)],
  ["C, 600 s", () => grouped(600)],
  ["C, 3,600 s", () => grouped(3_600)],
  ["D, 60 s", () => changing(60)],
  ["D, 600 s", () => changing(600)],
  ["D, 3,600 s", () => changing(3_600)],
] as const) {
  const series = make();
  const ours = planOf(windowOf(series), maxBytes)?.points ?? 0;
  const best = bestFrame(series, { maxBytes, restarts, integration: packingIntegration, random: seeded(9) });
  console.log(
    `${name}: first request ${ours} points, best of ${restarts} random restarts ${best}: ${((100 * ours) / best).toFixed(1)} %`,
  );
}
