// Has the log thread open its folder, and talks to it.
import { setFlagsFromString } from "node:v8";
import { Worker } from "node:worker_threads";
import { AgentError } from "../../../core/errors.ts";
import { orAbort } from "../../../lib/abort.ts";
import type { StoreOpened, StorePort, StoreReply, StoreRequest, StoreStart } from "./protocol.ts";

/**
 * Resolves when the thread has opened its folder, or failed to: see `opened.error`. Rejects with `signal.reason`. `thread` is
 * one that was started before, and nothing else's from now on.
 */
export async function openWorkerPort(
  start: StoreStart,
  signal: AbortSignal,
  thread: LogWorker = startLogWorker(),
): Promise<StorePort> {
  const { worker } = thread;
  worker.postMessage(start);
  try {
    return new WorkerPort(worker, await orAbort(thread.opened, signal));
  } catch (error) {
    await worker.terminate();
    throw error;
  }
}

class WorkerPort implements StorePort {
  readonly opened: StoreOpened;
  readonly #worker: Worker;
  /** One for each request that is not answered, in their order. */
  readonly #waiting: PromiseWithResolvers<StoreReply>[] = [];
  #failure: AgentError | undefined;

  constructor(worker: Worker, opened: StoreOpened) {
    this.#worker = worker;
    this.opened = opened;
    let reason = "the log thread has ended";
    worker.on("message", (reply: StoreReply) => this.#receive(reply));
    worker.on("error", (error) => {
      reason = `the log thread failed: ${error.message}`;
    });
    // Node delivers every reply before this event, also after an error.
    worker.on("exit", () => this.#fail(new AgentError("BUFFER_UNAVAILABLE", reason)));
    // The agent ends when its work does, not when its threads do.
    worker.unref();
  }

  get failure(): AgentError | undefined {
    return this.#failure;
  }

  call(request: StoreRequest, transfer: readonly ArrayBuffer[]): Promise<StoreReply> {
    if (this.#failure) return Promise.reject(this.#failure);
    // As long as an answer is owed, the process stays.
    if (this.#waiting.length === 0) this.#worker.ref();
    this.#worker.postMessage(request, transfer);
    const reply = Promise.withResolvers<StoreReply>();
    this.#waiting.push(reply);
    return reply.promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate();
  }

  #receive(reply: StoreReply): void {
    this.#waiting.shift()?.resolve(reply);
    if (this.#waiting.length === 0) this.#worker.unref();
  }

  #fail(failure: AgentError): void {
    this.#failure = failure;
    for (const { reject } of this.#waiting.splice(0)) reject(failure);
  }
}

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

/**
 * Apart from `openWorkerPort`, so that the program can start the thread while it loads everything else: a thread takes longer
 * to start than a configuration to be read. `file` is another thread's code, for tests.
 */
export function startLogWorker(file = workerFile): LogWorker {
  // Node's flag for the young generation is meant for the main thread, and would hold here in place of the limit: 6 MB more.
  setFlagsFromString("--max-semi-space-size=0");
  const worker = new Worker(file, { resourceLimits, name: "buffer" });
  // Our own thread, which sends nothing else.
  const opened = new Promise<StoreOpened>((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
    worker.once("exit", () => reject(new AgentError("BUFFER_UNAVAILABLE", "the log thread has ended")));
  });
  opened.catch(() => {}); // reported to the caller that opens a buffer with it
  return { worker, opened };
}
