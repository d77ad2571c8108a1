// Where each tag of a source is written, and its text. Kept small, since a source may have 100,000 tags.
import { readFile } from "node:fs/promises";
import { withoutSecrets } from "../../lib/text/without-secrets.ts";
import type { Position } from "../nodes/node.ts";

export class TagPlaces {
  readonly #files: string[] = [];
  /** File index, line and column of each tag. */
  readonly #numbers: number[] = [];

  add({ file, line, column }: Position): void {
    let index = this.#files.indexOf(file);
    if (index < 0) index = this.#files.push(file) - 1;
    this.#numbers.push(index, line, column);
  }

  at(tag: number): Position | undefined {
    const [file = -1, line = 0, column = 0] = this.#numbers.slice(3 * tag, 3 * tag + 3);
    const name = this.#files[file];
    return name === undefined ? undefined : { file: name, line, column };
  }
}

const mostLines = 40;

/** The YAML of the tag, or its row in a table. Undefined: the file cannot be read, or has fewer lines by now. */
export async function tagText({ file, line, column }: Position): Promise<string | undefined> {
  const text = await readFile(file, "utf8").catch(() => undefined);
  const lines = text?.split(/\r?\n/).slice(line - 1, line - 1 + mostLines);
  const [first] = lines ?? [];
  if (!lines || first === undefined) return undefined;
  if (!/\.ya?ml$/.test(file)) return withoutSecrets(first);
  const head = first.slice(column - 1);
  const taken = [head];
  let open = depth(head);
  for (const next of lines.slice(1)) {
    const indent = next.length - next.trimStart().length;
    const isInside = head.startsWith("{")
      ? open > 0
      : indent >= column - 1 && next.trim() !== "" && !next.trim().startsWith("- ");
    if (!isInside) break;
    taken.push(next.slice(Math.min(indent, column - 1)));
    open += depth(next);
  }
  const [begin = "", ...rest] = taken;
  const whole = head.startsWith("{") ? closed(begin, rest) : taken;
  return withoutSecrets(whole.map((each, i) => `${i === 0 ? "- " : "  "}${each.trimEnd()}`).join("\n"));
}

/** How many braces of `text` stay open. Braces in quotes count as well; they are balanced in templates. */
function depth(text: string): number {
  return text.split("{").length - text.split("}").length;
}

/** Cuts what follows the closing brace, such as the next tag in the line. */
function closed(begin: string, rest: readonly string[]): readonly string[] {
  const all = [begin, ...rest].join("\n");
  let open = 0;
  for (let i = 0; i < all.length; i++) {
    if (all[i] === "{") open++;
    if (all[i] === "}" && --open === 0) return all.slice(0, i + 1).split("\n");
  }
  return [begin, ...rest];
}
