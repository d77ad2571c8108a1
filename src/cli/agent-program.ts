// The agent as a program of its own: what it needs and nothing of the other commands, on machines that are small.
import { concluded } from "./concluded.ts";
import { processConsole } from "./console.ts";
import { run } from "./run.ts";

/** Runs the agent on this process. Resolves with the exit status; never rejects. */
export async function runAgent(config: string): Promise<number> {
  using io = processConsole();
  return await concluded(() => run({ config }, io), io);
}
