// An issue of a configuration: its position, message and hint.
import { createHash } from "node:crypto";
import { withoutSecrets } from "../../lib/text/without-secrets.ts";
import { excerpt } from "./excerpt.ts";
import type { Position } from "./node.ts";

export interface ConfigIssue extends Position {
  readonly severity: "error" | "warning";
  /** `sources.bus1.devices[0].unit`; empty for the whole file. */
  readonly path: string;
  /** The expected and the found value. */
  readonly message: string;
  /** The purpose of the field, or what to write. */
  readonly hint?: string;
  /** The line of the file and a second line with a caret below the column. Secrets are hidden. */
  readonly excerpt?: string;
}

export interface Place {
  readonly at: Position;
  readonly path: string;
}

/** Enough to tell configurations apart, and short enough for a table. */
const checksumDigits = 12;

/** Collects issues. Equal issues at one position are kept once, even if a template serves many tags. */
export class Issues {
  readonly #issues = new Map<string, ConfigIssue & { readonly whole: boolean }>();
  readonly #lines = new Map<string, readonly string[]>();
  readonly #hash = createHash("sha256");

  /** Registers a file of the configuration. */
  read(file: string, bytes: Uint8Array, text: string): void {
    if (!this.#lines.has(file)) this.#hash.update(bytes);
    this.#lines.set(file, text.split(/\r?\n/));
  }

  /** See `Config.checksum`. */
  get checksum(): string {
    return this.#hash.copy().digest("hex").slice(0, checksumDigits);
  }

  /** See `Config.files`. */
  get files(): readonly string[] {
    return [...this.#lines.keys()];
  }

  error(place: Place, message: string, hint?: string): void {
    this.#add("error", place, message, hint);
  }

  warn(place: Place, message: string, hint?: string): void {
    this.#add("warning", place, message, hint);
  }

  get errors(): number {
    return [...this.#issues.values()].filter(({ severity }) => severity === "error").length;
  }

  /** By file in the order of their first issue, then by position. */
  list(): readonly ConfigIssue[] {
    const files = [...new Set([...this.#issues.values()].map(({ file }) => file))];
    return [...this.#issues.values()]
      .toSorted((a, b) => files.indexOf(a.file) - files.indexOf(b.file) || a.line - b.line || a.column - b.column)
      .map(({ whole, ...issue }) => {
        const shown = whole ? undefined : excerpt(this.#lines.get(issue.file) ?? [], issue.line, issue.column);
        return shown === undefined ? issue : { ...issue, excerpt: shown };
      });
  }

  /** All texts of a file pass through here into messages, so that secrets are removed. */
  #add(severity: ConfigIssue["severity"], place: Place, text: string, advice: string | undefined): void {
    const { at } = place;
    const path = withoutSecrets(place.path);
    const message = withoutSecrets(text);
    const hint = advice === undefined ? undefined : withoutSecrets(advice);
    // An issue about the whole file has no excerpt.
    const whole = path === "" && "kind" in place;
    const key = `${at.file}:${at.line}:${at.column} ${message}`;
    if (this.#issues.has(key)) return;
    this.#issues.set(key, { severity, ...at, path, message, ...(hint !== undefined && { hint }), whole });
  }
}

/** The issue as text: position, path and message, then the hint, then the excerpt. */
export function formatIssue(issue: ConfigIssue): string {
  const position = `${issue.file}:${issue.line}:${issue.column}  `;
  const path = issue.path === "" ? "" : `${issue.path}  `;
  const text = `${position}${issue.severity === "warning" ? "warning: " : ""}${path}${issue.message}`;
  return [
    text,
    ...(issue.hint === undefined ? [] : [`${" ".repeat(position.length)}${issue.hint}`]),
    ...(issue.excerpt === undefined ? [] : [issue.excerpt]),
  ].join("\n");
}
