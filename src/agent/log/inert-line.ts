// A line of the log for a terminal: what a device or the service gave as text must not be obeyed there.

/** Control characters of both sets, and those that turn the direction of writing or end a line. */
const obeyed = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** Ends of lines that a stack has of itself. */
const stackEnd = /\n(?= {4}at |caused by: )/;

/**
 * A line of JSON in which those are written out in every text (`\u001b`), names included. The lines of a stack stay
 * lines: they are shown indented.
 */
export function inert(line: string): string {
  return `${JSON.stringify(written(JSON.parse(line)))}\n`;
}

function written(value: unknown, name?: string): unknown {
  if (typeof value === "string")
    return name === "stack" ? value.split(stackEnd).map(visible).join("\n") : visible(value);
  if (Array.isArray(value)) return value.map((inner: unknown) => written(inner));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [visible(key), written(inner, key)]));
}

function visible(text: string): string {
  return text.replace(obeyed, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
