// Starts a store thread and passes requests to it.
import { Worker } from "node:worker_threads";
import { AgentError, type ErrorCode } from "../../core/errors.ts";
import type { RpcInput } from "../method/dispatch.ts";
import type { ResourceChanges } from "../store/resource-store.ts";

export interface WorkerOptions {
  readonly data: string;
  /** Whether it only reads a store that another thread has open. */
  readonly reads: boolean;
}

export interface WorkerData extends WorkerOptions {
  /** Number of the latest call that its caller has abandoned. */
  readonly abandoned: Int32Array<SharedArrayBuffer>;
}

/** Deletes points older than this (microseconds since the epoch), or truncates the log if nothing reads from it. */
export type StoreMaintenance = { readonly expireBefore: number } | "truncate log";

export type WorkerRequest =
  | { readonly kind: "call"; readonly number: number; readonly input: RpcInput }
  /** Answered without a body. */
  | { readonly kind: "maintain"; readonly number: number; readonly task: StoreMaintenance }
  /** Changes committed by the writing thread. Later calls see them. */
  | { readonly kind: "refresh"; readonly changes: ResourceChanges }
  | { readonly kind: "close" };

export type WorkerReply =
  | { readonly kind: "ready" }
  | {
      readonly kind: "failed";
      readonly code: ErrorCode | undefined;
      readonly message: string;
      readonly hint: string | undefined;
    }
  | {
      readonly kind: "answer";
      readonly number: number;
      readonly body: Uint8Array<ArrayBuffer> | undefined;
      readonly failure: string | undefined;
      readonly changes: ResourceChanges | undefined;
    };

export interface StoreAnswer {
  /** Undefined: a notification. */
  readonly body: Uint8Array | undefined;
  readonly failure: string | undefined;
  /** Signals and items written by the call. */
  readonly changes: ResourceChanges | undefined;
}

export class WorkerThread implements AsyncDisposable {
  readonly #worker: Worker;
  readonly #abandoned = new Int32Array(new SharedArrayBuffer(4)).fill(-1);
  readonly #waiting = new Map<number, PromiseWithResolvers<StoreAnswer>>();
  readonly #opened = Promise.withResolvers<void>();
  readonly #closed = Promise.withResolvers<void>();
  readonly #failed = Promise.withResolvers<Error>();
  /** Resolves when the store is open. Rejects as `ServiceStore.open` throws. */
  readonly opened = this.#opened.promise;
  /** Resolves when the thread has ended unexpectedly, such as by lack of memory. Calls then fail. */
  readonly failed = this.#failed.promise;
  #next = 0;
  #ended: Error | undefined;
  #closing = false;

  /** Calls may be made at once; they wait until the store is open. */
  constructor(options: WorkerOptions) {
    // Next to this source file, or next to the bundle in a release.
    const script = new URL(
      import.meta.url.endsWith(".ts") ? "./store-worker.ts" : "./store-worker.js",
      import.meta.url,
    );
    this.#worker = new Worker(script, {
      workerData: { ...options, abandoned: this.#abandoned } satisfies WorkerData,
      name: options.reads ? "service read" : "service store",
      // The numbers of a full request are short-lived. A larger nursery mainly retains memory outside of the heap.
      resourceLimits: { maxYoungGenerationSizeMb: 6 },
    });
    this.#opened.promise.catch(() => {}); // `failed` reports it
    this.#worker.on("message", (reply: WorkerReply) => {
      if (reply.kind === "ready") this.#opened.resolve();
      else if (reply.kind === "failed")
        this.#fail(
          reply.code === undefined ? new Error(reply.message) : new AgentError(reply.code, reply.message, reply),
        );
      else {
        this.#waiting.get(reply.number)?.resolve(reply);
        this.#waiting.delete(reply.number);
      }
    });
    this.#worker.on("error", (error) => this.#fail(error));
    this.#worker.on("exit", () => {
      this.#fail(new Error("the thread with the store has ended"));
      this.#closed.resolve();
    });
  }

  /** Number of waiting and running calls. */
  get calls(): number {
    return this.#waiting.size;
  }

  /**
   * Answers requests in order. Transfers `input.body`. Rejects when the thread has ended. If `abandoned` aborts, a
   * reading thread answers with a failure; a writing thread continues.
   */
  call(input: RpcInput, abandoned?: AbortSignal): Promise<StoreAnswer> {
    const { buffer, byteLength } = input.body;
    // A small buffer may be a view of a shared pool.
    const transfer = buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [];
    return this.#ask((number) => ({ kind: "call", number, input }), transfer, abandoned);
  }

  /** For the writing thread. Rejects as `call` does. */
  maintain(task: StoreMaintenance): Promise<StoreAnswer> {
    return this.#ask((number) => ({ kind: "maintain", number, task }));
  }

  /** Makes changes of the writing thread visible to later calls. */
  refresh(changes: ResourceChanges): void {
    if (!this.#ended) this.#worker.postMessage({ kind: "refresh", changes } satisfies WorkerRequest);
  }

  /** Waits for earlier calls. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing = true;
    if (!this.#ended) this.#worker.postMessage({ kind: "close" } satisfies WorkerRequest);
    await this.#closed.promise;
  }

  async #ask(
    request: (number: number) => WorkerRequest,
    transfer: ArrayBuffer[] = [],
    abandoned?: AbortSignal,
  ): Promise<StoreAnswer> {
    if (this.#ended) throw this.#ended;
    const number = this.#next++;
    const waiting = Promise.withResolvers<StoreAnswer>();
    this.#waiting.set(number, waiting);
    const abandon = () => void Atomics.store(this.#abandoned, 0, number);
    if (abandoned?.aborted) abandon();
    abandoned?.addEventListener("abort", abandon, { once: true });
    this.#worker.postMessage(request(number), transfer);
    try {
      return await waiting.promise;
    } finally {
      abandoned?.removeEventListener("abort", abandon);
    }
  }

  #fail(error: Error): void {
    this.#ended ??= error;
    this.#opened.reject(this.#ended);
    if (!this.#closing) this.#failed.resolve(this.#ended);
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}
