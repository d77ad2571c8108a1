// Starts the thread that owns the store, and hands requests to it.
import { Worker } from "node:worker_threads";
import { AgentError, type ErrorCode } from "../../core/errors.ts";
import type { RpcInput } from "../method/dispatch.ts";

export type WorkerRequest =
  | { readonly kind: "call"; readonly number: number; readonly input: RpcInput }
  /** Delete points older than this, microseconds since the epoch. Answered without a body. */
  | { readonly kind: "expire"; readonly number: number; readonly before: number }
  | { readonly kind: "close" };

export type WorkerReply =
  | { readonly kind: "ready" }
  | { readonly kind: "failed"; readonly code: ErrorCode | undefined; readonly message: string }
  | {
      readonly kind: "answer";
      readonly number: number;
      readonly body: Uint8Array<ArrayBuffer> | undefined;
      readonly failure: string | undefined;
    };

export interface StoreAnswer {
  /** Undefined: a notification. */
  readonly body: Uint8Array | undefined;
  readonly failure: string | undefined;
}

export class StoreThread implements AsyncDisposable {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, PromiseWithResolvers<StoreAnswer>>();
  readonly #closed = Promise.withResolvers<void>();
  readonly #failed = Promise.withResolvers<Error>();
  #next = 0;
  #ended: Error | undefined;
  #closing = false;

  private constructor(worker: Worker) {
    this.#worker = worker;
    worker.on("message", (reply: WorkerReply) => {
      if (reply.kind !== "answer") return;
      this.#waiting.get(reply.number)?.resolve(reply);
      this.#waiting.delete(reply.number);
    });
    worker.on("error", (error) => this.#fail(error));
    worker.on("exit", () => {
      this.#fail(new Error("the thread with the store has ended"));
      this.#closed.resolve();
    });
  }

  /** Resolves when the store is open. Rejects with `DATA_DIR_UNWRITABLE`, `DATA_DIR_IN_USE` or `BUFFER_NEWER`. */
  static async open(data: string): Promise<StoreThread> {
    // Beside this file as source, and beside the bundle when released.
    const script = new URL(
      import.meta.url.endsWith(".ts") ? "./store-worker.ts" : "./store-worker.js",
      import.meta.url,
    );
    const worker = new Worker(script, {
      workerData: data,
      name: "service store",
      // Numbers of a full request die young; a nursery of the default size holds on to three times as much memory.
      resourceLimits: { maxYoungGenerationSizeMb: 12 },
    });
    await new Promise<void>((resolve, reject) => {
      worker.once("error", reject);
      worker.once("message", (reply: WorkerReply) => {
        worker.off("error", reject);
        if (reply.kind === "ready") resolve();
        else if (reply.kind === "failed")
          reject(reply.code === undefined ? new Error(reply.message) : new AgentError(reply.code, reply.message));
        else reject(new Error(`unexpected first word of the store: ${reply.kind}`));
      });
    });
    return new StoreThread(worker);
  }

  /** Resolves when the thread has ended unasked, for want of memory perhaps: no call can be answered any more. */
  get failed(): Promise<Error> {
    return this.#failed.promise;
  }

  /** Answers requests in the order of the calls. `input.body` is handed over: it must not be used any more. Rejects when the thread has ended. */
  call(input: RpcInput): Promise<StoreAnswer> {
    const { buffer, byteLength } = input.body;
    // A small buffer may be a view of a pool that others use.
    const transfer = buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [];
    return this.#ask((number) => ({ kind: "call", number, input }), transfer);
  }

  /** Deletes points older than `before`, microseconds since the epoch. Rejects as `call` does. */
  expire(before: number): Promise<StoreAnswer> {
    return this.#ask((number) => ({ kind: "expire", number, before }));
  }

  /** Waits for the calls before it. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing = true;
    if (!this.#ended) this.#worker.postMessage({ kind: "close" } satisfies WorkerRequest);
    await this.#closed.promise;
  }

  #ask(request: (number: number) => WorkerRequest, transfer: ArrayBuffer[] = []): Promise<StoreAnswer> {
    if (this.#ended) return Promise.reject(this.#ended);
    const number = this.#next++;
    const waiting = Promise.withResolvers<StoreAnswer>();
    this.#waiting.set(number, waiting);
    this.#worker.postMessage(request(number), transfer);
    return waiting.promise;
  }

  #fail(error: Error): void {
    this.#ended ??= error;
    if (!this.#closing) this.#failed.resolve(this.#ended);
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}
