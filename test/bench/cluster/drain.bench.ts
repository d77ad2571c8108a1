// Drains a backlog from the stream of three real servers on this machine: the reader's points a second, compared with
// what
// the service accepts at one request a second. Frames of one second of 1,000 tags, and full frames as published by an
// agent
// that catches up. Run: node test/bench/cluster/drain.bench.ts [millions of points]

import { encodeFrame, messageIdOf } from "../../../src/buffer/jetstream/stream-frame.ts";
import { PublishedNames, subjectOf } from "../../../src/buffer/jetstream/stream-names.ts";
import { Block, type BlockId } from "../../../src/core/block.ts";
import type { InputId } from "../../../src/core/point.ts";
import { eventually } from "../../support/eventually.ts";
import { natsWorld } from "../../support/nats-world.ts";
import { testRuntime } from "../../support/runtime.ts";
import { openReader } from "../../support/stream-place.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const millions = Number(process.argv[2] ?? 10);
const never = new AbortController().signal;
const t0 = Date.parse("2026-01-01T00:00:00Z") * 1_000;
const inputs = Array.from({ length: 1_000 }, (_, i) => `line1.machine2.t${String(i).padStart(3, "0")}` as InputId);
const pointsPerRequest = 1_500_000;

function secondsOf(from: number, count: number): Block {
  const times = Float64Array.from({ length: count }, (_, i) => t0 + (from + i) * 1e6);
  const value = (tag: number, i: number) => Math.round(1_000 * Math.sin((from + i + tag) / 50)) / 10;
  return Block.of(
    1 as BlockId,
    inputs.map((input, tag) => ({ input, times, values: times.map((_, i) => value(tag, i)) })),
  );
}

for (const seconds of [1, 60]) {
  await using world = await natsWorld({ maxSize: 4 * 2 ** 30 });
  using folder = temporaryFolder();
  const { stream, state } = world;
  await eventually(() => stream.create().then(() => true), 60_000);
  const names = new PublishedNames(state, "gw1", folder.file("names.json"));
  await names.open();
  const numbers = await names.numbersOf(inputs);
  const series = inputs.map((_, i) => i);
  const frames = Math.ceil((millions * 1e6) / (seconds * inputs.length));
  let [last, bytes, before] = [0, 0, 0];
  for (let number = 0; number < frames; number++) {
    const block = secondsOf(number * seconds, seconds);
    const header = { node: "gw1", epoch: "e", number, before, dictionary: names.dictionary, late: false, latest: t0 };
    const frame = encodeFrame(header, block, series, numbers);
    // Retries, because servers on a busy machine elect a new leader now and then.
    const publish = () => stream.publish(subjectOf(stream, "gw1"), frame, messageIdOf(header), last);
    last = (await eventually(publish, 60_000)) ?? 0;
    bytes += frame.length;
    before += block.points;
  }
  const reader = await openReader(stream, state, testRuntime());
  const cpu = process.cpuUsage();
  const began = performance.now();
  let points = 0;
  let requests = 0;
  for (;;) {
    const block = await reader.take("backlog", { wait: false, maxPoints: pointsPerRequest }, never);
    if (!block) break;
    points += block.points;
    requests++;
    await reader.settle([{ block: block.id, inputs: block.inputs }]);
  }
  const elapsed = (performance.now() - began) / 1_000;
  const { user, system } = process.cpuUsage(cpu);
  console.log(
    `${frames} frames of ${seconds * inputs.length} points, ${(bytes / before).toFixed(2)} bytes a point: ${points} points in ${elapsed.toFixed(1)} s, ${Math.round(points / elapsed / 1_000)}k/s, ${requests} blocks, ${((user + system) / 1e6).toFixed(1)} s of processor time`,
  );
  await reader[Symbol.asyncDispose]();
}
