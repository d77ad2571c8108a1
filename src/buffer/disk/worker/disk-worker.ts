// The log thread, which makes all disk calls. They block, so a disk that hangs delays only this thread.
import "../../../lib/text/no-code-from-text.ts";
import { randomBytes } from "node:crypto";
import { nodeDisk } from "../files/disk.ts";
import { lockFolder } from "../files/lock.ts";
import { runLogThread } from "./store-server.ts";

runLogThread({
  disk: nodeDisk(),
  random32: () => randomBytes(4).readUInt32LE(),
  lock: lockFolder,
});
