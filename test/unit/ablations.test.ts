// The quoted code of each ablation must exist. The long form, `ablations.peer.test.ts`, removes each safeguard.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ablations } from "../support/ablations/all.ts";

const sources = join(import.meta.dirname, "../../src");

test("every line of the table of safeguards quotes code that occurs once in its file", () => {
  const stale = ablations.filter(
    ({ file, code }) => readFileSync(join(sources, file), "utf8").split(code).length !== 2,
  );

  expect(stale.map(({ file, safeguard }) => `${file}: ${safeguard}`)).toEqual([]);
});

test("every line of the table of safeguards names a test that exists", () => {
  // The title of a test, or the first column of the table that a title with %s is filled from.
  const titlesOf = (path: string) =>
    [...readFileSync(join(import.meta.dirname, "..", path), "utf8").matchAll(/[([]\s*["`]([^"`\n]+)["`],/g)].map(
      ([, title = ""]) => title,
    );
  const stale = ablations.filter(({ test: path, name = "" }) => !titlesOf(path).some((title) => title.includes(name)));

  expect(stale.map(({ test: path, name }) => `${path}: ${name}`)).toEqual([]);
});
