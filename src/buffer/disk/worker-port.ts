// Starts the log thread and talks to it.
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { AgentError } from "../../core/errors.ts";
import type { StoreOpened, StorePort, StoreReply, StoreRequest, StoreStart } from "./protocol.ts";

/** Compiled or bundled, the file lies beside this one under the same name. */
const workerFile = new URL(import.meta.url.endsWith(".ts") ? "./disk-worker.ts" : "./disk-worker.js", import.meta.url);
/** Columns live outside this heap; what is in it are indices and names. */
const resourceLimits = { maxOldGenerationSizeMb: 96, maxYoungGenerationSizeMb: 4, stackSizeMb: 1 };

/**
 * Resolves when the thread has opened its folder, or failed to: see `opened.error`. Rejects with `signal.reason`. `file` is
 * another thread's code, for tests.
 */
export async function openWorkerPort(start: StoreStart, signal: AbortSignal, file = workerFile): Promise<StorePort> {
  const worker = new Worker(file, { workerData: start, resourceLimits, name: "buffer" });
  try {
    const [opened]: [StoreOpened] = (await once(worker, "message", { signal })) as [StoreOpened];
    return new WorkerPort(worker, opened);
  } catch (error) {
    await worker.terminate();
    throw signal.aborted ? signal.reason : error;
  }
}

class WorkerPort implements StorePort {
  readonly opened: StoreOpened;
  readonly #worker: Worker;
  readonly #waiting: PromiseWithResolvers<StoreReply>[] = [];
  #failure: AgentError | undefined;

  constructor(worker: Worker, opened: StoreOpened) {
    this.#worker = worker;
    this.opened = opened;
    // The agent ends when its work does, not when its threads do.
    worker.unref();
    worker.on("message", (reply: StoreReply) => this.#waiting.shift()?.resolve(reply));
    worker.on("error", (error) => this.#fail(`the log thread failed: ${error.message}`));
    worker.on("exit", () => this.#fail("the log thread has ended"));
  }

  get failure(): AgentError | undefined {
    return this.#failure;
  }

  call(request: StoreRequest, transfer: readonly ArrayBuffer[]): Promise<StoreReply> {
    if (this.#failure) return Promise.reject(this.#failure);
    const waiting = Promise.withResolvers<StoreReply>();
    this.#waiting.push(waiting);
    // As long as an answer is owed, the process stays.
    if (this.#waiting.length === 1) this.#worker.ref();
    void waiting.promise.catch(() => {}).finally(() => this.#waiting.length === 0 && this.#worker.unref());
    this.#worker.postMessage(request, [...transfer]);
    return waiting.promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate();
  }

  #fail(message: string): void {
    this.#failure ??= new AgentError("BUFFER_UNAVAILABLE", message);
    for (const waiting of this.#waiting.splice(0)) waiting.reject(this.#failure);
  }
}
