// What is wrong with a configuration, where it stands and how to mend it.
import type { Position } from "./node.ts";

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

/** Where something is wrong. */
export interface Place {
  readonly at: Position;
  readonly path: string;
}

/** Gathers issues; the same one at the same place is kept once, however many tags a template serves. */
export class Issues {
  readonly #issues = new Map<string, ConfigIssue>();

  error(place: Place, message: string, hint?: string): void {
    this.#add("error", place, message, hint);
  }

  warn(place: Place, message: string, hint?: string): void {
    this.#add("warning", place, message, hint);
  }

  get errors(): number {
    return this.list().filter(({ severity }) => severity === "error").length;
  }

  /** By file in the order of their first issue, then by position. */
  list(): readonly ConfigIssue[] {
    const files = [...new Set([...this.#issues.values()].map(({ file }) => file))];
    return [...this.#issues.values()].toSorted(
      (a, b) => files.indexOf(a.file) - files.indexOf(b.file) || a.line - b.line || a.column - b.column,
    );
  }

  #add(severity: ConfigIssue["severity"], { at, path }: Place, message: string, hint: string | undefined): void {
    const key = `${at.file}:${at.line}:${at.column} ${message}`;
    if (this.#issues.has(key)) return;
    this.#issues.set(key, { severity, ...at, path, message, ...(hint !== undefined && { hint }) });
  }
}

/** Two lines for people: position, path and message; below the message the hint. */
export function formatIssue(issue: ConfigIssue): string {
  const position = `${issue.file}:${issue.line}:${issue.column}  `;
  const path = issue.path === "" ? "" : `${issue.path}  `;
  const text = `${position}${issue.severity === "warning" ? "warning: " : ""}${path}${issue.message}`;
  return issue.hint === undefined ? text : `${text}\n${" ".repeat(position.length)}${issue.hint}`;
}
