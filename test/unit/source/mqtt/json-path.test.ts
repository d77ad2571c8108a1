import fc from "fast-check";
import { expect, test } from "vitest";
import { follow, parseJsonPath } from "../../../../src/source/mqtt/decoders/json-path.ts";
import { runs } from "../../../support/property.ts";

test.each([
  ["$", []],
  ["$.t", ["t"]],
  ["$.a.b[0]['x y'][*]", ["a", "b", 0, "x y", { kind: "every" }]],
  ['$.params["em:0"].a_act_power', ["params", "em:0", "a_act_power"]],
  ["$[-1].v", [-1, "v"]],
  ["$.*", [{ kind: "every" }]],
  ["$.a.**", ["a", { kind: "leaves" }]],
  ["$.vals[?@.id=='101'].val", ["vals", { kind: "where", name: "id", equals: "101" }, "val"]],
  ["$[?(@.n == -1.5)]", [{ kind: "where", name: "n", equals: "-1.5" }]],
  ["$.größe-2", ["größe-2"]],
  ["$['it\\'s']", ["it's"]],
  ["$['/iolinkmaster/port[2]']", ["/iolinkmaster/port[2]"]],
])("%s is the steps %j", (text, steps) => {
  expect(parseJsonPath(text)?.steps).toEqual(steps);
});

test.each(["", "t", "$t", "$.", "$..a", "$[", "$[1", "$['a]", "$[a]", "$.a b", "$[?@.id>1]", "$.a[1:2]", "$.**.a"])(
  "%s is no path",
  (text) => {
    expect(parseJsonPath(text)).toBeUndefined();
  },
);

test("finds the value at the path and nothing elsewhere", () => {
  const document: unknown = { a: { b: [{ "x y": [1, 2] }] }, n: null, s: "text" };
  const find = (text: string) => {
    const path = parseJsonPath(text);
    return path && follow(document, path);
  };
  expect(find("$.a.b[0]['x y'][1]")).toBe(2);
  expect(find("$.a.b[-1]['x y'][-2]")).toBe(1);
  expect(find("$.n")).toBeNull();
  for (const missing of ["$.a.c", "$.a[0]", "$.s.length", "$.n.x", "$.constructor", "$.a.b.length", "$.__proto__"])
    expect(find(missing)).toBeUndefined();
});

test("JSON inside a text of JSON is parsed", () => {
  const path = parseJsonPath("$.a[1].b");
  expect(path && follow(JSON.parse('{"a":"[0,{\\"b\\":5}]"}'), path)).toBe(5);
  expect(path && follow('{"a":[0,{"b":6}]}', path)).toBe(6);
  expect(path && follow({ a: "[broken" }, path)).toBeUndefined();
});

test("a path of any names finds its value", () => {
  const names = fc.array(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(names, fc.integer(), (path, value) => {
      const text = `$${path.map((name) => `['${name.replaceAll(/['\\]/g, String.raw`\$&`)}']`).join("")}`;
      const parsed = parseJsonPath(text);
      const document = path.reduceRight<unknown>((inner, name) => Object.fromEntries([[name, inner]]), value);
      expect(parsed && follow(document, parsed)).toBe(value);
    }),
    runs(300),
  );
});
