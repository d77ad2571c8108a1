// What is left of YAML text without its long lists: what is parsed first.
import { type Document, isScalar, isSeq, visit } from "yaml";
import type { LongList } from "./long-lists.ts";

/** The text with one marker in place of each long list. */
export class Skeleton {
  readonly text: string;
  readonly #lists = new Map<string, LongList>();
  /** Where in the skeleton something was left out, and how much. */
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

  /** Whether the parser sees an entry of a list wherever one was taken for it. */
  isTrue(document: Document.Parsed): boolean {
    let found = 0;
    visit(document, {
      Scalar: (_key, node, path) => {
        if (this.listOf(node) && isSeq(path.at(-1))) found++;
      },
    });
    return found === this.#lists.size;
  }

  /** The list that a marker stands for. */
  listOf(node: unknown): LongList | undefined {
    return isScalar(node) && node.type === "PLAIN" ? this.#lists.get(String(node.source)) : undefined;
  }
}
