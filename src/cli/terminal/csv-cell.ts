// A cell of a CSV file that people will open in a spreadsheet.

/**
 * Text as a cell, quoted where it has to be. What a spreadsheet would take for a formula (a first character of = + - @,
 * tab or carriage return) gets a ' before it. For text only: numbers go as they are.
 */
export function csvCell(text: string): string {
  const guarded = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded;
}

/** The shortest text that reads back as the same double. */
export function numberCell(value: number): string {
  return Object.is(value, -0) ? "-0" : String(value);
}
