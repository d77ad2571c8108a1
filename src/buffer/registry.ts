// Opens the buffer of a data directory. The only kind is the disk buffer.
import type { PointBuffer } from "../core/buffer.ts";
import type { Runtime } from "../core/runtime.ts";
import { type DiskBufferOptions, openDiskBuffer } from "./disk/disk-buffer.ts";
import { type LogWorker, openWorkerPort, startLogWorker } from "./disk/worker/worker-port.ts";

export type OpenBufferOptions = Omit<DiskBufferOptions, "segmentBytes">;

/**
 * Resolves when the buffer can be appended to and read; the time does not depend on its content. Rejects with
 * `DATA_DIR_IN_USE`, `DATA_DIR_UNWRITABLE`, `BUFFER_NEWER`, `BUFFER_OLDER`, or with `signal.reason`. Damaged data is
 * quarantined and does not prevent opening. `thread`: a log thread started before.
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
    // After a failure, a new thread is started.
    waiting = undefined;
    return openWorkerPort(start, stop, first);
  });
}
