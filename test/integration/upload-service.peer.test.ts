// In real time: the spacing of requests as the local service measures it.
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { expect, test } from "vitest";
import { openDiskBuffer } from "../../src/buffer/disk/disk-buffer.ts";
import { bufferOptions } from "../../src/buffer/disk/options.ts";
import { epochMicros, type InputId } from "../../src/core/point.ts";
import { serviceOptions } from "../../src/upload/client/options.ts";
import { openCatalog } from "../../src/upload/signals/catalog.ts";
import { openUploader } from "../../src/upload/uploader.ts";
import { eventually } from "../support/eventually.ts";
import { testRuntime } from "../support/runtime.ts";
import { integration, password, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

test("the service never sees two inserts within a second, whatever their size", async () => {
  await using service = await testService({ throttle: "reject" });
  using folder = temporaryFolder();
  const runtime = testRuntime();
  const stop = new AbortController();
  await using buffer = await openDiskBuffer(
    { directory: join(folder.path, "buffer"), integration, config: bufferOptions.parse({}) },
    runtime,
    stop.signal,
  );
  await using catalog = await openCatalog(join(folder.path, "signals.db"), runtime, stop.signal);
  await using reader = await buffer.reader();
  const options = serviceOptions.parse({ url: service.url, integration, auth: { basic: { password } } });
  await using uploader = await openUploader(
    { options, reader, catalog, stateDir: join(folder.path, "upload"), agent: "tagferry/test" },
    runtime,
    stop.signal,
  );
  const begun = Math.floor(runtime.clock.now() / 1e6) * 1e6 - 3_600e6;
  const standstill = monitorEventLoopDelay({ resolution: 10 });
  standstill.enable();
  const running = uploader.run(stop.signal);
  // A large request, then small ones immediately after it.
  for (const size of [200_000, 1, 2]) {
    const requests = uploader.status().requests.accepted;
    const points = Array.from({ length: size }, (_, i) => ({
      input: `tag${i % 100}` as InputId,
      time: epochMicros(begun + Math.floor(i / 100) * 1e6 + size),
      value: i,
    }));
    await buffer.append(points, { awaited: true }, stop.signal);
    await eventually(() => uploader.status().requests.accepted > requests);
  }
  await eventually(() => buffer.stats().unsettledPoints === 0);
  stop.abort(new Error("the test is over"));
  await running;
  standstill.disable();
  expect(uploader.status()).toMatchObject({ points: 200_003, rejected: 0 });
  // On a machine that stalls, a request may arrive late. The spacing allows for half a second; a longer stall proves
  // nothing.
  if (standstill.max / 1e6 > 400) return;
  expect(uploader.status().requests.failed).toBe(0);
  expect(service.counters().get("integration.insert")).toMatchObject({ maxStartsPerSecond: 1 });
});
