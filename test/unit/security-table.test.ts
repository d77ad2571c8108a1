// Statements of docs/security.md about tests are true.
import { existsSync, globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { sourceName } from "../../src/config/format/file-schema.ts";

const root = resolve(import.meta.dirname, "../..");
const rows = readFileSync(join(root, "docs/security.md"), "utf8")
  .split("\n")
  .filter((line) => /^\| S\d/.test(line));

test("every control has one row, which names existing tests", () => {
  expect(rows.map((row) => row.split("|")[1]?.trim())).toEqual(Array.from({ length: 33 }, (_, i) => `S${i + 1}`));
  for (const row of rows) {
    const files = [...(row.split("|").at(-2) ?? "").matchAll(/`([^`]+)`/g)].map(([, file = ""]) => file);
    expect(files, row).not.toEqual([]);
    expect(
      files.filter((file) => !file.endsWith(".test.ts") || !existsSync(join(root, "test", file))),
      row,
    ).toEqual([]);
  }
});

test("the document names a way to report", () => {
  expect(readFileSync(join(root, "SECURITY.md"), "utf8")).toMatch(/report/i);
});

test.each(["..", ".", ".hidden", "a/b", "../a", "a\\b", "a\0b", "", "a".repeat(65), "a\nb", "%2e%2e"])(
  "%j is no name of a source, which becomes the name of a folder",
  (name) => {
    expect(sourceName.safeParse(name).success).toBe(false);
  },
);

const sourcesOf = (folder: string) =>
  globSync(`src/source/${folder}/**/*.ts`, { cwd: root }).map((file) => readFileSync(join(root, file), "utf8"));

test("only OPC UA services that change nothing but the session's own state are called", () => {
  const asked = sourcesOf("opcua").flatMap((text) =>
    [...text.matchAll(/\bcall\(\s*"(\w+)"|new (?:ua\.)?(\w+)Request\b/g)].map(([, called, made]) => called ?? made),
  );
  expect(
    [...new Set(asked)].filter((name) =>
      /^(Write|Call|Add|Delete(Nodes|References)|HistoryUpdate|Register)/.test(name ?? ""),
    ),
  ).toEqual([]);
  expect(asked).toContain("Read");
});

test("one place publishes over MQTT, and only to request Sparkplug births", () => {
  const calls = sourcesOf("mqtt").flatMap((text) => [...text.matchAll(/\bclient\.publish\(/g)]);
  expect(calls).toHaveLength(1);
});
