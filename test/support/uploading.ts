// An uploader at work between a buffer in memory and a scripted service, in time that runs faster where that is wanted.
import { join } from "node:path";
import type { Clock } from "../../src/core/runtime.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { type Catalog, openCatalog } from "../../src/upload/catalog.ts";
import { serviceOptions } from "../../src/upload/options.ts";
import { openUploader, type Uploader } from "../../src/upload/uploader.ts";
import { MemoryReader } from "./memory-reader.ts";
import { type TestRuntime, testRuntime } from "./runtime.ts";
import { temporaryFolder } from "./temporary-folder.ts";

export const uploadIntegration = "c8ktonqsahsmemfs7lv0";

/** Monotonic time and sleeping run `factor` times as fast as on the wall. */
export function fastClock(factor: number): Clock {
  const real = systemClock();
  return {
    now: () => real.now(),
    monotonic: () => real.monotonic() * factor,
    sleep: (ms, signal) => real.sleep(ms / factor, signal),
  };
}

export interface Uploading extends AsyncDisposable {
  readonly uploader: Uploader;
  readonly reader: MemoryReader;
  readonly catalog: Catalog;
  readonly runtime: TestRuntime;
  readonly folder: string;
  /** Stops it as SIGTERM would; resolves when it has ended. */
  stop(): Promise<void>;
}

export interface UploadingOptions {
  readonly url: string;
  readonly speed?: number;
  readonly reader?: MemoryReader;
  /** Kept when given. */
  readonly folder?: string;
  readonly service?: Record<string, unknown>;
}

export async function uploading({ url, speed = 20, reader, folder, service }: UploadingOptions): Promise<Uploading> {
  const temporary = folder === undefined ? temporaryFolder() : undefined;
  const path = folder ?? temporary?.path ?? "";
  const runtime = testRuntime({ clock: fastClock(speed) });
  const stop = new AbortController();
  const options = serviceOptions.parse({
    url,
    integration: uploadIntegration,
    auth: { basic: { password: "pass:word" } },
    ...service,
  });
  const buffer = reader ?? new MemoryReader();
  const catalog = await openCatalog(join(path, "signals.db"), runtime, stop.signal);
  const uploader = await openUploader(
    { options, reader: buffer, catalog, stateDir: join(path, "upload"), agent: "tagferry/test (gw1)" },
    runtime,
    stop.signal,
  );
  const running = uploader.run(stop.signal);
  // A failure is seen when the test stops it.
  running.catch(() => {});
  let ended: Promise<void> | undefined;
  const end = async () => {
    stop.abort(new Error("the test is over"));
    try {
      await running;
    } finally {
      await uploader[Symbol.asyncDispose]();
      await catalog[Symbol.asyncDispose]();
      temporary?.[Symbol.dispose]();
    }
  };
  const stopOnce = () => (ended ??= end());
  return { uploader, reader: buffer, catalog, runtime, folder: path, stop: stopOnce, [Symbol.asyncDispose]: stopOnce };
}
