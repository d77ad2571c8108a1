// The agent program without the other commands, for small machines.
import { openDiskBuffer } from "../buffer/disk/disk-buffer.ts";
import { type LogWorker, workerPorts } from "../buffer/disk/worker/worker-port.ts";
import { run } from "./run/run.ts";
import { processConsole } from "./terminal/console.ts";
import { exitStatusOf } from "./terminal/exit-status.ts";

/**
 * Runs the agent in this process with a prepared log thread. `keepCode` is called once it is started. Resolves with the
 * exit status; never rejects.
 */
export async function runAgent(config: string, thread: LogWorker, keepCode?: () => void): Promise<number> {
  using io = processConsole();
  const parts = {
    openBuffer: (...[options, runtime, signal]: Parameters<typeof openDiskBuffer>) =>
      openDiskBuffer(options, runtime, signal, workerPorts(thread)),
  };
  return await exitStatusOf(() => run({ config, keepCode }, io, parts), io);
}
