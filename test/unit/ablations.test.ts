// The table of safeguards fits the sources: `ablations.peer.test.ts`, which takes them out, has no time here.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ablations } from "../support/ablations/all.ts";

const root = join(import.meta.dirname, "../..");

test("every safeguard of the table stands once in its file, and its test is there", () => {
  const wrong = ablations.filter(({ file, code, test: path, name = "" }) => {
    const [source, tests] = [`src/${file}`, `test/${path}`].map((each) => join(root, each));
    if (source === undefined || tests === undefined || !existsSync(source) || !existsSync(tests)) return true;
    return readFileSync(source, "utf8").split(code).length !== 2 || !readFileSync(tests, "utf8").includes(name);
  });

  // Where the code has changed, its line in `test/support/ablations` changes with it.
  expect(wrong.map(({ safeguard, file }) => `${file}: ${safeguard}`)).toEqual([]);
});
