// A command as a user types it, run in this process: quicker than a process of its own.

import type { runCommand as runCommandOfSources } from "../../src/cli/program.ts";
import { processEnvironment } from "../../src/config/environment.ts";
import type { Ended } from "./cli.ts";
import { commandsOfProgram } from "./program.ts";

export interface CommandOptions {
  readonly variables?: Readonly<Record<string, string>>;
  /** The working directory; default: that of the tests. */
  readonly cwd?: string;
  /** ^C. */
  readonly signal?: AbortSignal;
  /** Sees each line of results as it comes. */
  readonly print?: (line: string) => void;
  /** A terminal that sees each drawing; undefined: results go to a pipe. */
  readonly draw?: (lines: readonly string[]) => void;
  /** What a pipe brings; empty where nothing is said. */
  readonly stdin?: string;
  /** What a person types, an answer each; then the input ends. Goes before `stdin`. */
  readonly answers?: readonly string[];
  /** What runs the command; default: that of the program under test. */
  readonly runCommand?: typeof runCommandOfSources;
}

export interface EndedCommand extends Ended {
  /** Lines of progress as a person saw them; undefined: gone. */
  readonly progress: readonly (string | undefined)[];
  /** Questions that were asked, those with a hidden answer followed by `(hidden)`. */
  readonly questions: readonly string[];
}

/** Runs `tagferry` with these arguments to its end. */
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
