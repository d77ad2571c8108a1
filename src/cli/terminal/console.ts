// Input, output and stop signal of a command.

import { Writable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { type Environment, processEnvironment } from "../../config/files/environment.ts";
import { bytesOf } from "../../lib/flow/bytes-of.ts";

export interface Console {
  /** Prints results, which scripts may read. */
  print(line: string): void;
  /** Prints everything else: errors, progress, logs. */
  complain(line: string): void;
  /** Writes results without a line break. Resolves when there is room for more; false: the reader closed the output. */
  write(text: string): Promise<boolean>;
  /** A line that the next one replaces and the next result removes; undefined removes it. Terminals only. */
  progress(line: string | undefined): void;
  readonly input: ConsoleInput;
  /** A terminal on which results can be redrawn. Undefined: the output is a file or a pipe. */
  readonly screen: Screen | undefined;
  readonly environment: Environment;
  /** Whether a person reads the output. */
  readonly interactive: boolean;
  /** Aborts when the reader of the pipe closes it. Undefined: unknown. */
  readonly unread?: AbortSignal;
  /** Aborts on SIGINT and SIGTERM, and on SIGHUP unless `onHangUp` handles it. */
  readonly signal: AbortSignal;
  /** From now on SIGHUP calls `act` instead of stopping: the terminal may close, or an operator requests a reload. */
  onHangUp(act: () => void): void;
}

/** The terminal and npm both deliver ^C. Signals within this many milliseconds count as one. */
const sameSignalMs = 1_000;

interface ProcessConsole extends Console, Disposable {
  /** Resolves with the write error of the results. Undefined: none, or the reader closed the pipe. */
  unwritten(): Promise<Error | undefined>;
}

/** The console of this process. A second SIGINT or SIGTERM kills it at once. */
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
  // A closed reader (`tagferry demo | head -1`) is not a failure.
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
      // The error event follows the write asynchronously.
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

/** Resolves when the stream accepts more or has ended. */
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
  /** Replaces the lines drawn before. Lines must be `visible`; too long ones are cut. */
  draw(lines: readonly string[]): void;
}

/** The terminal output that replaces the last `before` lines by `lines`. Pure. */
export function redrawn(lines: readonly string[], before: number, columns: number): string {
  const up = before > 0 ? `\u001b[${before}A` : "";
  // Clears the rest of each line, and remaining lines of a longer table below.
  return `\r${up}${lines.map((line) => `${line.slice(0, Math.max(1, columns - 1))}\u001b[K\n`).join("")}\u001b[J`;
}

/** Undefined: standard output is not a terminal. */
function processScreen(): Screen | undefined {
  const { stdout } = process;
  if (stdout.isTTY !== true) return undefined;
  let before = 0;
  const screen: Screen = {
    // A serial console reports 0.
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

interface ConsoleInput {
  readonly typed: boolean;
  /** The whole input of a pipe. Rejects if it is longer than `maxInputBytes`. */
  readAll(): Promise<string>;
  /** One line that answers `question`; undefined: end of the input. `hidden`: typed characters are not shown. */
  ask(question: string, options?: { readonly hidden?: boolean }): Promise<string | undefined>;
}

const maxInputBytes = 64 * 2 ** 20;

/** The input of this process. Standard input is not touched before the first use. */
function processInput(): ConsoleInput & Disposable {
  let lines: ReturnType<typeof openLines> | undefined;
  return {
    get typed() {
      return process.stdin.isTTY === true;
    },
    async readAll() {
      const bytes = await bytesOf(process.stdin, maxInputBytes);
      if (!bytes) throw new Error(`the input is longer than ${maxInputBytes / 2 ** 20} MiB`);
      return bytes.toString("utf8");
    },
    ask(question, { hidden = false } = {}) {
      lines ??= openLines();
      return lines.ask(question, hidden);
    },
    [Symbol.dispose]() {
      lines?.close();
    },
  };
}

/** One reader for all questions. Lines typed ahead are kept for the next question. */
function openLines() {
  let isMuted = false;
  const output = new Writable({
    write: (chunk, _encoding, done) => {
      if (!isMuted) process.stderr.write(chunk);
      done();
    },
  });
  // Loaded only when a question is asked.
  const { createInterface } = process.getBuiltinModule("node:readline");
  const reader = createInterface({ input: process.stdin, output, terminal: process.stdin.isTTY === true });
  const lines: AsyncIterator<string, undefined> = reader[Symbol.asyncIterator]();
  // In raw mode, ^C does not raise a signal.
  reader.on("SIGINT", () => {
    process.emit("SIGINT");
    reader.close();
  });
  return {
    async ask(question: string, hidden: boolean): Promise<string | undefined> {
      process.stderr.write(question);
      // The prompt is already printed. The reader repeats it when it redraws an edited line.
      reader.setPrompt(question);
      isMuted = hidden;
      const { value, done = false } = await lines.next();
      isMuted = false;
      if (hidden && !done) process.stderr.write("\n");
      return value;
    },
    close(): void {
      isMuted = false;
      reader.close();
    },
  };
}
