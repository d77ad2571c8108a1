// Opens the buffer of a data directory. There is one kind, on disk; another one would be chosen here.
import type { PointBuffer } from "../core/buffer.ts";
import type { Runtime } from "../core/runtime.ts";
import { openDiskBuffer } from "./disk/disk-buffer.ts";
import type { BufferOptions } from "./disk/options.ts";
import { type LogWorker, openWorkerPort, startLogWorker } from "./disk/worker/worker-port.ts";

export interface OpenBufferOptions {
  /** Folder of the buffer alone; made with mode 0700 where it does not exist, its parents too. */
  readonly directory: string;
  /** Integration ID that points appended from now on belong to. */
  readonly integration: string;
  readonly config: BufferOptions;
  /** The largest request that points go out in: records are made no larger where that is possible. Undefined: it is large. */
  readonly requestBytes?: number | undefined;
}

/**
 * Resolves when the buffer can be appended to and read, in a time that does not depend on how much it holds. Rejects
 * with `DATA_DIR_IN_USE`, `DATA_DIR_UNWRITABLE`, `BUFFER_NEWER`, `BUFFER_OLDER`, or with `signal.reason`. What is damaged is set aside
 * and never keeps it from opening. `thread` is one that was started before.
 */
export function openBuffer(
  options: OpenBufferOptions,
  runtime: Runtime,
  signal: AbortSignal,
  thread?: LogWorker,
): Promise<PointBuffer> {
  let waiting = thread;
  return openDiskBuffer(options, runtime, signal, (start, stop) => {
    const first = waiting ?? startLogWorker();
    // One that failed is followed by a new one.
    waiting = undefined;
    return openWorkerPort(start, stop, first);
  });
}
