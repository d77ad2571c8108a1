// How often the prefetcher reads the buffer per delivered point. It counts calls, so that the result is the same on
// every machine. More and smaller pieces cost buffer, window and packer for each series of each piece.
import { expect, test } from "vitest";
import { Block, type BlockId } from "../../../src/core/block.ts";
import type { BufferReader, Lane, Settlement, TakeOptions } from "../../../src/core/buffer.ts";
import { epochMicros, type InputId } from "../../../src/core/point.ts";
import type { Clock } from "../../../src/core/runtime.ts";
import type { Frame, Outcome, Sink } from "../../../src/core/sink.ts";
import { serviceOptions } from "../../../src/upload/client/options.ts";
import { openCatalog } from "../../../src/upload/signals/catalog.ts";
import { openUploader } from "../../../src/upload/uploader.ts";
import { testRuntime } from "../../support/runtime.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const start = Date.parse("2026-01-02T00:00:00Z") * 1_000;
const tags = Array.from({ length: 1_000 }, (_, tag) => `line1.t${tag}` as InputId);
/** A sync of the buffer stores the points that arrived in the meantime as one record. */
const syncMs = 10;

/** Yields what a buffer on disk would: whole records, as many as fit, and at least one. */
class Steady implements BufferReader {
  /** For each record, whether it is leased or settled. */
  readonly #gone: boolean[] = [];
  readonly #out = new Map<BlockId, readonly number[]>();
  readonly #perSecond: number;
  #nextId = 1;
  takes = 0;
  series = 0;

  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  arrive(untilMs: number): void {
    while (this.#gone.length < Math.floor(untilMs / syncMs)) this.#gone.push(false);
  }

  async take(lane: Lane, { maxPoints }: TakeOptions): Promise<Block | undefined> {
    this.takes++;
    const perRecord = (this.#perSecond * syncMs) / 1_000;
    const free = [...this.#gone.keys()].filter((record) => !this.#gone[record]);
    const most = Math.max(1, Math.floor(maxPoints / perRecord));
    const records = lane === "backlog" ? free.slice(0, most) : free.slice(-most);
    if (records.length === 0) return undefined;
    for (const record of records) this.#gone[record] = true;
    const id = this.#nextId++ as BlockId; // a BlockId as the buffer assigns it
    this.#out.set(id, records);
    const times = new Map<InputId, number[]>();
    for (const record of records) {
      for (let i = record * perRecord; i < (record + 1) * perRecord; i++) {
        const tag = tags[i % tags.length]!;
        const of = times.get(tag) ?? [];
        times.set(tag, of);
        // No two points have the same time.
        of.push(start + i * (1e6 / this.#perSecond));
      }
    }
    this.series += times.size;
    const series = Array.from(times, ([input, of]) => ({
      input,
      times: Float64Array.from(of),
      values: Float64Array.from(of, (_, i) => i),
    }));
    return Block.of(id, series);
  }

  async settle(done: readonly Settlement[]): Promise<void> {
    for (const { block } of done) this.#out.delete(block);
  }

  release(blocks: readonly BlockId[]): void {
    for (const id of blocks) for (const record of this.#out.get(id) ?? []) this.#gone[record] = false;
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

class Counter implements Sink {
  requests = 0;
  points = 0;

  async send({ points }: Frame): Promise<Outcome> {
    this.requests++;
    this.points += points;
    return { kind: "accepted", signals: new Map() };
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

test.for([
  { perSecond: 10_000, maxRequest: "8MiB", seriesPerPoint: 0.35 },
  { perSecond: 1_000, maxRequest: "1MiB", seriesPerPoint: 1.5 },
])(
  "$perSecond unrelated points a second, in requests of $maxRequest, are read in few and large pieces",
  async ({ perSecond, maxRequest, seriesPerPoint }) => {
    using folder = temporaryFolder();
    const stop = new AbortController();
    const reader = new Steady(perSecond);
    const sink = new Counter();
    let ms = syncMs;
    reader.arrive(ms);
    const clock: Clock = {
      now: () => epochMicros(start + ms * 1_000),
      monotonic: () => ms,
      async sleep(howLong) {
        ms += howLong;
        reader.arrive(ms);
        if (ms >= 15_000) stop.abort(new Error("enough was delivered"));
        await new Promise((resolve) => setImmediate(resolve));
        stop.signal.throwIfAborted();
      },
    };
    await using catalog = await openCatalog(folder.file("signals.db"), testRuntime(), stop.signal);
    const options = serviceOptions.parse({
      url: "http://127.0.0.1:1/v1",
      integration: "c8ktonqsahsmemfs7lv0",
      auth: { basic: { password: "x" } },
      limits: { maxRequest },
    });
    await using uploader = await openUploader(
      { options, reader, catalog, stateDir: folder.file("upload"), agent: "tagferry/test", sink },
      testRuntime({ clock }),
      stop.signal,
    );
    await uploader.run(stop.signal);
    // Each request reads twice, each time until nothing is found. Nothing is read as backlog.
    expect(reader.takes / sink.requests).toBeLessThanOrEqual(8);
    expect(reader.series / sink.points).toBeLessThanOrEqual(seriesPerPoint);
    // All points are delivered, except those of the last seconds.
    expect(sink.points).toBeGreaterThan(9 * perSecond);
  },
);
