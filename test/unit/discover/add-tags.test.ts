// Adding tags to the text of a configuration: every other line stays as it is.
import { expect, test } from "vitest";
import { parse } from "yaml";
import { addTags, definesSource, tagsLike } from "../../../src/discover/change/add-tags.ts";

const tag = { text: "{ input: new, node: n }" };
const onUnit = (unit: number) => ({ unit, text: `{ input: u${unit}, at: "hr:1 u16" }` });

/** The lines that are new, and that nothing else changed. */
function added(before: string, after: string): readonly string[] {
  const rest = after.split("\n");
  const old = before.split("\n");
  const lines: string[] = [];
  for (const line of rest)
    if (line === old[0]) old.shift();
    else lines.push(line);
  expect(old).toEqual([]);
  return lines;
}

test.for<[string, string]>([
  ["a list", "sources:\n  s:\n    tags:\n      - { input: a }\n      # last\n"],
  ["a list at the level of its key", "sources:\n  s:\n    tags:\n    - input: a\n      node: x\n\n  t: {}\n"],
  [
    "a list with block texts",
    "sources:\n  s:\n    tags:\n      - input: a\n        signal:\n          name: |\n            two\n            lines\n  t:\n    tags: []\n",
  ],
  ["no line break at the end", "sources:\n  s:\n    tags:\n      - { input: a } # x"],
  ["no tags yet", "sources:\n  s:\n    type: opcua\n    url: x   # y\n\n# end\n"],
  ["windows line ends elsewhere", "# x\r\nsources:\n  s:\n    tags:\n      - { input: a }\n"],
])("%s", ([, before]) => {
  const after = addTags(before, "s", [tag]);
  const tags = parse(before).sources.s.tags ?? [];
  expect(parse(after).sources.s.tags).toEqual([...tags, { input: "new", node: "n" }]);
  expect(added(before.replace(/(?<!\n)$/, "\n"), after).length).toBeLessThanOrEqual(2);
});

test.for<[string, string, string]>([
  [
    "an empty list",
    "sources:\n  s:\n    tags: []   # none yet\n    url: x\n",
    "    tags:   # none yet\n      - { input: new, node: n }\n",
  ],
  ["an empty key", "sources:\n  s:\n    tags:\n    url: x\n", "    tags:\n      - { input: new, node: n }\n    url"],
  ["a list in brackets", "sources:\n  s:\n    tags: [{ input: a }]\n", "tags: [{ input: a }, { input: new, node: n }]"],
  [
    "a source in braces",
    "sources: { s: { url: x, tags: [] } }\n",
    "{ s: { url: x, tags: [{ input: new, node: n }] } }",
  ],
])("%s", ([, before, expected]) => {
  const after = addTags(before, "s", [tag]);
  expect(after).toContain(expected);
  expect(parse(after).sources.s.tags.at(-1)).toEqual({ input: "new", node: "n" });
});

test("tags go to the device of their unit, and a new unit becomes a device", () => {
  const before = `sources:
  m:
    url: tcp://h
    devices:
      - unit: 1    # the meter
        tags:
          - { input: a, at: "hr:0 u16" }
      - { unit: 2, tags: [{ input: b, at: "hr:0 u16" }] }
      - { unit: 3, template: meter, vars: { dev: m3 } } # tags of its own are added
`;
  const after = addTags(before, "m", [onUnit(1), onUnit(2), onUnit(3), onUnit(7)]);
  const { devices } = parse(after).sources.m;
  expect(
    devices.map((device: { unit: number; tags: { input: string }[] }) => [
      device.unit,
      ...device.tags.map(({ input }) => input),
    ]),
  ).toEqual([
    [1, "a", "u1"],
    [2, "b", "u2"],
    [3, "u3"],
    [7, "u7"],
  ]);
  expect(after).toMatch(
    /- \{ unit: 3, template: meter, vars: \{ dev: m3 \}, tags: \[\{ [^\n]*u3[^\n]*\}\] \} # tags of its own/,
  );
  expect(after).toContain("- unit: 1    # the meter\n");
});

test("tags that are written already are found by their fields, whatever else an entry has", () => {
  const text = `sources:
  m:
    devices:
      - { unit: 1, tags: [{ input: volts, at: "hr:0 u16", scale: 0.1 }] }
      - { unit: 2, template: meter }
  o: { tags: [{ input: temp, node: "nsu=urn:plc;s=Temp", every: 1s }] }
  t: { tags: tags.csv }
`;
  const volts = { unit: 1, at: "hr:0 u16" };
  expect(tagsLike(text, "m", [volts, { ...volts, unit: 2 }, { ...volts, at: "hr:0 i16" }])).toEqual(["volts"]);
  const node = { node: "nsu=urn:plc;s=Temp", input: "another" };
  expect(["o", "t", "none"].map((source) => tagsLike(text, source, [node]))).toEqual([["temp"], [], []]);
  expect(tagsLike("sources: *unknown", "o", [node])).toEqual([]);
});

test.for(["tags: table.csv", "tags: *all", "tags: { a: 1 }"])("tags that are no list are left alone: %s", (line) => {
  expect(() => addTags(`x: &all []\nsources:\n  s:\n    ${line}\n`, "s", [tag])).toThrow("is not a list in this file");
});

test.for(["123", "1e3", "true", "null"])("a source may be called %s, as the configuration reads it", (name) => {
  const before = `sources:\n  ${name}:\n    tags:\n      - { input: a }\n`;
  expect(definesSource(before, name)).toBe(true);
  expect(addTags(before, name, [tag])).toBe(`${before}      - { input: new, node: n }\n`);
});
