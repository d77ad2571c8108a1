// `tagferry run`: the agent and its status page, until a signal stops them.
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { AgentOptions } from "../../agent/agent.ts";
import { bufferOf, prepareBufferFolder } from "../../agent/buffer-of.ts";
import { openLog } from "../../agent/log/log.ts";
import { metricsRegistry } from "../../agent/process/metrics.ts";
import { boundGarbage, measureProcess } from "../../agent/process/process.ts";
import { openDiskBuffer } from "../../buffer/disk/disk-buffer.ts";
import { loadConfig } from "../../config/load.ts";
import { systemRuntime } from "../../lib/time/clock.ts";
import type { Console } from "../terminal/console.ts";
import { surviveDefects } from "../terminal/exit-status.ts";

interface RunOptions {
  readonly config: string;
  readonly final?: boolean;
  /** Saves the compiled code of the start. */
  readonly keepCode?: (() => void) | undefined;
}

/** While this file exists in the data directory, a stop is final. The package creates it before its removal. */
const finalStop = "final-stop";

export async function run(
  { config: file, final = false, keepCode }: RunOptions,
  io: Console,
  parts: Omit<AgentOptions, "version"> = {},
): Promise<void> {
  // All files created from here on, also by libraries, are for this user only.
  process.umask(0o077);
  const config = await loadConfig(file, { ...io.environment, readFile: boundedReader(io.environment) });
  const log = await openLog({
    level: config.log.level,
    descriptor: 2,
    pretty: io.interactive,
    fields: { agent: config.agent.name },
  });
  const metrics = metricsRegistry();
  measureProcess(metrics);
  const runtime = systemRuntime(log, metrics);
  using _guard = surviveDefects(log);
  // Ignore SIGHUP until the agent is ready, since the file has just been read.
  io.onHangUp(() => {});
  try {
    for (const { path, message } of config.warnings) log.warn({ path }, message);
    // The buffer's thread opens it on another core while this one loads the rest.
    await prepareBufferFolder(config);
    const buffer = (parts.openBuffer ?? openDiskBuffer)(bufferOf(config), runtime, io.signal);
    buffer.catch(() => {}); // the agent awaits it and reports the error
    const { serve } = await import("./serve.ts");
    await serve(
      {
        file,
        config,
        log,
        metrics,
        keepCode,
        agent: {
          ...parts,
          openBuffer: () => buffer,
          final: () => final || existsSync(join(config.agent.dataDir, finalStop)),
        },
      },
      runtime,
      io,
    );
  } finally {
    log.flush();
  }
}

/** From this size on, reading a file of the configuration may be the peak of the process's memory. */
const largeFile = 256 * 1_024;

/** Reads as `environment` does. Before a large file is parsed, it bounds garbage, which costs the start 20 ms. */
function boundedReader(environment: Console["environment"]): Console["environment"]["readFile"] {
  return async (path) => {
    const bytes = await environment.readFile(path);
    if (bytes.length >= largeFile) boundGarbage();
    return bytes;
  };
}
