// The log thread: the one place that writes, reads and syncs, with calls that block. A disk that hangs holds up nothing else.
import { randomBytes } from "node:crypto";
import { crc32 } from "../files/bytes.ts";
import { lockFolder } from "../files/lock.ts";
import { nodeDisk } from "../files/node-disk.ts";
import { runLogThread } from "./store-server.ts";

runLogThread({
  disk: nodeDisk(),
  checksum: crc32,
  random32: () => randomBytes(4).readUInt32LE(),
  lock: lockFolder,
});
