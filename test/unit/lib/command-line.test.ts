import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { expect, test } from "vitest";
import { commandLine } from "../../../src/core/errors.ts";
import { has } from "../../support/platform.ts";
import { runs } from "../../support/property.ts";

test("a plain path is shown as typed, and an unknown file is left out", () => {
  const words = ["trust", "accept", "9f86d081"];
  expect(commandLine(words, "/etc/tagferry/tagferry.yaml")).toBe(
    "tagferry trust accept 9f86d081 -c /etc/tagferry/tagferry.yaml",
  );
  expect(commandLine(words, undefined)).toBe("tagferry trust accept 9f86d081");
});

test("on Windows backslashes need no quotes, and a space needs double ones", () => {
  expect(commandLine([], "C:\\plant\\agent.yaml", "win32")).toBe("tagferry -c C:\\plant\\agent.yaml");
  expect(commandLine([], "C:\\Program Files\\a.yaml", "win32")).toBe('tagferry -c "C:\\Program Files\\a.yaml"');
  // PowerShell divides a word at a comma, and takes one that begins with @ for a variable.
  expect(commandLine([], "C:\\line1,2\\a.yaml", "win32")).toBe('tagferry -c "C:\\line1,2\\a.yaml"');
  expect(commandLine([], "@plant\\a.yaml", "win32")).toBe('tagferry -c "@plant\\a.yaml"');
});

test.runIf(has.shell)("a shell parses every path as one word", () => {
  const path = fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }).filter((text) => !text.includes("\0"));
  const special = ["/a b/it's $(id) `id`;\\.yaml", "-c", "~/x", "*"];
  fc.assert(
    fc.property(fc.array(path, { minLength: 50, maxLength: 60 }), (random) => {
      const paths = [...special, ...random];
      // A single shell prints the arguments of `tagferry`, one per line, for all cases. NUL ends each case.
      const script = paths
        .map((file) => `printf '%s\\0' ${commandLine([], file).slice("tagferry -c ".length)}`)
        .join("\n");
      const out = execFileSync("sh", ["-c", script], { encoding: "utf8" });
      expect(out.split("\0").slice(0, -1)).toEqual(paths);
    }),
    runs(1),
  );
});
