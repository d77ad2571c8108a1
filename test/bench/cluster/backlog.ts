// A backlog in the stream, as one agent publishes it that nobody delivers for: 1,000 tags, each with a value a second.
import { encodeFrame, messageIdOf } from "../../../src/buffer/jetstream/stream-frame.ts";
import { PublishedNames, subjectOf } from "../../../src/buffer/jetstream/stream-names.ts";
import { Block, type BlockId } from "../../../src/core/block.ts";
import type { InputId } from "../../../src/core/point.ts";
import { eventually } from "../../support/eventually.ts";
import type { NatsWorld } from "../../support/nats-world.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

export interface Backlog {
  readonly frames: number;
  readonly points: number;
  readonly bytes: number;
}

const t0 = Date.parse("2026-01-01T00:00:00Z") * 1_000;
const inputs = Array.from({ length: 1_000 }, (_, i) => `line1.machine2.t${String(i).padStart(3, "0")}` as InputId);

/** Publishes at least `points` in frames of `seconds`. Resolves when the servers have acknowledged the last one. */
export async function publishBacklog(
  { stream, state }: Pick<NatsWorld, "stream" | "state">,
  points: number,
  seconds: number,
): Promise<Backlog> {
  using folder = temporaryFolder();
  await eventually(() => stream.create().then(() => true), 60_000);
  const names = new PublishedNames(state, "gw1", folder.file("names.json"));
  await names.open();
  const numbers = await names.numbersOf(inputs);
  const series = inputs.map((_, i) => i);
  const frames = Math.ceil(points / (seconds * inputs.length));
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
  return { frames, points: before, bytes };
}

function secondsOf(from: number, count: number): Block {
  const times = Float64Array.from({ length: count }, (_, i) => t0 + (from + i) * 1e6);
  const value = (tag: number, i: number) => Math.round(1_000 * Math.sin((from + i + tag) / 50)) / 10;
  return Block.of(
    1 as BlockId,
    inputs.map((input, tag) => ({ input, times, values: times.map((_, i) => value(tag, i)) })),
  );
}
