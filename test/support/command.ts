// A command as a user types it, run in this process: quicker than a process of its own.
import { runCommand } from "../../src/cli/program.ts";
import { processEnvironment } from "../../src/config/environment.ts";
import type { Ended } from "./cli.ts";

export interface CommandOptions {
  readonly variables?: Readonly<Record<string, string>>;
  /** ^C. */
  readonly signal?: AbortSignal;
  /** Sees each line of results as it comes. */
  readonly print?: (line: string) => void;
}

export interface EndedCommand extends Ended {
  /** Lines of progress as a person saw them; undefined: gone. */
  readonly progress: readonly (string | undefined)[];
}

/** Runs `tagferry` with these arguments to its end. */
export async function command(args: readonly string[], options: CommandOptions = {}): Promise<EndedCommand> {
  const { variables = {}, signal = new AbortController().signal } = options;
  const progress: (string | undefined)[] = [];
  const ended = { stdout: "", stderr: "" };
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
    environment: { ...processEnvironment(), variables },
    interactive: false,
    signal,
    onHangUp() {},
  });
  return { status, ...ended, progress };
}
