// Where a command reads from and writes to, and what tells it to stop.
import { type Environment, processEnvironment } from "../config/environment.ts";

export interface Console {
  /** Results: what a script may read. */
  print(line: string): void;
  /** Everything else: errors, progress, logs. */
  complain(line: string): void;
  /** What a configuration may refer to. */
  readonly environment: Environment;
  /** Whether a person is reading. */
  readonly interactive: boolean;
  /** Aborts on SIGINT and SIGTERM. */
  readonly signal: AbortSignal;
}

/** The console of this process. A second SIGINT or SIGTERM ends it at once, as an operator expects of ^C^C. */
export function processConsole(): Console & Disposable {
  const controller = new AbortController();
  const stop = () => {
    if (controller.signal.aborted) process.kill(process.pid, "SIGKILL");
    else controller.abort(new Error("stopped by a signal"));
  };
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  // A reader that went away (`tagferry demo | head -1`) is no reason to fail.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
  return {
    print: (line) => void process.stdout.write(`${line}\n`),
    complain: (line) => void process.stderr.write(`${line}\n`),
    environment: processEnvironment(),
    interactive: process.stderr.isTTY === true,
    signal: controller.signal,
    [Symbol.dispose]() {
      process.off("SIGINT", stop);
      process.off("SIGTERM", stop);
    },
  };
}

/** Resolves when `signal` aborts: how a command that runs for ever waits for its end. */
export function stopped(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
