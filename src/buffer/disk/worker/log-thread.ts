// The log thread: opens a folder and answers requests, one after the other, until `close` was answered.
import { parentPort } from "node:worker_threads";
import type { ShelfBlock } from "../blocks/block-layout.ts";
import type { StoreRequest, StoreStart } from "./protocol.ts";
import { type ServerGround, StoreServer } from "./store-server.ts";

/** Runs the thread. An exception that `StoreServer.handle` throws ends it. */
export function runLogThread(ground: ServerGround): void {
  const port = parentPort;
  // Sent by `worker-port.ts`, whose types these are.
  port?.once("message", (start: StoreStart) => {
    const server = new StoreServer(start, ground);
    port.on("message", (request: StoreRequest) => {
      const reply = server.handle(request);
      port.postMessage(reply, reply.block ? columnsOf(reply.block) : []);
      if (request.kind === "close") port.close();
    });
    port.postMessage(server.opened);
  });
}

/** The buffers of the columns, which are transferred with the reply. */
function columnsOf({ inputs, timeStarts, valueStarts, times, values, late }: ShelfBlock): ArrayBuffer[] {
  return [inputs, timeStarts, valueStarts, times, values, late].map(({ buffer }) => buffer);
}
