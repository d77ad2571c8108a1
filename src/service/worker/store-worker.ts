// A store thread: handles requests, so that the thread with the sockets never blocks. One writes, others read.
import "../../lib/text/no-code-from-text.ts";
import { setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import { isAgentError, reasonOf, remedyOf } from "../../core/errors.ts";
import { atOnce, inSlices } from "../../lib/flow/in-slices.ts";
import { dispatch, isLargeInsert, type RpcInput, type RpcOutput } from "../method/dispatch.ts";
import { ServiceStore } from "../store/store.ts";
import type { StoreMaintenance, WorkerData, WorkerReply, WorkerRequest } from "./worker-thread.ts";

const port = parentPort;
if (!port) throw new Error("to be started as a worker");
const reply = (message: WorkerReply, transfer: ArrayBuffer[] = []) => port.postMessage(message, transfer);

try {
  const { data, reads, abandoned } = workerData as WorkerData; // sent by `startWorkerThread`
  let running = -1;
  const stopIfAbandoned = () => {
    if (Atomics.load(abandoned, 0) === running) throw new Error("the query was abandoned: its client waits no longer");
  };
  const store = reads ? ServiceStore.openReader(data, stopIfAbandoned) : ServiceStore.open(data);
  const answer = (number: number, input: RpcInput, { body, failure }: RpcOutput) => {
    // Releases megabytes without waiting for the garbage collector.
    input.body.buffer.transfer(0);
    const bytes = body === undefined ? undefined : new TextEncoder().encode(body);
    const changes = store.resources.takeChanges();
    reply({ kind: "answer", number, body: bytes, failure, changes }, bytes ? [bytes.buffer] : []);
    if (!reads) setImmediate(() => void failureOf(() => store.checkpoint())); // a failed checkpoint is repeated
  };
  /** Large inserts, one after the other. Other messages are handled between their slices. */
  let largeInserts = Promise.resolve();
  port.on("message", (message: WorkerRequest) => {
    switch (message.kind) {
      case "call": {
        const { number, input } = message;
        running = number;
        if (isLargeInsert(input))
          largeInserts = largeInserts.then(async () => answer(number, input, await inSlices(dispatch(input, store))));
        else if (reads)
          answer(
            number,
            input,
            store.snapshot(() => atOnce(dispatch(input, store))),
          );
        else answer(number, input, atOnce(dispatch(input, store)));
        break;
      }
      case "refresh":
        store.resources.refresh(message.changes);
        break;
      case "maintain": {
        const failure = failureOf(() => maintain(store, message.task));
        reply({ kind: "answer", number: message.number, body: undefined, failure, changes: undefined });
        break;
      }
      case "close":
        void largeInserts.then(() => {
          store[Symbol.dispose]();
          port.close();
        });
        break;
      default:
        message satisfies never;
    }
  });
  // On Linux, threads have their own priority. With few processors, queries and sockets precede inserts.
  if (!reads && data !== ":memory:" && process.platform === "linux") setPriority(0, 5);
  reply({ kind: "ready" });
} catch (error) {
  reply({
    kind: "failed",
    code: isAgentError(error) ? error.code : undefined,
    message: reasonOf(error),
    hint: remedyOf(error),
  });
}

function maintain(store: ServiceStore, task: StoreMaintenance): void {
  if (task === "truncate log") store.truncateLog();
  else store.transaction(() => store.points.expire(task.expireBefore));
}

/** The error of a maintenance task, if any. Even deleting can fail on a full disk, and may succeed later. */
function failureOf(work: () => void): string | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    return reasonOf(error);
  }
}
