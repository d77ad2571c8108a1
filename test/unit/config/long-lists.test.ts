// Long lists of tags are parsed in pieces, with the same tags and the same errors at the same positions.
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Lengths, longLists } from "../../../src/config/files/long-lists.ts";
import { parseYaml } from "../../../src/config/files/yaml-file.ts";
import { Issues } from "../../../src/config/nodes/issue.ts";
import { type ConfigNode, entriesOf } from "../../../src/config/nodes/node.ts";
import { complaints, head, load, withPassword } from "../../support/config.ts";
import { runs } from "../../support/property.ts";

const entry = fc.constantFrom(
  "- { input: a, topic: b }",
  "- a",
  "-",
  "- \n  input: a # b",
  "- input: a\n  topic: b",
  "- |\n  - c\n   - d",
  '- "c\n   - d"',
  "- - a\n  - b",
  "- tags:\n  - a\n  - b\n  - c",
  "- &x { a: 1 }",
  "- *x",
  "- { input: '${A}' }",
  "# comment",
  "",
  "   # comment",
  "- a\n\r",
  "- # c\n  a",
  "- { a: 1,\n    b: 2 }",
  "-\ta",
  "-- a",
  "a: b",
  "- { a: 1",
  '- "a',
);
const section = fc
  .record({
    key: fc.constantFrom("    tags:", "    devices:", "    tags: &t", "    text: |", '    text: "', "    tags: # c"),
    indent: fc.constantFrom(4, 6),
    entries: fc.array(entry, { maxLength: 8 }),
  })
  .map(({ key, indent, entries }) =>
    [key, ...entries.map((text) => text.replace(/^(?=.)/gm, " ".repeat(indent)))].join("\n"),
  );

test("a list parsed in pieces has the nodes and positions of one parsed at once", () => {
  fc.assert(
    fc.property(fc.array(section, { maxLength: 3 }), fc.constantFrom(1, 12, 1_000), (sections, piece) => {
      const text = `a: &x 1\nsources:\n  plant:\n    type: mqtt\n${sections.join("\n")}\nz: 1\n`;
      const whole = read(text, { list: Number.POSITIVE_INFINITY, piece: 1 });
      const pieces = read(text, { list: 2, piece });
      // After a syntax error the YAML parser guesses. Both ways must report an error, but not the same one.
      if (whole.issues.some(({ message }) => message.includes("YAML"))) expect(pieces.issues).not.toEqual([]);
      else expect(pieces).toEqual(whole);
    }),
    runs(400),
  );
});

function read(text: string, lengths: Lengths) {
  const issues = new Issues();
  const node = parseYaml(text, "agent.yaml", issues, undefined, lengths);
  const nodes = node && settled(node);
  return { nodes, issues: issues.list() };
}

/** A copy of the node that contains the entries of each list. */
function settled(node: ConfigNode): ConfigNode {
  if (node.kind === "list") {
    const { later: _, ...list } = node;
    return { ...list, items: [...entriesOf(node)].map(settled) };
  }
  if (node.kind === "scalar") return node;
  const entries = [...node.entries].map(([key, value]) => [key, { ...value, value: settled(value.value) }] as const);
  return { ...node, entries: new Map(entries) };
}

const many = (tags: readonly string[], indent = "      ") =>
  `${head}sources:\n  demo:\n    type: simulator\n    tags: # of the plant\n${tags.map((tag) => `${indent}${tag}\n`).join("")}`;
const tagsOf = (count: number) => Array.from({ length: count }, (_, i) => `- { input: t${i}, wave: sine }`);

test("a long list of tags is not kept as nodes", () => {
  const lines = many(tagsOf(2_500));
  const [list] = longLists(lines, { list: 1_000, piece: 32_768 });
  expect(list?.pieces.length).toBeGreaterThan(1);
  const root = parseYaml(lines, "agent.yaml", new Issues());
  const text = JSON.stringify(root, (_key, value) => (value instanceof Map ? [...value] : value));
  expect(text.includes("t2499")).toBe(false);
});

test("an error in a long list is reported at its position", async () => {
  const tags = tagsOf(2_500);
  tags[1_700] = "- { input: x1, wave: sinus }";
  const config = many(tags);
  const line = config.slice(0, config.indexOf("sinus")).split("\n").length;
  const said = await complaints(config, withPassword);
  expect(said).toContain(`agent.yaml:${line}:`);
  expect(said).toContain('is "sinus"');
  expect(said).toContain("sources.demo.tags[1700].wave");
  expect((await load(many(tagsOf(2_500)), withPassword)).sources[0]?.tags.length).toBe(2_500);
});

test("a syntax error in a long list is reported at its position", async () => {
  const tags = tagsOf(2_500);
  tags[1_700] = "- { input: t1, wave: sine";
  const config = many(tags);
  const line = config.slice(0, config.indexOf("sine\n")).split("\n").length;
  expect(await complaints(config, withPassword)).toMatch(new RegExp(`agent.yaml:(?:${line}|${line + 1}):`));
});
