// Saves memory, since a source may have 100,000 tags: tags share equal parts, and the place of each tag in its file is
// stored as numbers. The text of a tag is read from its file on demand.
import { readFile } from "node:fs/promises";
import { withoutSecrets } from "../../lib/text/without-secrets.ts";
import { type Position, samePosition } from "../nodes/node.ts";

/** Most distinct parts of a member. Members with more, such as topics, have little to share. */
const maxParts = 1_000;

/** Shares equal parts between tags, which saves a kilobyte for each. */
export class SharedParts {
  /** The shared object, by member name and JSON. */
  readonly #parts = new Map<string, Map<string, object>>();

  /** A copy of `whole` that shares equal plain-data members with other copies. They must not be modified. */
  of<Whole extends object>(whole: Whole): Whole {
    // Spreading allocates only what the members need, unlike `Object.fromEntries`.
    const copy = { ...whole };
    for (const [name, member] of Object.entries(whole)) Reflect.set(copy, name, this.#shared(name, member));
    return copy;
  }

  #shared(name: string, member: unknown): unknown {
    if (typeof member !== "object" || member === null || !isPlain(member)) return member;
    let parts = this.#parts.get(name);
    if (!parts) this.#parts.set(name, (parts = new Map()));
    const key = JSON.stringify(member);
    const part = parts.get(key);
    if (part) return part;
    if (parts.size < maxParts) parts.set(key, member);
    return member;
  }
}

/** Whether JSON represents the value completely. */
function isPlain(value: unknown): boolean {
  if (value === null || typeof value === "boolean" || typeof value === "string") return true;
  if (typeof value === "number") return Number.isFinite(value) && !Object.is(value, -0);
  if (typeof value !== "object") return false;
  if (Array.isArray(value)) return value.every(isPlain);
  return Object.getPrototypeOf(value) === Object.prototype && Object.values(value).every(isPlain);
}

export class TagPlaces {
  readonly #files: string[] = [];
  /** File index, line and column of each tag, and the index in `#templates`. */
  readonly #numbers: number[] = [];
  readonly #templates: Position[] = [];
  readonly #templateIndices = new Map<string, number>();

  /** `own`: the entry with the fields of the tag, where that is one of a template. */
  add(origin: Position, own: Position = origin): void {
    let index = this.#files.indexOf(origin.file);
    if (index < 0) index = this.#files.push(origin.file) - 1;
    this.#numbers.push(index, origin.line, origin.column, samePosition(origin, own) ? -1 : this.#templateIndex(own));
  }

  at(tag: number): Position | undefined {
    const [file = -1, line = 0, column = 0] = this.#numbers.slice(4 * tag, 4 * tag + 3);
    const name = this.#files[file];
    return name === undefined ? undefined : { file: name, line, column };
  }

  /** Undefined: the tag is written out. */
  template(tag: number): Position | undefined {
    return this.#templates[this.#numbers[4 * tag + 3] ?? -1];
  }

  #templateIndex({ file, line, column }: Position): number {
    const key = `${line}:${column} ${file}`;
    const index = this.#templateIndices.get(key) ?? this.#templates.push({ file, line, column }) - 1;
    this.#templateIndices.set(key, index);
    return index;
  }
}

const mostLines = 40;

/** The YAML of the tag, and of its entry in a template. Undefined as for `entryText`. */
export async function tagText(place: Position, template?: Position): Promise<string | undefined> {
  const [own, shared] = await Promise.all([entryText(place), template && entryText(template)]);
  if (!template || own === undefined || shared === undefined) return own;
  return `${own}\n# template, line ${template.line}${template.file === place.file ? "" : " of another file"}:\n${shared}`;
}

/** The YAML of an entry, or a row in a table. Undefined: the file cannot be read, or has fewer lines by now. */
async function entryText({ file, line, column }: Position): Promise<string | undefined> {
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
