// Tables for a terminal: cells below each other, and nothing in them that the terminal would obey.

/** Lines of cells, padded so that they stand below each other, indented by two. */
export function columns(lines: readonly (readonly string[])[]): readonly string[] {
  const shown = lines.map((cells) => cells.map(visible));
  const widths: number[] = [];
  for (const cells of shown) for (const [i, cell] of cells.entries()) widths[i] = Math.max(widths[i] ?? 0, cell.length);
  return shown.map((cells) => `  ${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join("  ")}`.trimEnd());
}

/** Control characters, and those that turn the direction of writing or end a line. */
const unseen = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** Text that a device or the service gave, as it may be shown: what a terminal would obey is written out (`\u001b`). */
export function visible(text: string): string {
  return text.replace(unseen, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
