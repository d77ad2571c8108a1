// Starts the log thread. Apart from what talks to it, so that the program can have it start beside all else that it loads:
// a thread takes longer to start than a configuration to be read.
import { Worker } from "node:worker_threads";
import { AgentError } from "../../../core/errors.ts";
import type { StoreOpened } from "./protocol.ts";

/** Compiled or bundled, the file lies beside this one under the same name. */
const workerFile = new URL(import.meta.url.endsWith(".ts") ? "./disk-worker.ts" : "./disk-worker.js", import.meta.url);
/** Columns live outside this heap; what is in it are indices and names. */
const resourceLimits = { maxOldGenerationSizeMb: 96, maxYoungGenerationSizeMb: 4, stackSizeMb: 1 };

/** A thread that waits to be told what to open. */
export interface LogWorker {
  readonly worker: Worker;
  /** What came of that. Rejects when the thread fails before. */
  readonly opened: Promise<StoreOpened>;
}

/** `file` is another thread's code, for tests. */
export function startLogWorker(file = workerFile): LogWorker {
  const worker = new Worker(file, { resourceLimits, name: "buffer" });
  // Our own thread, which sends nothing else.
  const opened = new Promise<StoreOpened>((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
    worker.once("exit", () => reject(new AgentError("BUFFER_UNAVAILABLE", "the log thread has ended")));
  });
  opened.catch(() => {}); // whoever opens a buffer by it is told
  return { worker, opened };
}
