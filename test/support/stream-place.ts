// A buffer whose points pass a local buffer, the forwarder and the stream, to the reader of the stream.

import { openDiskBuffer } from "../../src/buffer/disk/disk-buffer.ts";
import { bufferOptions } from "../../src/buffer/disk/options.ts";
import { Forwarder, type ForwarderOptions } from "../../src/buffer/jetstream/forwarder.ts";
import { openStreamReader } from "../../src/buffer/jetstream/stream-reader.ts";
import type { KeyBucket, PointStream } from "../../src/cluster/connection/jetstream.ts";
import type { BufferReader, PointBuffer } from "../../src/core/buffer.ts";
import { systemClock } from "../../src/lib/time/clock.ts";
import { inProcess } from "./disk-store.ts";
import { eventually } from "./eventually.ts";
import { MemoryDisk } from "./memory-disk.ts";
import { type TestRuntime, testRuntime } from "./runtime.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const never = new AbortController().signal;
const config = bufferOptions.parse({ reserveFreeDisk: "0", sync: "20ms", ackDelay: "1ms" });

/** A runtime whose time runs fifty times as fast, except for the timestamps of points. */
export function hastyRuntime(): TestRuntime {
  const clock = systemClock();
  return testRuntime({
    clock: {
      now: () => clock.now(),
      monotonic: () => clock.monotonic() * 50,
      sleep: (ms, signal) => clock.sleep(ms / 50, signal),
    },
  });
}

export interface Collector extends AsyncDisposable {
  readonly local: PointBuffer;
  readonly forwarder: Forwarder;
  readonly runtime: TestRuntime;
  /** The error with which the forwarder has ended. Undefined: it runs. */
  readonly failure: Error | undefined;
  /** Resolves once everything appended so far is in the stream. */
  forwarded(): Promise<void>;
}

/**
 * A collector: a local buffer on a disk that is kept across restarts, and its forwarder. `directory` is that of the
 * retained tail.
 */
export async function openCollector(
  options: Omit<ForwarderOptions, "buffer" | "bootEpoch">,
  disk = new MemoryDisk(),
): Promise<Collector> {
  const runtime = hastyRuntime();
  const where = { directory: "/data/buffer", integration: "plant", config, segmentBytes: 2 ** 20 };
  const local = await openDiskBuffer(where, testRuntime(), never, inProcess(disk));
  const forwarder = new Forwarder({ ...options, buffer: local, bootEpoch: "boot" }, runtime);
  const stop = new AbortController();
  let failure: Error | undefined;
  const running = forwarder.run(stop.signal).catch((error: unknown) => {
    failure = error as Error; // the error of the disk or of the signal
  });
  return {
    local,
    forwarder,
    runtime,
    get failure() {
      return failure;
    },
    async forwarded() {
      await eventually(() => {
        if (failure) throw failure;
        return local.stats().unsettledPoints === 0;
      });
    },
    async [Symbol.asyncDispose]() {
      stop.abort(new Error("stop"));
      await running;
      await local[Symbol.asyncDispose]();
    },
  };
}

let generation = 0;

/** Opens a reader for a new term. */
export function openReader(stream: PointStream, state: KeyBucket, runtime = hastyRuntime()): Promise<BufferReader> {
  return openStreamReader({ stream, state, generation: ++generation }, runtime, never);
}

/** One collector and one reader, across restarts of both. */
export function streamPlace(stream: PointStream, state: KeyBucket) {
  const home = temporaryFolder();
  const disk = new MemoryDisk();
  return {
    async open() {
      const collector = await openCollector({ stream, state, node: "gw 1", directory: home.path }, disk);
      return {
        async append(...args: Parameters<PointBuffer["append"]>) {
          await collector.local.append(...args);
          await collector.forwarded();
        },
        reader: () => openReader(stream, state),
        [Symbol.asyncDispose]: () => collector[Symbol.asyncDispose](),
      };
    },
    [Symbol.asyncDispose]: async () => home[Symbol.dispose](),
  };
}
