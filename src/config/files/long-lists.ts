// Finds long block lists in YAML text so that they can be parsed in pieces. The parser needs 13 KB for a tag of 100
// characters, too much for 100,000 tags in one document.
//
//     tags:                              tags:
//       - { input: a, topic: b }           - MARKER        replaces the pieces
//       - { input: c, topic: d }   =>
//       ...                              each piece: `- ...` lines, a list by itself
import { type Document, isScalar, isSeq, visit } from "yaml";

/** A list that is parsed separately. All offsets refer to the text. */
export interface LongList {
  readonly from: number;
  readonly to: number;
  /** Spaces before each dash. */
  readonly indent: number;
  /** Offsets of the pieces; each starts with an entry. */
  readonly pieces: readonly number[];
}

export interface Lengths {
  /** Minimum number of entries of a long list. */
  readonly list: number;
  /** A piece ends with the entry that exceeds this many characters. */
  readonly piece: number;
}

interface OpenList {
  readonly from: number;
  readonly indent: number;
  readonly pieces: number[];
  entries: number;
}

/** The outermost long lists by indentation alone. The caller must check them, as block scalars may look like lists. */
export function longLists(text: string, { list: least, piece }: Lengths): readonly LongList[] {
  const found: LongList[] = [];
  const open: OpenList[] = [];
  const close = (indent: number, to: number) => {
    for (let list = open.at(-1); list && list.indent > indent; list = open.at(-1)) {
      open.pop();
      if (list.entries < least) continue;
      while ((found.at(-1)?.from ?? -1) >= list.from) found.pop();
      found.push({ from: list.from, to, indent: list.indent, pieces: list.pieces });
    }
  };
  for (let start = 0; start < text.length; ) {
    const newLine = text.indexOf("\n", start);
    const end = newLine < 0 ? text.length : newLine + 1;
    let at = start;
    while (text[at] === " ") at++;
    const indent = at - start;
    if (!isBlank(text, at)) {
      const isEntry = text[at] === "-" && (text[at + 1] === " " || isBlank(text, at + 1));
      close(isEntry ? indent : indent - 1, start);
      if (isEntry) addEntry(open, indent, start, piece);
    }
    start = end;
  }
  close(-1, text.length);
  return found;
}

function addEntry(open: OpenList[], indent: number, start: number, piece: number): void {
  const list = open.at(-1);
  if (list?.indent !== indent) {
    open.push({ from: start, indent, pieces: [start], entries: 1 });
    return;
  }
  list.entries++;
  if (start - (list.pieces.at(-1) ?? 0) >= piece) list.pieces.push(start);
}

/** Whether the rest of the line is empty or a comment. */
function isBlank(text: string, at: number): boolean {
  return at >= text.length || text[at] === "\n" || text[at] === "\r" || text[at] === "#";
}

/** The text with each long list replaced by a marker. */
export class Skeleton {
  readonly text: string;
  readonly #lists = new Map<string, LongList>();
  /** Positions in the skeleton where text was removed, with the removed length. */
  readonly #cuts: { readonly at: number; readonly length: number }[] = [];

  constructor(text: string, lists: readonly LongList[], marker: string) {
    let skeleton = "";
    let end = 0;
    for (const [index, list] of lists.entries()) {
      const name = `${marker}${index}`;
      this.#lists.set(name, list);
      skeleton += `${text.slice(end, list.from)}${" ".repeat(list.indent)}- ${name}\n`;
      this.#cuts.push({ at: skeleton.length, length: list.to - list.from - list.indent - name.length - 3 });
      end = list.to;
    }
    this.text = skeleton + text.slice(end);
  }

  original(offset: number): number {
    return this.#cuts.reduce((sum, { at, length }) => (offset >= at ? sum + length : sum), offset);
  }

  /** Whether the parser sees a list entry at every marker. */
  isTrue(document: Document.Parsed): boolean {
    let found = 0;
    visit(document, {
      Scalar: (_key, node, path) => {
        if (this.listOf(node) && isSeq(path.at(-1))) found++;
      },
    });
    return found === this.#lists.size;
  }

  listOf(node: unknown): LongList | undefined {
    return isScalar(node) && node.type === "PLAIN" ? this.#lists.get(String(node.source)) : undefined;
  }
}
