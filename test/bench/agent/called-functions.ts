// Loaded before the agent with `--import`, in each of its threads. Counts the calls of each function of `src`. At
// SIGUSR2 each thread writes the counts since the last signal to a file in the folder `CALLS` and starts again from 0.
import { writeFileSync } from "node:fs";
import { Session } from "node:inspector";
import { join } from "node:path";
import { isMainThread, threadId } from "node:worker_threads";

const session = new Session();
session.connect();
session.post("Profiler.enable");
session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
const channel = new BroadcastChannel("calls");
channel.unref();
let round = 0;

function write(): void {
  session.post("Profiler.takePreciseCoverage", (_error, { result }) => {
    const calls = result
      .filter(({ url }) => /\/src\/.*\.ts$/.test(url))
      .flatMap(({ url, functions }) =>
        functions.map(({ functionName, ranges }) => {
          const [range] = ranges;
          return [`${url.replace(/^.*\/src\//, "src/")} ${functionName} ${range?.startOffset}`, range?.count ?? 0];
        }),
      )
      .filter(([, count]) => count !== 0);
    writeFileSync(join(process.env["CALLS"] ?? ".", `${round++}-${threadId}.json`), JSON.stringify(calls));
  });
}

channel.onmessage = write;
if (isMainThread)
  process.on("SIGUSR2", () => {
    write();
    channel.postMessage("write");
  });
