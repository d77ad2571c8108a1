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
  /** Aborts on SIGINT and SIGTERM, and on SIGHUP where nobody took that with `onHangUp`. */
  readonly signal: AbortSignal;
  /** From now on SIGHUP calls `act` and ends nothing: the terminal may go, or an operator asks for a reload. */
  onHangUp(act: () => void): void;
}

/** ^C reaches the program from the terminal and once more through npm: signals this close together are one. In milliseconds. */
const sameSignalMs = 1_000;

/** The console of this process. A second SIGINT or SIGTERM ends it at once, as an operator expects of ^C^C. */
export function processConsole(): Console & Disposable {
  const controller = new AbortController();
  let stoppedAtMs = 0;
  let hungUp: (() => void) | undefined;
  const stop = () => {
    if (!controller.signal.aborted) {
      stoppedAtMs = performance.now();
      controller.abort(new Error("stopped by a signal"));
    } else if (performance.now() - stoppedAtMs >= sameSignalMs) process.kill(process.pid, "SIGKILL");
  };
  const hangUp = () => (hungUp ?? stop)();
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  process.on("SIGHUP", hangUp);
  // A reader that went away (`tagferry demo | head -1`) is no reason to fail.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
  return {
    print: (line) => void process.stdout.write(`${line}\n`),
    complain: (line) => void process.stderr.write(`${line}\n`),
    environment: processEnvironment(),
    interactive: process.stderr.isTTY === true,
    signal: controller.signal,
    onHangUp(act) {
      hungUp = act;
    },
    [Symbol.dispose]() {
      process.off("SIGHUP", hangUp);
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
