// Messages between the main thread and the log thread. The columns of points and blocks are transferred, not copied.
// Each Input ID is sent once and is a number from then on.

import { setFlagsFromString } from "node:v8";
import { Worker } from "node:worker_threads";
import type { BufferStats } from "../../../core/buffer.ts";
import { AgentError, type ErrorCode } from "../../../core/errors.ts";
import type { InputId } from "../../../core/point.ts";
import { orAbort } from "../../../lib/flow/abort.ts";
import type { Taken, TakeRequest } from "../blocks/block-cut.ts";
import type { Note } from "../files/disk.ts";
import type { PointColumns } from "../format/input-table.ts";
import type { BlockSettlement } from "../segments/late-points.ts";
import type { StoreOptions, TimestampPair } from "../segments/segment.ts";

export type StoreRequest = { readonly now: TimestampPair } & (
  | {
      readonly kind: "append";
      /** Input IDs not sent before. Their numbers continue those already sent. */
      readonly newInputs: readonly InputId[];
      readonly group: PointColumns;
    }
  | (Omit<TakeRequest, "inputs" | "except"> & {
      readonly kind: "take";
      readonly inputs: readonly InputId[] | undefined;
      readonly except: readonly InputId[] | undefined;
    })
  | { readonly kind: "settle"; readonly done: readonly BlockSettlement[] }
  | { readonly kind: "release"; readonly blocks: readonly number[] | "all" }
  | { readonly kind: "tick" | "work" | "close" }
);

export type BareRequest = StoreRequest extends infer R ? (R extends unknown ? Omit<R, "now"> : never) : never;

export interface StoreReply extends Taken {
  readonly error:
    | { readonly code: ErrorCode | "bug"; readonly message: string; readonly hint?: string | undefined }
    | undefined;
  /** Input IDs not sent before, in the numbering of blocks. */
  readonly newInputs: readonly InputId[];
  readonly stats: BufferStats | undefined;
  readonly notes: readonly Note[];
  /** After `tick` or `work`: there is more background work. */
  readonly more: boolean;
  /** After `tick`: the last read of some segment failed. */
  readonly unread: boolean;
}

export interface StoreOpened extends StoreReply {
  /** Integration ID of the backlog, if it is not the configured one. */
  readonly foreign: string | undefined;
}

export interface StoreStart {
  readonly options: StoreOptions;
  readonly now: TimestampPair;
  /** True if this process had the folder open before. A missing or empty folder is then an error, not a new buffer. */
  readonly again: boolean;
}

/** Connection to the log, in a thread or in the same one. Calls are answered in order. */
export interface StorePort extends AsyncDisposable {
  readonly opened: StoreOpened;
  /** Why the log no longer answers. Undefined: it does. */
  readonly failure: AgentError | undefined;
  /** Rejects with `BUFFER_UNAVAILABLE` if the log has ended. The log's own errors are in the reply. */
  call(request: StoreRequest, transfer: readonly ArrayBuffer[]): Promise<StoreReply>;
}

/**
 * Resolves when the log has opened its folder or failed to, see `opened.error`. Rejects with `signal.reason`. Called
 * again after the log has ended.
 */
export type OpenPort = (start: StoreStart, signal: AbortSignal) => Promise<StorePort>;

/** Opens each log in a thread of its own. `thread`: the first one, started before, which its port then owns. */
export function workerPorts(thread?: LogWorker): OpenPort {
  let next = thread;
  return async (start, signal) => {
    const { worker, opened } = next ?? startLogWorker();
    next = undefined;
    worker.postMessage(start);
    try {
      return workerPort(worker, await orAbort(opened, signal));
    } catch (error) {
      await worker.terminate();
      throw error;
    }
  };
}

function workerPort(worker: Worker, opened: StoreOpened): StorePort {
  const waiting: PromiseWithResolvers<StoreReply>[] = [];
  let reason = "the log thread has ended";
  let failure: AgentError | undefined;
  worker.on("message", (reply: StoreReply) => {
    waiting.shift()?.resolve(reply);
    // An idle log thread does not keep the process alive.
    if (waiting.length === 0) worker.unref();
  });
  worker.on("error", (error) => {
    reason = `the log thread failed: ${error.message}`;
  });
  // Node delivers every reply before this event, also after an error.
  worker.on("exit", () => {
    failure = new AgentError("BUFFER_UNAVAILABLE", reason);
    for (const { reject } of waiting.splice(0)) reject(failure);
  });
  worker.unref();
  return {
    opened,
    get failure() {
      return failure;
    },
    call(request, transfer) {
      if (failure) return Promise.reject(failure);
      if (waiting.length === 0) worker.ref();
      worker.postMessage(request, transfer);
      const reply = Promise.withResolvers<StoreReply>();
      waiting.push(reply);
      return reply.promise;
    },
    async [Symbol.asyncDispose]() {
      await worker.terminate();
    },
  };
}

const workerFile = new URL(import.meta.url.endsWith(".ts") ? "./disk-worker.ts" : "./disk-worker.js", import.meta.url);
/** Columns are allocated outside this heap, which holds indices and names. */
const resourceLimits = { maxOldGenerationSizeMb: 96, maxYoungGenerationSizeMb: 4, stackSizeMb: 1 };

/** A thread that waits for the message with the folder to open. */
export interface LogWorker {
  readonly worker: Worker;
  /** The result of opening the folder. Rejects if the thread fails before. */
  readonly opened: Promise<StoreOpened>;
}

/**
 * Starts the thread. Separate from `workerPorts`, so that it starts while the program loads: starting a thread takes
 * longer than reading the configuration. `file`: the code of another thread, for tests.
 */
export function startLogWorker(file = workerFile): LogWorker {
  // Reset Node's own flag for the main thread: it would override the limit for this thread, at a cost of 6 MB.
  setFlagsFromString("--max-semi-space-size=0");
  const worker = new Worker(file, { resourceLimits, name: "buffer" });
  // The first message is always `StoreOpened`.
  const opened = new Promise<StoreOpened>((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
    worker.once("exit", () => reject(new AgentError("BUFFER_UNAVAILABLE", "the log thread has ended")));
  });
  opened.catch(() => {}); // `workerPorts` reports the error
  return { worker, opened };
}
