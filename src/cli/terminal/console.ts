// Where a command reads from and writes to, and what tells it to stop.
import { setImmediate } from "node:timers/promises";
import { type Environment, processEnvironment } from "../../config/environment.ts";
import { type ConsoleInput, processInput } from "./console-input.ts";

export interface Console {
  /** Results: what a script may read. */
  print(line: string): void;
  /** Everything else: errors, progress, logs. */
  complain(line: string): void;
  /** Writes results without a line end. Resolves when there is room for more; false: the reader has closed the output. */
  write(text: string): Promise<boolean>;
  /** One line that is replaced by the next and gone with the next result; undefined: none. Only where a person is reading. */
  progress(line: string | undefined): void;
  readonly input: ConsoleInput;
  /** A terminal on which results may be redrawn. Undefined: the output is a file or a pipe. */
  readonly screen: Screen | undefined;
  readonly environment: Environment;
  /** Whether a person is reading. */
  readonly interactive: boolean;
  /** Aborts when the reader of the pipe has ended. Undefined: cannot be known. */
  readonly unread?: AbortSignal;
  /** Aborts on SIGINT and SIGTERM, and on SIGHUP unless `onHangUp` handles it. */
  readonly signal: AbortSignal;
  /** From now on SIGHUP calls `act` and ends nothing: the terminal may go, or an operator asks for a reload. */
  onHangUp(act: () => void): void;
}

/** ^C reaches the program from the terminal and once more through npm: signals this close together are one. In milliseconds. */
const sameSignalMs = 1_000;

interface ProcessConsole extends Console, Disposable {
  /** Resolves with why results could not be written; undefined: they were, or their reader went away. */
  unwritten(): Promise<Error | undefined>;
}

/** The console of this process. A second SIGINT or SIGTERM ends it at once, as an operator expects of ^C^C. */
export function processConsole(): ProcessConsole {
  const controller = new AbortController();
  let stoppedAtMs = 0;
  let hungUp: (() => void) | undefined;
  const unread = new AbortController();
  let unwritten: Error | undefined;
  const progress = progressLine();
  const input = processInput();
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
  process.stderr.on("error", () => {});
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") unwritten ??= error;
    unread.abort(new Error("the reader closed the output"));
  });
  return {
    print(line) {
      progress(undefined);
      process.stdout.write(`${line}\n`);
    },
    complain(line) {
      progress(undefined);
      process.stderr.write(`${line}\n`);
    },
    async write(text) {
      if (!unread.signal.aborted && !process.stdout.write(text)) await drained(process.stdout);
      // An error is told after the write that met it.
      await setImmediate();
      return !unread.signal.aborted;
    },
    async unwritten() {
      await setImmediate();
      return unwritten;
    },
    progress,
    input,
    screen: processScreen(),
    environment: processEnvironment(),
    interactive: process.stderr.isTTY === true,
    unread: unread.signal,
    signal: controller.signal,
    onHangUp(act) {
      hungUp = act;
    },
    [Symbol.dispose]() {
      input[Symbol.dispose]();
      process.off("SIGHUP", hangUp);
      process.off("SIGINT", stop);
      process.off("SIGTERM", stop);
    },
  };
}

/** Resolves when more may be written, or nothing can be any more. */
function drained(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    const over = () => {
      for (const event of ["drain", "error", "close"]) stream.off(event, over);
      resolve();
    };
    for (const event of ["drain", "error", "close"]) stream.on(event, over);
  });
}

function progressLine(): (line: string | undefined) => void {
  if (process.stderr.isTTY !== true) return () => {};
  let shown = false;
  return (line) => {
    if (line === undefined && !shown) return;
    process.stderr.write(`\r\u001b[K${line?.slice(0, (process.stderr.columns || 80) - 1) ?? ""}`);
    shown = line !== undefined;
  };
}

export interface Screen {
  readonly columns: number;
  readonly rows: number;
  /** Puts `lines` in the place of those before. They must be `visible`; what is wider than the screen is cut. */
  draw(lines: readonly string[]): void;
}

/** What is written to a terminal so that `lines` stand where the last `before` lines stood. Pure. */
export function redrawn(lines: readonly string[], before: number, columns: number): string {
  const up = before > 0 ? `\u001b[${before}A` : "";
  // Each line is cleared behind its text, what is left of the longer table of before below.
  return `\r${up}${lines.map((line) => `${line.slice(0, Math.max(1, columns - 1))}\u001b[K\n`).join("")}\u001b[J`;
}

/** Undefined where standard output is no terminal. */
export function processScreen(): Screen | undefined {
  const { stdout } = process;
  if (stdout.isTTY !== true) return undefined;
  let before = 0;
  const screen: Screen = {
    // A serial console says 0.
    get columns() {
      return stdout.columns || 80;
    },
    get rows() {
      return stdout.rows || 24;
    },
    draw(lines) {
      stdout.write(redrawn(lines, before, screen.columns));
      before = lines.length;
    },
  };
  return screen;
}
