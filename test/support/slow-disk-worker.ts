// The log thread on a disk whose syncs take `SLOW_SYNC_MS` milliseconds longer, as on worn flash.
import { nodeDisk } from "../../src/buffer/disk/files/disk.ts";
import { runLogThread } from "../../src/buffer/disk/worker/store-server.ts";
import { ownLock } from "./disk-store.ts";
import { seeded } from "./runtime.ts";

const random = seeded(3);
const slowMs = Number(process.env.SLOW_SYNC_MS ?? 200);
const sleeper = new Int32Array(new SharedArrayBuffer(4));
const disk = nodeDisk();
runLogThread({
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
  random32: () => Math.floor(random() * 2 ** 32),
  lock: () => ownLock,
});
