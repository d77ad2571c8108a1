// What happens at the end: how a command ends, with its exit status and the message where it failed; and errors that were not caught.
import { AgentError, errorCodes, fileFailure, isAgentError, reasonOf, remedyOf } from "../../core/errors.ts";
import type { Logger } from "../../core/runtime.ts";
import { isAbort } from "../../lib/abort.ts";
import { withoutSecrets } from "../../lib/without-secrets.ts";
import type { Console } from "./console.ts";
import { visible } from "./text.ts";

/** What each exit status means. From 64 on they are those of sysexits.h. */
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

/** A command throws it where it cannot do what was asked: the message is shown, and the command ends with `status`. */
export class CommandFailed extends Error {
  override readonly name = "CommandFailed";
  readonly status: ExitStatus;

  constructor(message: string, status: ExitStatus = exitStatus.failed) {
    super(message);
    this.status = status;
  }
}

/** `error` as a failure that has an exit status and a hint. What a library threw means that the device cannot be reached. */
export function deviceFailure(error: unknown): { readonly message: string; readonly hint: string; exit: ExitStatus } {
  const { code, message, hint } = isAgentError(error)
    ? error
    : new AgentError("SOURCE_UNREACHABLE", reasonOf(error), { hint: remedyOf(error) });
  return { message, hint, exit: errorCodes[code].exit };
}

/** Resolves as `command` does, or with the exit status of its failure after the message is on `io`. Never rejects. */
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
      const { formatIssue } = await import("../../config/issue.ts");
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
    // A file that cannot be read or written is no defect of the program: a stack would not help.
    if (error instanceof Error && "syscall" in error && "path" in error && typeof error.path === "string") {
      const { fileProblem } = await import("../../config/environment.ts");
      io.complain(`tagferry: ${visible(error.path)}: ${fileProblem(error)}`);
      return exitStatus.failed;
    }
    io.complain(`tagferry: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    return exitStatus.failed;
  }
}

export interface CommandKind {
  /** A signal ends it, and that is no failure. */
  readonly goesOn?: true;
  /** A driver judges its arguments: what it does not take is wrong use, not an invalid configuration. */
  readonly judged?: true;
}

/** What `error` means for a command of this kind. */
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

/**
 * Logs errors that nobody handles, with their stack, and lets the program go on: what is stored stays stored, and each
 * source notices by its own watchdog when its connection no longer works. Disposing it restores Node's behaviour.
 */
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
