// A configuration file as a support bundle contains it: valid YAML in unusual forms shows no secret, and keeps its lines.
import { expect, test } from "vitest";
import { parse } from "yaml";
import { shownFile } from "../../../src/config/nodes/shown-values.ts";

const canary = "canary77aa";

test.each([
  ["a header in several lines", `otlp:\n  headers:\n    Foo: a\n      ${canary}`],
  ["a header as a block", `otlp:\n  headers:\n    Foo: |\n      ${canary}\n    Bar: ${canary}`],
  [
    "a header below its key",
    `otlp:\n  headers:\n    "Foo":\n      ${canary}\n    1: ${canary}\n    ? Bar\n    : ${canary}`,
  ],
  ["JSON in lines without indentation", `{"otlp":{\n"headers":{\n"A":"${canary}",\n"B":\n"${canary}"}}}`],
  ["JSON with a colon in the next line", `{"http":{"token"\n:\n"${canary}"}}`],
  ["a flow map in several lines", `a: {\n  password: b\n  c\n  ${canary},\n  d: 1 }`],
  ["a quoted text in several lines", `a: {"password":"b\n c\n ${canary}", d: 1}`],
  ["a key with its sign in the next line", `a:\n  ? password\n  :\n    ${canary}`],
  ["a key with an escape", `a:\n  "pass\\u0077ord": ${canary}`],
  ["a value that an alias repeats", `x: &p ${canary}\na:\n  password: *p`],
  ["a map that an alias repeats", `x: &p\n  b: ${canary}\notlp:\n  headers: *p`],
  ["an address with an escape", `url: "mqtt://u:${canary}\\x40h:1"`],
])("no secret is shown of %s", (_, text) => {
  expect(JSON.stringify(parse(text))).toContain(canary);
  const shown = shownFile(text) ?? [];
  expect(shown.join("\n")).not.toContain(canary);
  expect(shown).toHaveLength(text.split("\n").length);
});

test("what is not secret stays as it is written, and a reference, too", () => {
  const text = `sources:
  hall: { type: mqtt, password: "\${file:/run/secrets/hall}", url: mqtt://broker }
  line:
    password: >-
      ${canary}
      ${canary}
    tags:
      - { input: a, topic: "x", value: $.t }
      - input: b`;
  const secret = ["    password: ***", "", ""];
  expect(shownFile(text)).toEqual([...text.split("\n").slice(0, 3), ...secret, ...text.split("\n").slice(6)]);
});

test("a file that is not YAML is not shown, since secrets cannot be told from other text in it", () => {
  expect(shownFile(`otlp: { headers: {\nFoo: ${canary} }`)).toBeUndefined();
});
