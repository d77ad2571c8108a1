import { readdirSync, readFileSync } from "node:fs";
import { eventually } from "./eventually.ts";

/**
 * Stops a process as SIGSTOP does, and its connections stay open. Resolves when each of its threads has stopped: on a busy
 * machine some of them still run for a while after `kill` has returned.
 */
export async function suspend(pid: number): Promise<void> {
  process.kill(pid, "SIGSTOP");
  // Only Linux shows the threads of a process in files.
  if (process.platform !== "linux") return;
  await eventually(() => readdirSync(`/proc/${pid}/task`).every((thread) => stateOf(pid, thread) === "T"));
}

export function resume(pid: number): void {
  process.kill(pid, "SIGCONT");
}

/** The name of the thread, in parentheses before its state, may contain parentheses itself. */
function stateOf(pid: number, thread: string): string | undefined {
  return readFileSync(`/proc/${pid}/task/${thread}/stat`, "utf8").match(/.*\) (\w)/s)?.[1];
}
