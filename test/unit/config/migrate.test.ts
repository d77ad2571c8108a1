// From an older format of the file to the present one.
import { expect, test } from "vitest";
import { isPair, isScalar, visit } from "yaml";
import { type Migration, migrate } from "../../../src/config/migrate.ts";

test("a file without a version gets it before everything else, and keeps every other byte", () => {
  const rest = "agent:   { name: gw1 }   # mine\r\n\r\n# about the service\r\nservice: {url:   'x'}\r\n";
  expect(migrate(`# head\r\n${rest}`)).toEqual({
    kind: "migrated",
    from: undefined,
    text: `# head\r\nversion: 1\r\n${rest}`,
    did: ["the file names the version of its format"],
  });
  expect(migrate("{ agent: { name: gw1 } }\n")).toMatchObject({ text: "{ version: 1, agent: { name: gw1 } }\n" });
});

test("what is current, newer or no YAML is told", () => {
  expect(migrate("version: 1\n")).toEqual({ kind: "current" });
  expect(migrate("version: 2\n")).toEqual({ kind: "unknown", version: "2" });
  expect(migrate('version: "1"\n')).toEqual({ kind: "unknown", version: '"1"' });
  expect(migrate("version: [\n")).toEqual({ kind: "unreadable" });
  expect(migrate("- a\n")).toEqual({ kind: "unreadable" });
});

test("migrations follow each other; comments and layout around what they change stay", () => {
  const renamed = (from: number, old: string, fresh: string): Migration => ({
    from,
    to: from + 1,
    does: `${old} is called ${fresh}`,
    edits(root) {
      const edits: ReturnType<Migration["edits"]>[number][] = [];
      visit(root, (_key, node) => {
        if (isPair(node) && isScalar(node.key) && node.key.value === old && node.key.range)
          edits.push({ from: node.key.range[0], to: node.key.range[1], text: fresh });
      });
      return edits;
    },
  });
  const text = `# a plant
version: 1    # the first
sources:
    bus:   {interval: 5s,   # often
            tags: []}
    line: { interval:    1s }
`;
  const table = [renamed(1, "interval", "rate"), renamed(2, "rate", "every")];
  const migrated = migrate(text, table, 3);
  expect(migrated).toEqual({
    kind: "migrated",
    from: 1,
    text: text.replaceAll("interval", "every").replace("version: 1 ", "version: 3 "),
    did: ["interval is called rate", "rate is called every"],
  });
});
