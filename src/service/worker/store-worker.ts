// The thread that owns the store: parses, validates, stores and answers, so that the thread with the sockets never waits.
import { parentPort, workerData } from "node:worker_threads";
import { isAgentError, reasonOf } from "../../core/errors.ts";
import { dispatch } from "../method/dispatch.ts";
import { ServiceStore } from "../store/store.ts";
import type { WorkerReply, WorkerRequest } from "./store-thread.ts";

const port = parentPort;
if (!port) throw new Error("to be started as a worker");
const reply = (message: WorkerReply, transfer: ArrayBuffer[] = []) => port.postMessage(message, transfer);

try {
  const store = ServiceStore.open(String(workerData));
  port.on("message", (message: WorkerRequest) => {
    switch (message.kind) {
      case "call": {
        const { body, failure } = dispatch(message.input, store);
        const bytes = body === undefined ? undefined : new TextEncoder().encode(body);
        reply({ kind: "answer", number: message.number, body: bytes, failure }, bytes ? [bytes.buffer] : []);
        break;
      }
      case "expire":
        reply({ kind: "answer", number: message.number, body: undefined, failure: expire(store, message.before) });
        break;
      case "close":
        store[Symbol.dispose]();
        port.close();
        break;
      default:
        message satisfies never;
    }
  });
  reply({ kind: "ready" });
} catch (error) {
  reply({
    kind: "failed",
    code: isAgentError(error) ? error.code : undefined,
    message: reasonOf(error),
  });
}

/** Why it failed, if it did: on a full disk even deleting can, and the next time may go better. */
function expire(store: ServiceStore, before: number): string | undefined {
  try {
    store.transaction(() => store.points.expire(before));
    return undefined;
  } catch (error) {
    return reasonOf(error);
  }
}
