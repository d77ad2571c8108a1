// Has the log thread open its folder, and talks to it.
import type { Worker } from "node:worker_threads";
import { AgentError } from "../../../core/errors.ts";
import { orAbort } from "../../../lib/abort.ts";
import { type LogWorker, startLogWorker } from "./log-worker.ts";
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
