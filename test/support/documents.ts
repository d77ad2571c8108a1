// The documents of the repository, and what they quote.
import { globSync, readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { withSlashes } from "../../src/lib/files/paths.ts";

export const root = resolve(import.meta.dirname, "../..");
const foreign = new Set(["node_modules", ".git", "dist", "coverage"]);
export const documents = globSync("**/*.md", { cwd: root, exclude: (name) => foreign.has(basename(name)) }).map(
  withSlashes,
);
export const textOf = (name: string) => readFileSync(join(root, name), "utf8");

/** Documents that describe the present program: no history, no figures of one day, no tables that the code generates. */
export const manuals = documents.filter(
  (name) => !["CHANGELOG.md", "test/bench/results.md", "config/reference.md", "config/metrics.md"].includes(name),
);

export interface Quoted {
  readonly document: string;
  /** What follows the opening fence, as in `yaml complete`; empty for code within a line. */
  readonly language: string;
  readonly text: string;
}

/** Code in blocks of its own. */
export function blocksOf(document: string): readonly Quoted[] {
  const blocks = textOf(document).matchAll(/^ *```([^\n]*)\n([\s\S]*?)^ *```$/gm);
  return [...blocks].map(([, language = "", text = ""]) => ({ document, language, text }));
}

export const withoutBlocks = (text: string) => text.replaceAll(/^ *```[\s\S]*?^ *```$/gm, "");

/** Code within a line. In the cell of a table a bar is escaped. */
export function spansOf(document: string): readonly Quoted[] {
  const spans = withoutBlocks(textOf(document)).matchAll(/`([^`]+)`/g);
  return [...spans].map(([, text = ""]) => ({
    document,
    language: "",
    text: text.replaceAll("\\|", "|").replaceAll(/\n */g, " "),
  }));
}

export interface Proof {
  readonly document: string;
  readonly row: string;
  /** The cell that names the tests. */
  readonly cell: string;
}

/** The rows of all tables with a column for the tests that prove the row. */
export function proofsOf(document: string): readonly Proof[] {
  const proofs: Proof[] = [];
  let column = -1;
  let inTable = false;
  for (const row of withoutBlocks(textOf(document)).split("\n")) {
    const cells = row
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((cell) => cell.trim());
    if (!row.startsWith("|")) inTable = false;
    else if (!inTable) {
      column = cells.findIndex((cell) => /^(proved by|shown by|proof|tests?|file below)\b/.test(cell));
      inTable = true;
    } else if (column >= 0 && !/^-+$/.test(cells[0] ?? "")) proofs.push({ document, row, cell: cells[column] ?? "" });
  }
  return proofs;
}

/** A command line of `tagferry` in a document, without the name of the program. */
export interface CommandLine {
  readonly document: string;
  readonly words: readonly string[];
}

/** Every command line that a document shows, in a block or within a line; `isCommand` knows the first words. */
export function commandLinesOf(document: string, isCommand: (word: string) => boolean): readonly CommandLine[] {
  const shown = blocksOf(document)
    .filter(({ language }) => ["", "sh"].includes(language))
    .flatMap(({ text }) => text.split("\n"));
  const spans = spansOf(document).map(({ text }) => text);
  const lines = [...shown, ...spans].flatMap((line) => line.replace(/\s#\s.*$/, "").split(/\s(?:\||&&|>)\s|;\s/));
  const called = lines.flatMap((line) => {
    const [, command] = /^(?:\$ |sudo |[A-Z_]+=\S+ )*(?:npm run (?:-s )?tagferry --|tagferry) +(.+)$/.exec(line) ?? [];
    return command === undefined ? [] : [wordsOf(command)];
  });
  // In prose the name of the program is left out: `check --online`.
  const short = spans.map(wordsOf).filter(([first = "", ...rest]) => isCommand(first) && rest.some(isOption));
  return [...called, ...short].map((words) => ({ document, words }));
}

const wordsOf = (line: string) => line.match(/"[^"]*"|'[^']*'|\S+/g) ?? [];
export const isOption = (word: string) => /^--?[a-z]/i.test(word);

/** The words that a shell completes, by command. Of the program itself the command is the empty text. */
export function completedWords(bashScript: string): ReadonlyMap<string, readonly string[]> {
  const places = bashScript.matchAll(/^ {4}'([^']*)'\) offered='((?:[^']|'\\'')*)'/gm);
  return new Map([...places].map(([, place = "", words = ""]) => [place, words.split(" ")]));
}

/** A key of the configuration as config/reference.md has it. */
export interface DocumentedKey {
  readonly takes: string;
  readonly usual: string;
}

/** All keys of the configuration by their path, and by each end of it: `service.auth.basic`, `auth.basic`, `basic`. */
export function documentedKeys(): ReadonlyMap<string, readonly DocumentedKey[]> {
  const rows = textOf("config/reference.md").matchAll(/^\| `([\w.]+)` \| (.*?) \| (.*?) \| .*\|$/gm);
  const ends = [...rows].flatMap(([, path = "", takes = "", usual = ""]) => {
    const parts = path.split(".");
    return parts.map((_, i) => ({ key: parts.slice(i).join("."), takes, usual: usual.replaceAll("`", "") }));
  });
  return new Map(Object.entries(Object.groupBy(ends, ({ key }) => key)).map(([key, all = []]) => [key, all]));
}
