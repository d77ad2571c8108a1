// From the buffer on disk to the local service: both sides interpret the interface in the same way.
import { join } from "node:path";
import { expect, test } from "vitest";
import { openDiskBuffer } from "../../src/buffer/disk/disk-buffer.ts";
import { bufferOptions } from "../../src/buffer/disk/options.ts";
import { type EpochMicros, epochMicros, type InputId } from "../../src/core/point.ts";
import { serviceOptions } from "../../src/upload/client/options.ts";
import { openCatalog } from "../../src/upload/signals/catalog.ts";
import { openUploader } from "../../src/upload/uploader.ts";
import { eventually } from "../support/eventually.ts";
import { testRuntime } from "../support/runtime.ts";
import { integration, password, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { fastClock } from "../support/uploading.ts";

test.for(["1.0", "1.1beta1", "1.1"])("points and metadata are in the service, at version %s", async (apiVersion) => {
  await using service = await testService();
  using folder = temporaryFolder();
  const runtime = testRuntime({ clock: fastClock(50) });
  const stop = new AbortController();
  await using buffer = await openDiskBuffer(
    { directory: join(folder.path, "buffer"), integration, config: bufferOptions.parse({}) },
    runtime,
    stop.signal,
  );
  await using catalog = await openCatalog(join(folder.path, "signals.db"), runtime, stop.signal);
  await using reader = await buffer.reader();
  const options = serviceOptions.parse({ url: service.url, apiVersion, integration, auth: { basic: { password } } });
  await using uploader = await openUploader(
    { options, reader, catalog, stateDir: join(folder.path, "upload"), agent: "tagferry/test" },
    runtime,
    stop.signal,
  );
  const input = "hall.temp" as InputId;
  const begun = Math.floor(runtime.clock.now() / 1e6) * 1e6 - 60e6;
  catalog.describe(input, { engUnit: "°C", name: "Temperature", type: "enum", enumValues: { "0": "öd" } });
  const points = Array.from({ length: 50 }, (_, i) => ({
    input,
    time: epochMicros(begun + i * 1e6 + i),
    value: i / 8,
  }));
  await buffer.append(points, { awaited: true }, stop.signal);
  const running = uploader.run(stop.signal);
  await eventually(() => buffer.stats().unsettledPoints === 0);
  await eventually(() => uploader.status().signals.saved === 1);
  stop.abort(new Error("the test is over"));
  await running;
  expect(uploader.status()).toMatchObject({ points: 50, rejected: 0, requests: { failed: 0 } });

  const selected = await service.call("admin.selectSignals", { integration, signals: { include: true } });
  const [[id, signal] = []] = Object.entries(selected.body?.result?.["signals"] ?? {});
  expect(signal).toMatchObject({ name: "Temperature", engUnit: "°C", type: "enum", enumValues: { "0": "öd" } });
  expect(catalog.entry(input)?.id).toBe(id);
  const item = { name: "Temperature", type: "numeric", sourceType: "measurement" };
  const published = await service.call("admin.publishSignals", { integration, itemsBySignal: { [id ?? ""]: item } });
  const itemId = published.body?.result?.["itemsBySignal"][id ?? ""].id;
  const read = await service.call("platform.selectItems", {
    items: { filter: { id: itemId } },
    data: { include: true, notBefore: iso(epochMicros(begun)), before: iso(epochMicros(begun + 60e6)) },
  });
  expect(read.body?.result?.["data"].series[itemId]).toEqual(points.map(({ value }) => value));
});

function iso(time: EpochMicros): string {
  return new Date(time / 1_000).toISOString();
}
