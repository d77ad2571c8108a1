// How a command ends: its exit status, and what is told where it failed.
import { errorCodes, isAgentError } from "../../core/errors.ts";
import { isAbort } from "../../lib/abort.ts";
import { withoutSecrets } from "../../lib/without-secrets.ts";
import type { Console } from "./console.ts";
import { exitStatus } from "./exit-status.ts";
import { visible } from "./table.ts";

/** As `command` ends, or the exit status of its failure, which is told on `io`. Never rejects. */
export async function concluded(command: () => Promise<number>, io: Console): Promise<number> {
  try {
    return await command();
  } catch (error) {
    if (isAgentError(error)) {
      const { configIssues } = await import("../../config/load.ts");
      const { formatIssue } = await import("../../config/issue.ts");
      for (const issue of configIssues(error)) io.complain(formatIssue(issue));
      io.complain(withoutSecrets(`tagferry: ${error.message}\n  ${error.hint}`));
      return errorCodes[error.code].exit;
    }
    if (isAbort(error, io.signal)) return exitStatus.done;
    if (isFileError(error)) {
      const { fileProblem } = await import("../../config/read-file.ts");
      const problem = fileProblem(error);
      io.complain(`tagferry: ${visible(error.path)}: ${problem}`);
      if (problem === "no permission") io.complain("  ask as the user of the agent or as root");
      return exitStatus.failed;
    }
    io.complain(`tagferry: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    return exitStatus.failed;
  }
}

/** A file that cannot be read or written is nothing wrong with the program, of which a stack would tell. */
function isFileError(error: unknown): error is Error & { readonly path: string } {
  return error instanceof Error && "syscall" in error && "path" in error && typeof error.path === "string";
}
