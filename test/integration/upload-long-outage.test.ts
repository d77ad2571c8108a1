// A long outage of the service at 1,000 points a second. Afterwards the service gets every point.
import { expect, test } from "vitest";
import { openDiskBuffer } from "../../src/buffer/disk/disk-buffer.ts";
import { bufferOptions } from "../../src/buffer/disk/options.ts";
import { epochMicros, type InputId } from "../../src/core/point.ts";
import type { Frame, Outcome, Sink } from "../../src/core/sink.ts";
import { serviceOptions } from "../../src/upload/client/options.ts";
import { openCatalog } from "../../src/upload/signals/catalog.ts";
import { openUploader } from "../../src/upload/uploader.ts";
import { parseTimestamp } from "../../src/wire/timestamp.ts";
import { ManualClock, testRuntime } from "../support/runtime.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { uploadIntegration } from "../support/uploading.ts";

/** Of simulated time. TAGFERRY_OUTAGE_HOURS=72 takes an hour and 100 MB of disk. */
const hours = Number(process.env.TAGFERRY_OUTAGE_HOURS ?? 0.1);
const tags = Array.from({ length: 1_000 }, (_, i) => `line1.machine2.t${i}` as InputId);
const ticks = Math.round(hours * 3_600);
const start = Date.parse("2026-01-01T00:00:00Z") * 1_000;
/** The uploader must have tried at least this often before the service comes back. */
const leastTries = 5;
const valueAt = (tag: number, tick: number) => ((tag * 7 + tick) % 1_000) / 10;

/** Stores one bit for each point that it has received. */
class BitService implements Sink {
  readonly #clock: ManualClock;
  readonly #bits = tags.map(() => new Uint8Array(Math.ceil(ticks / 8)));
  readonly #tags = new Map<string, number>(tags.map((input, tag) => [input, tag]));
  away = true;
  points = 0;
  wrong = 0;
  readonly starts: number[] = [];
  largest = 0;

  constructor(clock: ManualClock) {
    this.#clock = clock;
  }

  async send({ body }: Frame): Promise<Outcome> {
    this.starts.push(this.#clock.monotonic());
    this.largest = Math.max(this.largest, body.length);
    if (this.away) return { kind: "unavailable", cause: new Error("nobody there") };
    const request = JSON.parse(Buffer.from(body).toString("utf8")) as Request; // the uploader wrote it
    const { times, series } = request.params.data;
    const rows = times.map((text) => ((parseTimestamp(text) ?? Number.NaN) - start) / 1e6);
    for (const [input, values] of Object.entries(series)) {
      const tag = this.#tags.get(input) ?? -1;
      for (const [i, value] of values.entries()) if (value !== null) this.#keep(tag, rows[i]!, value);
    }
    return { kind: "accepted", signals: new Map() };
  }

  #keep(tag: number, tick: number, value: number): void {
    const bits = this.#bits[tag];
    const bit = 1 << (tick % 8);
    const at = Math.floor(tick / 8);
    if (!bits || value !== valueAt(tag, tick) || (bits[at]! & bit) !== 0) this.wrong++;
    else {
      bits[at]! |= bit;
      this.points++;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

interface Request {
  readonly params: {
    readonly data: { readonly times: string[]; readonly series: Readonly<Record<string, (number | null)[]>> };
  };
}

test(`after ${hours} h without the service it gets all ${ticks * 1_000} points, each once`, {
  timeout: 6 * 3_600_000,
}, async () => {
  using folder = temporaryFolder();
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  const stop = new AbortController();
  /** Advances simulated time until `promise` settles. */
  const until = async <T>(promise: PromiseLike<T>): Promise<T> => {
    let waiting = true;
    const settled = Promise.resolve(promise).finally(() => {
      waiting = false;
    });
    settled.catch(() => {});
    while (waiting) await clock.advance(20);
    return await settled;
  };
  const buffer = await openDiskBuffer(
    {
      directory: folder.file("buffer"),
      integration: uploadIntegration,
      config: bufferOptions.parse({ maxSize: "16GiB", reserveFreeDisk: "1MiB" }),
    },
    runtime,
    stop.signal,
  );
  const reader = await buffer.reader();
  const catalog = await openCatalog(folder.file("signals.db"), runtime, stop.signal);
  const service = new BitService(clock);
  const options = serviceOptions.parse({
    url: "http://127.0.0.1:1/v1",
    integration: uploadIntegration,
    auth: { basic: { password: "x" } },
  });
  const uploader = await openUploader(
    { options, reader, catalog, stateDir: folder.file("upload"), agent: "tagferry/test", sink: service },
    runtime,
    stop.signal,
  );
  const running = uploader.run(stop.signal);
  for (let tick = 0; tick < ticks; tick += 60) {
    const points = Array.from({ length: Math.min(60, ticks - tick) }, (_, i) =>
      tags.map((input, tag) => ({
        input,
        time: epochMicros(start + (tick + i) * 1e6),
        value: valueAt(tag, tick + i),
      })),
    ).flat();
    const behindMs = tick * 1_000 - clock.monotonic();
    if (behindMs > 0) await clock.advance(behindMs);
    await until(buffer.append(points, { awaited: false }, stop.signal));
  }
  // Simulated time does not wait for the buffer's threads, so the number of attempts by now depends on the machine.
  while (service.starts.length < leastTries) await clock.advance(500);
  expect(uploader.status().state).toBe("unreachable");
  expect(service.points).toBe(0);
  const outageRequests = service.starts.length;
  service.away = false;
  while (buffer.stats().unsettledPoints > 0) await clock.advance(500);
  stop.abort(new Error("the drill is over"));
  await until(running);
  await until(uploader[Symbol.asyncDispose]());
  await until(catalog[Symbol.asyncDispose]());
  await until(reader[Symbol.asyncDispose]());
  await until(buffer[Symbol.asyncDispose]());

  expect({ points: service.points, wrong: service.wrong }).toEqual({ points: ticks * 1_000, wrong: 0 });
  expect(buffer.stats().losses).toEqual([]);
  const gaps = service.starts.slice(1).map((at, i) => at - service.starts[i]!);
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(1_000);
  expect(service.largest).toBeLessThanOrEqual(8 * 2 ** 20);
  // Requests from the backlog carry a million points and more. Requests that the newest points lead are small and few.
  expect(service.starts.length - outageRequests).toBeLessThan(20 + (ticks * 1_000) / 1e6);
});
