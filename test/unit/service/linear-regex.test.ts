import fc from "fast-check";
import { expect, test } from "vitest";
import { LinearRegex, RegexBudgetError } from "../../../src/service/query/linear-regex.ts";
import { runs } from "../../support/property.ts";

const matches = (pattern: string, text: string) => new LinearRegex(pattern).test(text, { left: 1e6 });

test("the library matches what JavaScript's regular expressions match", () => {
  const leaf = fc.constantFrom(
    "a",
    "b",
    "c",
    ".",
    "\\d",
    "\\w",
    "[ab]",
    "[^a]",
    "[a-c-]",
    "\\.",
    "^",
    "$",
    "\\b",
    "é",
    "\\x62",
    "[\\d_]",
    "[]a]",
  );
  const { pattern } = fc.letrec<{ pattern: string; part: string }>((tie) => ({
    part: fc.oneof(
      { maxDepth: 4, depthSize: "small" },
      leaf,
      tie("pattern").map((inner) => `(${inner})`),
      tie("pattern").map((inner) => `(?:${inner})`),
    ),
    pattern: fc
      .array(fc.tuple(tie("part"), fc.constantFrom("", "", "", "*", "+", "?", "{2}", "{1,2}", "{0,}", "*?")), {
        maxLength: 4,
      })
      // JavaScript does not allow quantifiers after an assertion.
      .map((parts) => parts.map(([part, repeat]) => (["^", "$", "\\b"].includes(part) ? part : part + repeat)).join(""))
      .chain((one) =>
        fc.option(tie("part"), { nil: undefined }).map((other) => (other === undefined ? one : `${one}|${other}`)),
      ),
  }));
  const text = fc.string({ unit: fc.constantFrom("a", "b", "c", "1", ".", " ", "é", "-", "]", "_"), maxLength: 8 });
  fc.assert(
    // Short patterns only: JavaScript backtracks, and a longer pattern may take minutes.
    fc.property(
      pattern.filter(({ length }) => length <= 60),
      text,
      (source, subject) => {
        // JavaScript reads `[]` as an empty class; RE2 treats a leading `]` as a literal.
        const expected = new RegExp(source.replaceAll("[]a]", "[\\]a]"), "u").test(subject);
        expect(matches(source, subject)).toBe(expected);
      },
    ),
    runs(1_200),
  );
});

test.each([
  ["(?i)BOILER", "Main boiler 3", true],
  ["(?i:b)oiler", "Boiler", true],
  ["(?i:b)oiler", "BOiler", false],
  ["a.b", "a\nb", false],
  ["(?s)a.b", "a\nb", true],
  ["(?P<unit>\\d+)", "m3", true],
  ["^\\x{1F600}$", "😀", true],
  ["^.$", "😀", true],
])("%s on %j is %s", (pattern, text, expected) => {
  expect(matches(pattern, text)).toBe(expected);
});

test.each([
  "(",
  ")",
  "[a",
  "a{2,1}",
  "*a",
  "\\",
  "(?=a)",
  "(?<!a)",
  "\\1",
  "\\p{L}",
  "[z-a]",
  "((a{100}){100}){100}",
  "(".repeat(60),
  "a".repeat(1_001),
])("%.30s is refused", (pattern) => {
  expect(() => new LinearRegex(pattern)).toThrow(expect.objectContaining({ name: "RegexSyntaxError" }));
});

test("patterns that backtrack exponentially elsewhere take time proportional to the text", () => {
  const budget = { left: 1e6 };
  expect(new LinearRegex("^(a+)+$").test(`${"a".repeat(5_000)}!`, budget)).toBe(false);
  expect(1e6 - budget.left).toBeLessThan(200_000);
  expect(() => new LinearRegex("(.*.*.*)x").test("a".repeat(5_000), { left: 1_000 })).toThrow(RegexBudgetError);
});
