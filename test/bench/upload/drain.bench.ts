// Drains a day of 1,000 polled tags to a sink that counts, while fresh points arrive: points per request, how late the
// fresh ones are, memory. The request spacing runs on a clock that is as fast as the machine.
// Run, as the agent runs: node --max-semi-space-size=4 --heap-growing-percent=40 test/bench/upload/drain.bench.ts
// [hours]
import { Block, type BlockId } from "../../../src/core/block.ts";
import type { BufferReader, Lane, Settlement, TakeOptions } from "../../../src/core/buffer.ts";
import type { InputId } from "../../../src/core/point.ts";
import type { Frame, Outcome, Sink } from "../../../src/core/sink.ts";
import { serviceOptions } from "../../../src/upload/client/options.ts";
import { openCatalog } from "../../../src/upload/signals/catalog.ts";
import { openUploader } from "../../../src/upload/uploader.ts";
import { testRuntime } from "../../support/runtime.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const hours = Number(process.argv[2] ?? 24);
const ticks = hours * 3_600;
const tags = Array.from({ length: 1_000 }, (_, i) => `line1.machine2.t${String(i).padStart(3, "0")}` as InputId);
const start = Date.parse("2026-01-01T00:00:00Z") * 1_000;
const ticksPerBlock = 100;

/** Time advances only during a sleep, so that a second of spacing costs nothing. */
let monotonic = 0;
const clock = {
  now: () => (start + monotonic * 1_000) as ReturnType<ReturnType<typeof testRuntime>["clock"]["now"]>,
  monotonic: () => monotonic,
  async sleep(ms: number, signal: AbortSignal) {
    if (ms >= graceMs)
      return new Promise<void>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    monotonic += ms;
    await new Promise((resolve) => setImmediate(resolve));
  },
};
const graceMs = 5_000;

function block(id: number, tick: number, count: number): Block {
  const times = Float64Array.from({ length: count }, (_, i) => start + (tick + i) * 1e6);
  const series = tags.map((input, tag) => {
    const decimals = 10 ** (1 + (tag % 3));
    return {
      input,
      times,
      values: times.map((_, i) => Math.round((((tick + i) * 37 + tag * 101) % 9_000) * decimals) / decimals / 100),
    };
  });
  return Block.of(id as BlockId, series);
}

class Day implements BufferReader {
  #next = 0;
  #live = 0;
  readonly liveTaken = new Map<number, number>();
  settledBlocks = 0;
  lagMs: number[] = [];

  async take(lane: Lane, _options: TakeOptions): Promise<Block | undefined> {
    if (lane === "live") {
      const tick = Math.floor(monotonic / 1_000);
      if (tick <= this.#live) return undefined;
      this.#live = tick;
      this.liveTaken.set(1e6 + tick, tick * 1_000);
      return block(1e6 + tick, 1e7 + tick, 1);
    }
    if (this.#next >= ticks) return undefined;
    const tick = this.#next;
    this.#next += ticksPerBlock;
    return block(tick, tick, ticksPerBlock);
  }

  async settle(done: readonly Settlement[]): Promise<void> {
    for (const { block: id } of done) {
      const taken = this.liveTaken.get(id);
      if (taken === undefined) this.settledBlocks++;
      else this.lagMs.push(monotonic - taken);
    }
    if (this.settledBlocks * ticksPerBlock >= ticks) stop.abort(new Error("drained"));
  }

  release(): void {}
  async [Symbol.asyncDispose](): Promise<void> {}
}

class Counter implements Sink {
  requests = 0;
  points = 0;
  bytes = 0;
  async send(frame: Frame): Promise<Outcome> {
    this.requests++;
    this.points += frame.points;
    this.bytes += frame.body.length;
    return { kind: "accepted", signals: new Map() };
  }
  async [Symbol.asyncDispose](): Promise<void> {}
}

const stop = new AbortController();
using folder = temporaryFolder();
const runtime = testRuntime({ clock });
const reader = new Day();
const sink = new Counter();
const options = serviceOptions.parse({
  url: "http://127.0.0.1:1/v1",
  integration: "c8ktonqsahsmemfs7lv0",
  auth: { basic: { password: "x" } },
});
await using catalog = await openCatalog(folder.file("signals.db"), runtime, stop.signal);
await using uploader = await openUploader(
  { options, reader, catalog, stateDir: folder.path, agent: "bench", sink },
  runtime,
  stop.signal,
);
const begun = performance.now();
let peak = 0;
const sampling = setInterval(() => {
  peak = Math.max(peak, process.memoryUsage.rss());
}, 20);
await uploader.run(stop.signal);
clearInterval(sampling);
const lags = reader.lagMs.toSorted((a, b) => a - b);
const perPoint = sink.bytes / sink.points;
console.log(
  `${sink.points} points in ${sink.requests} requests: ${Math.round(sink.points / sink.requests)} each, ` +
    `${((100 * sink.points) / ((8 * 2 ** 20 * sink.requests) / perPoint)).toFixed(1)} % of what the bytes allow at ${perPoint.toFixed(2)} bytes a point; ` +
    `${Math.round(monotonic / 1_000)} s of spacing, ${(monotonic / 1_000 / sink.requests).toFixed(3)} s a request; ` +
    `fresh points late by ${Math.round(lags[lags.length >> 1] ?? 0)} ms (median), ${Math.round(lags.at(-1) ?? 0)} ms (most); ` +
    `${((performance.now() - begun) / sink.requests).toFixed(0)} ms of work a request; peak RSS ${Math.round(peak / 1e6)} MB`,
);
