import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";

const root = resolve(import.meta.dirname, "../../..");

/** The values of JavaScript expressions in a process of their own, or the name of what they throw. */
function valuesOf(expressions: readonly string[], before: string): unknown {
  const attempts = expressions.map((each) => `() => ${each}`).join(", ");
  const script = `import { forbidCodeFromText, hasCodeFromText } from "./src/lib/text/code-from-text.ts";
${before}
const of = (attempt) => { try { return attempt(); } catch (error) { return error.name; } };
console.log(JSON.stringify([${attempts}].map(of)));`;
  const options = { cwd: root, encoding: "utf8" } as const;
  return JSON.parse(execFileSync(process.execPath, ["--input-type=module", "-e", script], options));
}

const ways = [
  "eval('1')",
  "(0, eval)('1')",
  "globalThis.eval('1')",
  "Function('return 1')()",
  "new Function('return 1')()",
  "(() => {}).constructor('return 1')()",
  "Object.constructor('return 1')()",
  "Reflect.construct(Function, ['return 1'])()",
  "new (class extends Function {})('return 1')()",
  "Function.prototype.constructor('return 1')()",
  "Function.constructor('return 1')()",
  "Object.getPrototypeOf((async () => {}).constructor)('return 1')()",
  "((async () => {}).constructor('return 1')(), 1)",
  "((function* () {}).constructor('yield 1')(), 1)",
  "((async function* () {}).constructor('yield 1')(), 1)",
];

test("no way from text to code is left, and each of them is one without the prohibition", () => {
  expect(valuesOf([...ways, "hasCodeFromText()"], "")).toEqual([...ways.map(() => 1), true]);
  expect(valuesOf([...ways, "hasCodeFromText()"], "forbidCodeFromText();")).toEqual([
    ...ways.map(() => "EvalError"),
    false,
  ]);
});

test("functions are still recognised as functions of their kind", () => {
  const kinds = [
    "(() => {}) instanceof Function && (async () => {}) instanceof Function",
    "(() => {}).constructor === Function",
    "(async () => {}).constructor.name",
    "Object.prototype.toString.call((function* () {}))",
  ];
  expect(valuesOf(kinds, "forbidCodeFromText();")).toEqual([true, true, "AsyncFunction", "[object GeneratorFunction]"]);
});

test.each(["cli/main.ts", "buffer/disk/worker/disk-worker.ts", "service/worker/store-worker.ts"])(
  "%s, which begins a thread, forbids code made of text before it loads anything else",
  (file) => {
    const imports = readFileSync(resolve(root, "src", file), "utf8").match(/^import .*$/gm);
    expect(imports?.[0]).toMatch(/^import ".*\/no-code-from-text\.ts";$/);
  },
);
