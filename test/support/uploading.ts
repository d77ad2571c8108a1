// An uploader between a buffer in memory and a scripted service, in time that can run faster.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { join } from "node:path";
import type { Clock } from "../../src/core/runtime.ts";
import { systemClock } from "../../src/lib/time/clock.ts";
import type { Resolve } from "../../src/upload/client/connections.ts";
import { serviceOptions } from "../../src/upload/client/options.ts";
import { type Catalog, openCatalog } from "../../src/upload/signals/catalog.ts";
import { openUploader, type Uploader } from "../../src/upload/uploader.ts";
import { MemoryReader } from "./memory-reader.ts";
import { type TestRuntime, testRuntime } from "./runtime.ts";
import { temporaryFolder } from "./temporary-folder.ts";

export const uploadIntegration = "c8ktonqsahsmemfs7lv0";

/**
 * Monotonic time and sleeps run `factor` times as fast as real time. Time stands still within a turn of the event loop:
 * what
 * begins in one turn has one start time, however slow the machine is.
 */
export function fastClock(factor: number): Clock {
  const real = systemClock();
  let turn: number | undefined;
  return {
    now: () => real.now(),
    monotonic: () => {
      if (turn === undefined) {
        turn = real.monotonic() * factor;
        setImmediate(() => {
          turn = undefined;
        });
      }
      return turn;
    },
    sleep: (ms, signal) => real.sleep(ms / factor, signal),
  };
}

/** A request as it left the agent. */
export interface Departure {
  /** The agent's monotonic time in milliseconds. */
  readonly at: number;
  readonly bytes: number;
}

/**
 * Records when requests to `url` begin, in the agent's time. Unlike arrivals, this does not depend on the machine's
 * load.
 */
function departuresTo(url: string, clock: Clock): { readonly seen: Departure[]; readonly end: () => void } {
  const channel = "undici:request:create";
  const { origin } = new URL(url);
  const seen: Departure[] = [];
  const note = (message: unknown) => {
    const { request } = message as { request: { origin: string; body: Uint8Array } }; // as undici documents the channel
    if (request.origin === origin) seen.push({ at: clock.monotonic(), bytes: request.body.length });
  };
  subscribe(channel, note);
  return { seen, end: () => void unsubscribe(channel, note) };
}

/** The shortest interval between two departures in milliseconds. */
export function closest(departures: readonly Departure[]): number {
  return Math.min(...departures.slice(1).map(({ at }, i) => at - departures[i]!.at));
}

export interface Uploading extends AsyncDisposable {
  readonly uploader: Uploader;
  readonly reader: MemoryReader;
  readonly catalog: Catalog;
  readonly runtime: TestRuntime;
  readonly folder: string;
  /** Of all methods, in order. */
  readonly departures: readonly Departure[];
  /** Stops it as SIGTERM would. Resolves when it has ended. */
  stop(): Promise<void>;
}

export interface UploadingOptions {
  readonly url: string;
  readonly speed?: number;
  readonly reader?: MemoryReader;
  /** If given, it is kept. */
  readonly folder?: string;
  readonly service?: Record<string, unknown>;
  /** If given, the uploader watches its signals at the service. */
  readonly configured?: (input: string) => boolean;
  /** Resolves host names. */
  readonly resolve?: Resolve;
}

export async function uploading(parts: UploadingOptions): Promise<Uploading> {
  const { url, speed = 20, reader, folder, service, configured, resolve } = parts;
  const temporary = folder === undefined ? temporaryFolder() : undefined;
  const path = folder ?? temporary?.path ?? "";
  const runtime = testRuntime({ clock: fastClock(speed) });
  const departures = departuresTo(url, runtime.clock);
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
    {
      options,
      reader: buffer,
      catalog,
      stateDir: join(path, "upload"),
      agent: "tagferry/test (gw1)",
      ...(configured && { configured }),
      ...(resolve && { resolve }),
    },
    runtime,
    stop.signal,
  );
  const running = uploader.run(stop.signal);
  // `stop` reports the failure.
  running.catch(() => {});
  let ended: Promise<void> | undefined;
  const end = async () => {
    stop.abort(new Error("the test is over"));
    try {
      await running;
    } finally {
      await uploader[Symbol.asyncDispose]();
      await catalog[Symbol.asyncDispose]();
      departures.end();
      temporary?.[Symbol.dispose]();
    }
  };
  const stopOnce = () => (ended ??= end());
  return {
    uploader,
    reader: buffer,
    catalog,
    runtime,
    folder: path,
    departures: departures.seen,
    stop: stopOnce,
    [Symbol.asyncDispose]: stopOnce,
  };
}
