// The log thread: the one place that writes, reads and syncs, with calls that block. A disk that hangs holds up nothing else.
import { randomBytes } from "node:crypto";
import { parentPort } from "node:worker_threads";
import { crc32c } from "../files/crc32c.ts";
import { lockFolder } from "../files/lock.ts";
import { nodeDisk } from "../files/node-disk.ts";
import { answerRequests } from "./log-thread.ts";
import type { ThreadStart } from "./protocol.ts";
import { StoreServer } from "./store-server.ts";

// Sent by `worker-port.ts`, whose types these are.
parentPort?.once("message", (start: ThreadStart) => {
  const server = new StoreServer(start, {
    disk: nodeDisk(),
    checksum: crc32c,
    random32: () => randomBytes(4).readUInt32LE(),
    lock: lockFolder,
  });
  answerRequests(start.link, (request) => server.handle(request));
  parentPort?.postMessage(server.opened);
});
