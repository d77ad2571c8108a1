// Medians of the rounds as a Markdown table, with the ratio of each figure to that of the first Telegraf.
import { median } from "../agent/process-usage.ts";
import type { Figures } from "./run.ts";

/** The results of one program with one load: figures of the successful rounds, and the errors of the others. */
export interface Rounds {
  readonly program: string;
  readonly figures: Figures[];
  readonly failures: string[];
}

/** Columns with a meaningful ratio. */
const compared = ["% of a core", "user µs a point", "MB", "most MB", "start s", "caught up after s", "received/s"];

export function table(title: string, programs: readonly Rounds[], reference: string | undefined): string {
  const columns = [...new Set(programs.flatMap(({ figures }) => figures.flatMap((round) => Object.keys(round))))];
  const of = (rounds: Rounds | undefined, column: string) =>
    median((rounds?.figures ?? []).flatMap((round) => round[column] ?? []));
  const yardstick = programs.find(({ program }) => program === reference);
  const rows = programs.map((rounds) => {
    const cells = columns.map((column) => {
      const value = of(rounds, column);
      const ratio = value / of(yardstick, column);
      const isCompared = rounds !== yardstick && compared.includes(column) && Number.isFinite(ratio);
      return `${rounded(value)}${isCompared ? ` (${ratio.toFixed(2)} ×)` : ""}`;
    });
    return [rounds.program, ...cells, `${rounds.figures.length}${failed(rounds.failures)}`];
  });
  const head = ["program", ...columns, "rounds"];
  const lines = [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`);
  return `### ${title}\n\n${lines.join("\n")}\n`;
}

export function rounded(value: number): string {
  if (Number.isNaN(value)) return "–";
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return Number.isInteger(value) ? String(value) : value.toFixed(digits);
}

function failed(failures: readonly string[]): string {
  return failures.length === 0 ? "" : `, ${failures.length} failed`;
}
