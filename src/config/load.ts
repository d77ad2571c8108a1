// Reads a configuration file and all it refers to, and gives a checked `Config` or every error at once.
import { AgentError, isAgentError } from "../core/errors.ts";
import type { Config } from "./config.ts";
import type { Environment } from "./environment.ts";
import type { ConfigIssue } from "./issue.ts";

/**
 * Resolves with the configuration in `file` (relative to `environment.cwd`). Rejects with `CONFIG_INVALID`, whose
 * message says how many errors there are and whose `cause` is a `ConfigIssues`; see `configIssues`.
 */
export declare function loadConfig(file: string, environment: Environment): Promise<Config>;

/** Everything wrong with a configuration, as the `cause` of a `CONFIG_INVALID`. */
export class ConfigIssues extends Error {
  override readonly name = "ConfigIssues";
  /** Errors and warnings in the order of the files. */
  readonly issues: readonly ConfigIssue[];

  constructor(issues: readonly ConfigIssue[]) {
    super(issues.map(({ file, line, column, message }) => `${file}:${line}:${column} ${message}`).join("\n"));
    this.issues = issues;
  }
}

/** The issues that `error` carries; none if it is not an error of `loadConfig`. */
export function configIssues(error: unknown): readonly ConfigIssue[] {
  return isAgentError(error, "CONFIG_INVALID") && error.cause instanceof ConfigIssues ? error.cause.issues : [];
}

/** The error that `loadConfig` rejects with. */
export function configError(file: string, issues: readonly ConfigIssue[]): AgentError {
  const count = issues.filter(({ severity }) => severity === "error").length;
  const message = `${file}: ${count} ${count === 1 ? "error" : "errors"}`;
  return new AgentError("CONFIG_INVALID", message, { cause: new ConfigIssues(issues) });
}
