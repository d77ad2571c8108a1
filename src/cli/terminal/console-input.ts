// Input of a command: typed answers or a pipe.
import type { Interface } from "node:readline";
import { Writable } from "node:stream";

export interface ConsoleInput {
  readonly typed: boolean;
  /** The whole input of a pipe. Rejects if it is longer than `maxInputBytes`. */
  readAll(): Promise<string>;
  /** One line that answers `question`; undefined: end of the input. `hidden`: typed characters are not shown. */
  ask(question: string, options?: { readonly hidden?: boolean }): Promise<string | undefined>;
}

const maxInputBytes = 64 * 2 ** 20;

/** The input of this process. Standard input is not touched before the first use. */
export function processInput(): ConsoleInput & Disposable {
  let lines: Lines | undefined;
  return {
    get typed() {
      return process.stdin.isTTY === true;
    },
    async readAll() {
      const chunks: Buffer[] = [];
      let length = 0;
      for await (const chunk of process.stdin) {
        const bytes = Buffer.from(chunk);
        length += bytes.length;
        if (length > maxInputBytes) throw new Error(`the input is longer than ${maxInputBytes / 2 ** 20} MiB`);
        chunks.push(bytes);
      }
      return Buffer.concat(chunks).toString("utf8");
    },
    ask(question, { hidden = false } = {}) {
      lines ??= new Lines();
      return lines.ask(question, hidden);
    },
    [Symbol.dispose]() {
      lines?.close();
    },
  };
}

/** One reader for all questions. Lines typed ahead are kept for the next question. */
class Lines {
  readonly #reader: Interface;
  readonly #typedAhead: string[] = [];
  #waiting: ((line: string | undefined) => void) | undefined;
  #ended = false;
  #muted = false;

  constructor() {
    const output = new Writable({
      write: (chunk, _encoding, done) => {
        if (!this.#muted) process.stderr.write(chunk);
        done();
      },
    });
    // Loaded only when a question is asked.
    const { createInterface } = process.getBuiltinModule("node:readline");
    this.#reader = createInterface({ input: process.stdin, output, terminal: process.stdin.isTTY === true });
    this.#reader.on("line", (line) => {
      const waiting = this.#waiting;
      this.#waiting = undefined;
      if (waiting) waiting(line);
      else this.#typedAhead.push(line);
    });
    this.#reader.on("close", () => {
      this.#ended = true;
      this.#waiting?.(undefined);
    });
    // In raw mode, ^C does not raise a signal.
    this.#reader.on("SIGINT", () => {
      process.kill(process.pid, "SIGINT");
      this.#reader.close();
    });
  }

  async ask(question: string, hidden: boolean): Promise<string | undefined> {
    process.stderr.write(question);
    // The prompt is already printed. The reader repeats it when it redraws an edited line.
    this.#reader.setPrompt(question);
    this.#muted = hidden;
    const line = await new Promise<string | undefined>((resolve) => {
      const ahead = this.#typedAhead.shift();
      if (ahead !== undefined || this.#ended) resolve(ahead);
      else this.#waiting = resolve;
    });
    this.#muted = false;
    if (hidden && !this.#ended) process.stderr.write("\n");
    return line;
  }

  close(): void {
    this.#muted = false;
    this.#reader.close();
  }
}
