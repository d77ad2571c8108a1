// Runs a command as a user would type it, but in this process, which is faster than a separate one.

import type { runCommand as runCommandOfSources } from "../../src/cli/program.ts";
import { processEnvironment } from "../../src/config/files/environment.ts";
import type { Ended } from "./cli.ts";
import { commandsOfProgram } from "./program.ts";

export interface CommandOptions {
  readonly variables?: Readonly<Record<string, string>>;
  /** The working directory; default: that of the tests. */
  readonly cwd?: string;
  /** Aborts like ^C. */
  readonly signal?: AbortSignal;
  /** Called with each line of results. */
  readonly print?: (line: string) => void;
  /** Simulates a terminal and is called with each drawing. Undefined: results go to a pipe. */
  readonly draw?: (lines: readonly string[]) => void;
  /** The input from a pipe; default: empty. */
  readonly stdin?: string;
  /** The user's answers, one per question; then the input ends. Takes precedence over `stdin`. */
  readonly answers?: readonly string[];
  /** Runs the command; default: that of the program under test. */
  readonly runCommand?: typeof runCommandOfSources;
}

export interface EndedCommand extends Ended {
  /** Lines of progress as the user sees them; undefined: erased. */
  readonly progress: readonly (string | undefined)[];
  /** The questions asked. Those with a hidden answer are followed by `(hidden)`. */
  readonly questions: readonly string[];
}

/** Runs `tagferry` with these arguments until it ends. */
export async function command(args: readonly string[], options: CommandOptions = {}): Promise<EndedCommand> {
  const { variables = {}, signal = new AbortController().signal } = options;
  const progress: (string | undefined)[] = [];
  const questions: string[] = [];
  const answers = options.answers?.values();
  const ended = { stdout: "", stderr: "" };
  const { runCommand = (await commandsOfProgram()).runCommand } = options;
  const status = await runCommand(args, {
    print(line) {
      ended.stdout += `${line}\n`;
      options.print?.(line);
    },
    complain: (line) => void (ended.stderr += `${line}\n`),
    async write(text) {
      ended.stdout += text;
      return true;
    },
    progress: (line) => void progress.push(line),
    screen: options.draw && { columns: 100, rows: 30, draw: options.draw },
    input: {
      typed: answers !== undefined,
      readAll: async () => options.stdin ?? "",
      async ask(question, { hidden = false } = {}) {
        questions.push(hidden ? `${question} (hidden)` : question);
        return answers?.next().value;
      },
    },
    environment: { ...processEnvironment(), variables, ...(options.cwd !== undefined && { cwd: options.cwd }) },
    interactive: false,
    signal,
    onHangUp() {},
  });
  return { status, ...ended, progress, questions };
}
