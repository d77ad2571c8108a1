// Polled tags while a backlog drains, from the buffer on disk. The newest values are stored with the next request, and
// fresh points take very little of the capacity.
// Time advances only while the uploader waits, so that a slow machine does not matter.
import { expect, test } from "vitest";
import { openDiskBuffer } from "../../src/buffer/disk/disk-buffer.ts";
import { bufferOptions } from "../../src/buffer/disk/options.ts";
import { epochMicros, type InputId } from "../../src/core/point.ts";
import type { Clock } from "../../src/core/runtime.ts";
import type { Frame, Outcome } from "../../src/core/sink.ts";
import { serviceOptions } from "../../src/upload/client/options.ts";
import { openCatalog } from "../../src/upload/signals/catalog.ts";
import { openUploader } from "../../src/upload/uploader.ts";
import { formatTimestamp } from "../../src/wire/timestamp.ts";
import { testRuntime } from "../support/runtime.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { uploadIntegration } from "../support/uploading.ts";

interface Request {
  readonly params: {
    readonly data: { readonly times: string[]; readonly series: Readonly<Record<string, (number | null)[]>> };
  };
}

const start = Date.parse("2026-01-02T00:00:00Z") * 1_000;
const graceMs = 5_000;

/** A clock that runs while the uploader sleeps, and otherwise stands still. */
function sleepingClock(): Clock {
  let ms = 0;
  return {
    now: () => epochMicros(start + ms * 1_000),
    monotonic: () => ms,
    async sleep(howLong, signal) {
      if (howLong >= graceMs)
        return new Promise<void>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      ms += howLong;
      await new Promise((resolve) => setImmediate(resolve));
      signal.throwIfAborted();
    },
  };
}

test.for([
  { polled: 1_000, ticks: 60, kib: 64 },
  { polled: 2_500, ticks: 36, kib: 128 },
])(
  "$polled polled tags are stored with the next request of $kib KiB while a backlog drains",
  async ({ polled, ticks, kib }) => {
    const maxRequest = kib * 1_024;
    const tags = Array.from({ length: polled }, (_, i) => `line1.t${i}` as InputId);
    using folder = temporaryFolder();
    const stop = new AbortController();
    await using buffer = await openDiskBuffer(
      {
        directory: folder.file("buffer"),
        integration: uploadIntegration,
        config: bufferOptions.parse({ reserveFreeDisk: "1MiB" }),
      },
      testRuntime(),
      stop.signal,
    );
    const append = (time: number) =>
      buffer.append(
        tags.map((input, tag) => ({ input, time: epochMicros(time), value: 100 + (tag % 100) / 10 })),
        { awaited: true },
        stop.signal,
      );
    const yesterday = start - 86_400e6;
    await Promise.all(Array.from({ length: ticks }, (_, tick) => append(yesterday + tick * 1e6)));
    await using reader = await buffer.reader();
    await using catalog = await openCatalog(folder.file("signals.db"), testRuntime(), stop.signal);

    /** For each fresh poll: the request before it, and the requests in which its points were stored. */
    const fresh: { readonly text: string; readonly after: number; readonly stored: number[] }[] = [];
    const clock = sleepingClock();
    let requests = 0;
    let bytes = 0;
    let old = 0;
    let done = 0;
    let nulls = 0;
    const sink = {
      async send({ body }: Frame): Promise<Outcome> {
        requests++;
        bytes += body.length;
        // the uploader wrote it
        const { times, series } = (JSON.parse(Buffer.from(body).toString("utf8")) as Request).params.data;
        const rows = times.map((text) => fresh.find((poll) => poll.text === text));
        for (const values of Object.values(series)) {
          for (const [i, value] of values.entries()) {
            if (value === null) {
              nulls++;
              continue;
            }
            const poll = rows[i];
            if (poll) poll.stored.push(requests);
            else old++;
            done++;
          }
        }
        if (old < ticks * tags.length) {
          const time = clock.now();
          fresh.push({ text: formatTimestamp(time), after: requests, stored: [] });
          await append(time);
        } else if (done === (ticks + fresh.length) * tags.length) stop.abort(new Error("all has arrived"));
        return { kind: "accepted", signals: new Map() };
      },
      async [Symbol.asyncDispose]() {},
    };
    const options = serviceOptions.parse({
      url: "http://127.0.0.1:1/v1",
      integration: uploadIntegration,
      auth: { basic: { password: "x" } },
      limits: { maxRequest: `${kib}KiB` },
    });
    await using uploader = await openUploader(
      { options, reader, catalog, stateDir: folder.file("upload"), agent: "tagferry/test", sink },
      testRuntime({ clock }),
      stop.signal,
    );
    await uploader.run(stop.signal);

    expect(old).toBe(ticks * tags.length);
    expect(fresh.map(({ stored }) => stored.length)).toEqual(fresh.map(() => tags.length));
    expect(fresh.length).toBeGreaterThan(4);
    // Usually the next request. The last requests of the backlog no longer contain all series.
    const late = fresh.map(({ after, stored }) => Math.max(...stored) - after);
    expect(Math.max(...late)).toBeLessThanOrEqual(3);
    expect(late.filter((by) => by > 1).length).toBeLessThanOrEqual(3);
    // Requests are full of points and contain few nulls, although they mix old and fresh ones.
    expect(nulls).toBeLessThan(done / 20);
    expect(requests).toBeLessThanOrEqual(Math.ceil(bytes / maxRequest) + 3);
  },
);
