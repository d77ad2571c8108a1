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

export type WorkerThread = ReturnType<typeof startWorkerThread>;

/** Calls may be made at once; they wait until the store is open. */
export function startWorkerThread(options: WorkerOptions) {
  const abandonedCall = new Int32Array(new SharedArrayBuffer(4)).fill(-1);
  const waiting = new Map<number, PromiseWithResolvers<StoreAnswer>>();
  const opened = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  const failed = Promise.withResolvers<Error>();
  let next = 0;
  let ended: Error | undefined;
  let isClosing = false;
  // Next to this source file, or next to the bundle in a release.
  const script = new URL(import.meta.url.endsWith(".ts") ? "./store-worker.ts" : "./store-worker.js", import.meta.url);
  const worker = new Worker(script, {
    workerData: { ...options, abandoned: abandonedCall } satisfies WorkerData,
    name: options.reads ? "service read" : "service store",
    // The numbers of a full request are short-lived. A larger nursery mainly retains memory outside of the heap.
    resourceLimits: { maxYoungGenerationSizeMb: 6 },
  });
  opened.promise.catch(() => {}); // `failed` reports it
  worker.on("message", (reply: WorkerReply) => {
    if (reply.kind === "ready") opened.resolve();
    else if (reply.kind === "failed")
      fail(reply.code === undefined ? new Error(reply.message) : new AgentError(reply.code, reply.message, reply));
    else {
      waiting.get(reply.number)?.resolve(reply);
      waiting.delete(reply.number);
    }
  });
  worker.on("error", fail);
  worker.on("exit", () => {
    fail(new Error("the thread with the store has ended"));
    closed.resolve();
  });

  function fail(error: Error): void {
    ended ??= error;
    opened.reject(ended);
    if (!isClosing) failed.resolve(ended);
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
  }

  function post(message: WorkerRequest, transfer: ArrayBuffer[] = []): void {
    if (!ended) worker.postMessage(message, transfer);
  }

  async function ask(
    request: (number: number) => WorkerRequest,
    transfer: ArrayBuffer[] = [],
    abandoned?: AbortSignal,
  ): Promise<StoreAnswer> {
    if (ended) throw ended;
    const number = next++;
    const answer = Promise.withResolvers<StoreAnswer>();
    waiting.set(number, answer);
    const abandon = () => void Atomics.store(abandonedCall, 0, number);
    if (abandoned?.aborted) abandon();
    abandoned?.addEventListener("abort", abandon, { once: true });
    post(request(number), transfer);
    try {
      return await answer.promise;
    } finally {
      abandoned?.removeEventListener("abort", abandon);
    }
  }

  return {
    /** Resolves when the store is open. Rejects as `ServiceStore.open` throws. */
    opened: opened.promise,
    /** Resolves when the thread has ended unexpectedly, such as by lack of memory. Calls then fail. */
    failed: failed.promise,
    /** Number of waiting and running calls. */
    get calls(): number {
      return waiting.size;
    },
    /**
     * Answers requests in order. Transfers `input.body`. Rejects when the thread has ended. If `abandoned` aborts, a
     * reading thread answers with a failure; a writing thread continues.
     */
    call(input: RpcInput, abandoned?: AbortSignal): Promise<StoreAnswer> {
      const { buffer, byteLength } = input.body;
      // A small buffer may be a view of a shared pool.
      const transfer = buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [];
      return ask((number) => ({ kind: "call", number, input }), transfer, abandoned);
    },
    /** For the writing thread. Rejects as `call` does. */
    maintain: (task: StoreMaintenance): Promise<StoreAnswer> => ask((number) => ({ kind: "maintain", number, task })),
    /** Makes changes of the writing thread visible to later calls. */
    refresh: (changes: ResourceChanges): void => post({ kind: "refresh", changes }),
    /** Waits for earlier calls. */
    async [Symbol.asyncDispose](): Promise<void> {
      isClosing = true;
      post({ kind: "close" });
      await closed.promise;
    },
  };
}
