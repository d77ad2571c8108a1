// Tags to paste: which are active, and which the user has to choose.
import { expect, test } from "vitest";
import { parse } from "yaml";
import { browsedYaml, tagEntry } from "../../../src/discover/tags/browsed.ts";
import { head, load, withPassword } from "../../support/config.ts";

const register = (address: number, type = "u16", value = 42) => ({
  address: `hr:${address} ${type}`,
  name: `hr:${address} (4000${address + 1})`,
  depth: 1,
  value,
  signal: {},
  tag: { unit: 1, at: `hr:${address} ${type}` },
});

test("the first hundred of many plain registers of a unit become tags, the others comments with their values", () => {
  const nodes = [...Array.from({ length: 150 }, (_, i) => register(i)), register(200, "f32", 21.5)];
  const text = browsedYaml(nodes);
  const { tags } = parse(text).devices[0];
  expect(tags).toHaveLength(101);
  expect(tags.at(-1)).toMatchObject({ at: "hr:200 f32" });
  expect(text).toContain("# - { input: unit1.hr:149, at: hr:149 u16 }   # 42");
});

test("a reference in the name that a device gives itself stays a text", async () => {
  const node = "ns=1;s=${file:/etc/passwd} and $${x}";
  const yaml = browsedYaml([{ address: node, name: "${HOME}", depth: 0, value: 1, signal: {}, tag: { node } }]);
  const tags = yaml.replaceAll(/^/gm, "    ");
  const config = await load(`${head}sources:\n  s:\n    type: opcua\n    url: opc.tcp://h\n${tags}\n`, withPassword);
  expect(config.sources[0]?.tags[0]).toMatchObject({ node: "ns=1;s=${file:/etc/passwd} and $${x}" });
});

test.for(["a\nb", "a\n\n  b: c", "a\u0000b", "\u001b[2J", "a\rb", "tab\t", "$${x}", "#", "null", "0x10", "x\u2028y"])(
  "a name of a device stays the same text on one line: %j",
  async (name) => {
    const node = `ns=1;s=${name}`;
    const text = tagEntry({ tag: { node }, signal: {} }, "a");
    expect(text).not.toMatch(/\p{Cc}/u);
    const config = await load(
      `${head}sources:\n  s:\n    type: opcua\n    url: opc.tcp://h\n    tags:\n      - ${text}\n`,
      withPassword,
    );
    expect(config.sources[0]?.tags[0]).toMatchObject({ node });
  },
);
