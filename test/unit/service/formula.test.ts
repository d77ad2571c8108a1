import fc from "fast-check";
import { expect, test } from "vitest";
import { computeFormula, FormulaError, namesIn, parseFormula } from "../../../src/service/query/formula.ts";
import { runs } from "../../support/property.ts";

const scope = {
  rows: 2,
  column: (name: string) => Float64Array.of(name === "a" ? 6 : 2, name === "a" ? Number.NaN : 3),
  gapfilled: () => Float64Array.of(6, 6),
};
const compute = (text: string) => [...computeFormula(parseFormula(text), scope)];

test.each([
  ["1 + 2 * 3", 7],
  ["(1 + 2) * 3", 9],
  ["2 ** 3 ** 2", 512],
  ["-2 ** 2", -4],
  ["2 ** -1", 0.5],
  ["10 - 4 - 3", 3],
  ["7 % 4", 3],
  ["--3", 3],
  [".5e1", 5],
  ["a / b", 3],
  ["max(a, b, 100) + min(1, 2)", 101],
  ["floor(a / 4) + sqrt(b + 2)", 3],
  ["sin(PI / 2)", 1],
  ["atan2(0, 1)", 0],
  ["1/0", Number.POSITIVE_INFINITY],
  ["1 + 1 == 2 && 3 > 2", 1],
  ["1 < 2 == 3 < 4", 1],
  ["0 || 0 && 1", 0],
  ["!0 + !5", 1],
  ["!-1", 0],
  ["3 <= 3 && 3 >= 4", 0],
  ["2 != 2 ? 1 : 0 == 0 ? 7 : 8", 7],
  ["1 ? 0 ? 1 : 2 : 3", 2],
  ["if(a > b, a, b)", 6],
  ["round(2.5) * 10 + round(-2.5)", 27],
  ["round(-0.4)", 0],
])("%s is %d", (text, expected) => {
  expect(compute(text)[0]).toBeCloseTo(expected, 12);
});

test("a missing value makes the result missing, unless gapfill supplies one", () => {
  expect(compute("a + b")).toEqual([8, Number.NaN]);
  expect(compute("max(a, b)")).toEqual([6, Number.NaN]);
  expect(compute("gapfill(a) + b")).toEqual([8, 9]);
  expect(compute("a ** 0")).toEqual([1, Number.NaN]);
  expect(compute("pow(a, 0)")).toEqual([1, Number.NaN]);
});

test.each([
  ["(a + b", "ends too early"],
  ["a  + )", 'does not expect ")" at character 6'],
  ["(a + b b", 'expects ) before "b" at character 8'],
  ["a 1e3", 'does not expect "1e3" at character 3'],
  ["a + @b", 'is not understood at "@b"'],
  ["cosh(a)", "does not know the function cosh, but abs, ceil,"],
])("%s is refused with its place: %s", (text, reason) => {
  expect(() => parseFormula(text)).toThrow(reason);
});

test("names are distinguished from constants and from the arguments of gapfill", () => {
  expect(namesIn(parseFormula("a + gapfill(b) * PI"))).toEqual({ names: new Set(["a"]), gapfilled: new Set(["b"]) });
});

test.each([
  "",
  "1 +",
  "(1",
  "1)",
  "1 2",
  "a b",
  "2 ^ 3",
  "f(1)",
  "sqrt()",
  "sqrt(1, 2)",
  "gapfill(1)",
  "gapfill(a + 1)",
  "constructor(1)",
  "negate(1)",
  "a.b",
  "a['b']",
  "a = 1",
  "`x`",
  "1 ? 2",
  "1 : 2",
  "if(1, 2)",
  "1 & 2",
  "1 > = 2",
  "1?2:".repeat(400),
  "(".repeat(200),
  "-".repeat(200),
  "1+".repeat(1_500),
])("%.40j is refused", (text) => {
  expect(() => parseFormula(text)).toThrow(FormulaError);
});

test("any formula is computed or refused", () => {
  const piece = fc.constantFrom(
    "1",
    "2.5",
    "a",
    "b",
    "+",
    "-",
    "*",
    "/",
    "**",
    "(",
    ")",
    ",",
    "max",
    "gapfill",
    "if",
    ">",
    "==",
    "&&",
    "!",
    "?",
    ":",
    " ",
    "E",
    ".",
    "x",
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      try {
        expect(compute(pieces.join("")).length).toBe(2);
      } catch (error) {
        expect(error).toBeInstanceOf(FormulaError);
      }
    }),
    runs(3_000),
  );
});
