// Formats the output of commands. Escapes everything that controls a terminal.

import { visible } from "../../lib/text/visible.ts";
import { formatDuration } from "../../lib/time/duration.ts";
import type { Console } from "./console.ts";

/** Table rows with padded columns, indented by two. */
export function columns(lines: readonly (readonly string[])[]): readonly string[] {
  const shown = lines.map((cells) => cells.map(visible));
  const widths: number[] = [];
  for (const cells of shown) for (const [i, cell] of cells.entries()) widths[i] = Math.max(widths[i] ?? 0, cell.length);
  return shown.map((cells) => `  ${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join("  ")}`.trimEnd());
}

/** Prints JSON with `--json`, otherwise the lines. Integers that JSON would round become texts. */
export function printResult(
  { json = false }: { readonly json?: boolean },
  result: unknown,
  lines: () => readonly string[],
  io: Pick<Console, "print">,
): void {
  // In JSON, line breaks stand between texts only, and an escape stands for the character itself.
  if (json) io.print(JSON.stringify(result, exactNumber, 2).split("\n").map(visible).join("\n"));
  else for (const line of lines()) io.print(line);
}

export function exactNumber(_key: string, value: unknown): unknown {
  if (typeof value !== "bigint") return value;
  return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
}

/** 1 tag, 2 tags, 12,000 tags. */
export function count(n: number, what: string): string {
  return `${whole(n)} ${what}${n === 1 ? "" : "s"}`;
}

/** Adds thousands separators. Not by Intl, whose data would take 2 MB in a starting agent. */
function whole(n: number): string {
  return String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** Three significant digits, enough for estimates. */
export function number(value: number): string {
  return value >= 100 ? whole(value) : String(Number(value.toPrecision(3)));
}

export function percent(share: number): string {
  return share > 0 && share < 0.001 ? "less than 0.1 %" : `${number(share * 100)} %`;
}

/** A duration in its two largest units: 90_000 ms → `1m30s`. */
export function span(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))}ms`;
  if (ms < 10_000) return `${Math.round(ms / 100) / 10}s`;
  const smallest = ms < 3_600_000 ? 1_000 : ms < 86_400_000 ? 60_000 : 3_600_000;
  return formatDuration(ms - (ms % smallest));
}

/** The first 40 characters of a text, and `…` if it is longer. */
export function cut(text: string): string {
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}

/** `[######------------------] 25 %, 12 of 48 segments`, for `Console.progress`. `what` in the plural. */
export function progressBar(done: number, total: number, what: string): string {
  const width = 24;
  const share = total > 0 ? Math.min(1, done / total) : 1;
  const filled = Math.floor(share * width);
  return `[${"#".repeat(filled)}${"-".repeat(width - filled)}] ${Math.floor(share * 100)} %, ${done} of ${total} ${what}`;
}

/**
 * A text as a CSV cell. A leading = + - @, tab or carriage return gets a ' before it, against formulas. Not for
 * numbers.
 */
export function csvCell(text: string): string {
  const guarded = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded;
}

/** The shortest text that parses to the same double. */
export function numberCell(value: number): string {
  return Object.is(value, -0) ? "-0" : String(value);
}
