// The log thread on a disk whose syncs take `SLOW_SYNC_MS` milliseconds more, as on worn flash.
import { parentPort } from "node:worker_threads";
import { crc32c } from "../../src/buffer/disk/files/crc32c.ts";
import { nodeDisk } from "../../src/buffer/disk/files/node-disk.ts";
import { answerRequests } from "../../src/buffer/disk/worker/log-thread.ts";
import type { ThreadStart } from "../../src/buffer/disk/worker/protocol.ts";
import { StoreServer } from "../../src/buffer/disk/worker/store-server.ts";
import { ownLock } from "./disk-store.ts";
import { seeded } from "./runtime.ts";

const random = seeded(3);
const slowMs = Number(process.env.SLOW_SYNC_MS ?? 200);
const sleeper = new Int32Array(new SharedArrayBuffer(4));
const disk = nodeDisk();
// Sent by `worker-port.ts`, whose types these are.
parentPort?.once("message", (start: ThreadStart) => {
  const server = new StoreServer(start, {
    disk: {
      ...disk,
      open(path, mode) {
        const file = disk.open(path, mode);
        return {
          ...file,
          sync() {
            Atomics.wait(sleeper, 0, 0, slowMs);
            file.sync();
          },
        };
      },
    },
    checksum: crc32c,
    random32: () => Math.floor(random() * 2 ** 32),
    lock: () => ownLock,
  });
  answerRequests(start.link, (request) => server.handle(request));
  parentPort?.postMessage(server.opened);
});
