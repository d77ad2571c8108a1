// Maps the end of a command to an exit status and an error message, and logs uncaught errors.
import { AgentError, errorCodes, fileFailure, isAgentError, reasonOf, remedyOf } from "../../core/errors.ts";
import type { Logger } from "../../core/runtime.ts";
import { isAbort } from "../../lib/flow/abort.ts";
import { visible } from "../../lib/text/visible.ts";
import { withoutSecrets } from "../../lib/text/without-secrets.ts";
import type { Console } from "./console.ts";

/** Exit statuses; from 64 on those of sysexits.h. */
export const exitStatus = {
  done: 0,
  failed: 1,
  usage: 2,
  unreachable: 69,
  inUse: 75,
  refused: 77,
  config: 78,
} as const;
export type ExitStatus = (typeof exitStatus)[keyof typeof exitStatus];

/** Thrown by a command that cannot do its task. Prints the message and exits with `status`. */
export class CommandFailed extends Error {
  override readonly name = "CommandFailed";
  readonly status: ExitStatus;

  constructor(message: string, status: ExitStatus = exitStatus.failed) {
    super(message);
    this.status = status;
  }
}

/** The exit status and hint of `error`. An error of a library means that the device is unreachable. */
export function deviceFailure(error: unknown): { readonly message: string; readonly hint: string; exit: ExitStatus } {
  const { code, message, hint } = isAgentError(error)
    ? error
    : new AgentError("SOURCE_UNREACHABLE", reasonOf(error), { hint: remedyOf(error) });
  return { message, hint, exit: errorCodes[code].exit };
}

/** Resolves with the status of `command`, or prints its failure and resolves with that status. Never rejects. */
export async function exitStatusOf(command: () => Promise<number | void>, io: Console): Promise<number> {
  try {
    return (await command()) ?? exitStatus.done;
  } catch (error) {
    if (error instanceof CommandFailed) {
      io.complain(`tagferry: ${error.message}`);
      return error.status;
    }
    if (isAgentError(error)) {
      const { configIssues } = await import("../../config/load.ts");
      const { formatIssue } = await import("../../config/nodes/issue.ts");
      for (const issue of configIssues(error)) io.complain(formatIssue(issue));
      io.complain(withoutSecrets(`tagferry: ${error.message}\n  ${error.hint}`));
      return errorCodes[error.code].exit;
    }
    if (isAbort(error, io.signal)) return exitStatus.done;
    const failure = fileFailure(error);
    if (failure) {
      io.complain(visible(`tagferry: ${failure.message}`));
      io.complain(visible(`  ${failure.remedy}`));
      return exitStatus.failed;
    }
    // A file error is not a defect of the program, so a stack would not help.
    if (error instanceof Error && "syscall" in error && "path" in error && typeof error.path === "string") {
      const { fileProblem } = await import("../../lib/files/paths.ts");
      io.complain(`tagferry: ${visible(error.path)}: ${fileProblem(error)}`);
      return exitStatus.failed;
    }
    io.complain(`tagferry: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    return exitStatus.failed;
  }
}

export interface CommandKind {
  /** The command runs until a signal stops it, which is not a failure. */
  readonly goesOn?: true;
  /** A driver validates the arguments. Invalid ones are wrong usage, not an invalid configuration. */
  readonly judged?: true;
}

export async function failureOf(
  error: unknown,
  { goesOn, judged }: CommandKind,
  { signal }: Console,
): Promise<unknown> {
  if (!goesOn && isAbort(error, signal)) return new CommandFailed("stopped before the end");
  if (!judged) return error;
  const { configIssues } = await import("../../config/load.ts");
  const { z } = await import("zod");
  if (error instanceof z.ZodError) {
    const issues = error.issues.map(({ path, message }) => `${path.join(".")} ${message}`);
    return new CommandFailed(issues.join("; "), exitStatus.usage);
  }
  return isAgentError(error, "CONFIG_INVALID") && configIssues(error).length === 0
    ? new CommandFailed(error.message, exitStatus.usage)
    : error;
}

/** Logs uncaught errors and keeps the program running: stored points are safe, and each source has a watchdog. */
export function surviveDefects(log: Logger): Disposable {
  const rejected = (error: unknown) => log.error({ err: error }, "unhandled promise rejection");
  const thrown = (error: unknown) => log.error({ err: error }, "uncaught error");
  process.on("unhandledRejection", rejected);
  process.on("uncaughtException", thrown);
  return {
    [Symbol.dispose]() {
      process.off("unhandledRejection", rejected);
      process.off("uncaughtException", thrown);
    },
  };
}
