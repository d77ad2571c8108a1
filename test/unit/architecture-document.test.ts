// docs/architecture.md lists the files that a reading passes. Each list is a tree of imports.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { expect, test } from "vitest";
import { withSlashes } from "../../src/lib/files/paths.ts";

const root = resolve(import.meta.dirname, "../..");
const text = readFileSync(join(root, "docs/architecture.md"), "utf8");

interface Step {
  readonly depth: number;
  readonly file: string;
  /** The entry above with less indentation. Undefined for the first entry of a list. */
  readonly parent?: string;
}

function stepsOf(document: string): readonly Step[] {
  const path: string[] = [];
  return [...document.matchAll(/^( *)- `(src\/[^`]+\.ts)`:/gm)].map(([, indent = "", file = ""]) => {
    const depth = indent.length / 2;
    path.length = depth;
    path[depth] = file;
    const parent = path[depth - 1];
    return parent === undefined ? { depth, file } : { depth, file, parent };
  });
}

const importsOf = (file: string) =>
  [...readFileSync(join(root, file), "utf8").matchAll(/(?:from\s+|import\s*\(?\s*)["'](\.{1,2}\/[^"']+)["']/g)].map(
    ([, target = ""]) => withSlashes(relative(root, resolve(root, dirname(file), target))),
  );

const steps = stepsOf(text);

test("every file that the document names exists", () => {
  const named = [...text.matchAll(/`((?:src|test)\/[\w./-]+)`/g)].map(([, file = ""]) => file);
  expect(named.length).toBeGreaterThan(80);
  expect(named.filter((file) => !existsSync(join(root, file)))).toEqual([]);
});

test("the figures of the decisions are in the results of the benches", () => {
  const results = readFileSync(join(root, "test/bench/results.md"), "utf8");
  const [, decisions = ""] = /^## Decisions\n([^]*?)^## /m.exec(text) ?? [];
  const figures = decisions.replaceAll(/`[^`]*`/g, "").match(/\d[\d,.]*\d/g) ?? [];
  expect(figures.length).toBeGreaterThan(20);
  expect(figures.filter((figure) => !new RegExp(`(?<![\\d.,])${figure}(?![\\d])`).test(results))).toEqual([]);
});

test("every step is imported by the file that it is indented below", () => {
  const children = steps.filter(({ parent }) => parent !== undefined);
  expect(children.length).toBeGreaterThan(60);
  const wrong = children.filter(({ file, parent = "" }) => !importsOf(parent).includes(file));
  expect(wrong.map(({ file, parent }) => `${parent} does not import ${file}`)).toEqual([]);
});

test("the lists of the protocols end where they meet, and the mapping continues from there", () => {
  const meets = steps.filter(({ file }) => file === "src/core/source.ts").map(({ parent }) => parent);
  expect(meets).toEqual([
    "src/source/mqtt/receiver/source.ts",
    "src/source/modbus/polling/source.ts",
    "src/source/opcua/connection/source.ts",
    "src/agent/pipeline.ts",
  ]);
});
