// What is wrong with a configuration, where it stands and how to mend it.

export interface ConfigIssue {
  readonly severity: "error" | "warning";
  /** As the file was named, or as `include` and `tagsFrom` found it. */
  readonly file: string;
  /** Both from 1. */
  readonly line: number;
  readonly column: number;
  /** `sources.bus1.devices[0].unit`; empty for the whole file. */
  readonly path: string;
  /** What was expected and what stands there. */
  readonly message: string;
  /** What the field is for, or what to write. */
  readonly hint?: string;
}

/** Two lines for people: position, path and message; below the message the hint. */
export function formatIssue(issue: ConfigIssue): string {
  const path = issue.path === "" ? "" : `${issue.path}  `;
  const warning = issue.severity === "warning" ? "warning: " : "";
  const position = `${issue.file}:${issue.line}:${issue.column}  `;
  const text = `${position}${path}${warning}${issue.message}`;
  return issue.hint === undefined ? text : `${text}\n${" ".repeat(position.length)}${issue.hint}`;
}
