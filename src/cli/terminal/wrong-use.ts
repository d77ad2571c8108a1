// Arguments that only the part they are meant for can judge: wrong ones are wrong use, not a wrong configuration.
import { z } from "zod";
import { configIssues } from "../../config/load.ts";
import { isAgentError } from "../../core/errors.ts";
import type { Console } from "./console.ts";
import { type ExitStatus, exitStatus } from "./exit-status.ts";

/** As `command` ends; `usage`, with a word, where it would not take its arguments. */
export async function judged(command: Promise<ExitStatus>, io: Console): Promise<ExitStatus> {
  try {
    return await command;
  } catch (error) {
    const message = complaint(error);
    if (message === undefined) throw error;
    io.complain(`tagferry: ${message}`);
    return exitStatus.usage;
  }
}

function complaint(error: unknown): string | undefined {
  if (error instanceof z.ZodError)
    return error.issues.map(({ path, message }) => `${path.join(".")} ${message}`).join("; ");
  if (isAgentError(error, "CONFIG_INVALID") && configIssues(error).length === 0) return error.message;
  return undefined;
}
