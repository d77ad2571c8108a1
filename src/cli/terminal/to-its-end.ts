// Commands that end by themselves: one that was stopped before has not done what it was asked for.
import { isAbort } from "../../lib/abort.ts";
import type { Console } from "./console.ts";
import { type ExitStatus, exitStatus } from "./exit-status.ts";

/** As `command` ends; `failed`, with a word, where a signal ended it before. */
export async function toItsEnd(command: Promise<ExitStatus>, io: Console): Promise<ExitStatus> {
  try {
    return await command;
  } catch (error) {
    if (!isAbort(error, io.signal)) throw error;
    io.complain("tagferry: stopped before the end");
    return exitStatus.failed;
  }
}
