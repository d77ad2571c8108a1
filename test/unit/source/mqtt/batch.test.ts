// Batches: the Input ID of an element does not depend on its position in the payload.
import fc from "fast-check";
import { expect, test } from "vitest";
import { mapMessages } from "../../../support/mqtt-points.ts";
import { runs } from "../../../support/property.ts";

const mapped = async (tag: string, ...payloads: readonly unknown[]) => {
  const messages = payloads.map((payload) => ({ topic: "a", payload: JSON.stringify(payload) }));
  const { points, ...rest } = await mapMessages(`- { topic: a, ${tag} }`, messages);
  return { ...rest, values: points.map(({ input, value }) => `${input}=${value}`) };
};

test("{i} works together with capture, and an empty one removes its separator", async () => {
  const tag = 'input: "{host}.{i}", value: "$.fields[*]", capture: { host: $.host }';
  expect((await mapped(tag, { host: "gw7", fields: { idle: 98, user: 2 } })).values).toEqual([
    "gw7.idle=98",
    "gw7.user=2",
  ]);
});

test("nested [*] fill {i1}, {i2} and {key}, and {i} with both", async () => {
  const fields = { l1: { p: 1, q: 2 }, l2: { p: 3 } };
  const of = async (input: string) => (await mapped(`input: "${input}", value: "$[*][*]"`, fields)).values;
  expect(await of("x.{i1}/{i2}")).toEqual(["x.l1/p=1", "x.l1/q=2", "x.l2/p=3"]);
  expect(await of("x.{i1}.{key}")).toEqual(["x.l1.p=1", "x.l1.q=2", "x.l2.p=3"]);
  expect(await of("x.{i}")).toEqual(["x.l1.p=1", "x.l1.q=2", "x.l2.p=3"]);
});

test("{key} is the name of the member, also at the end of .**", async () => {
  const tag = 'input: "{host}.{key}", value: "$.metrics[*].fields.**", capture: { host: "$.metrics[*].host" }';
  expect((await mapped(tag, { metrics: [{ host: "a", fields: { cpu: { idle: 1 } } }] })).values).toEqual([
    "a.cpu/idle=1",
  ]);
});

const batch = 'input: "{tags}.{name}.{i}", value: "$.m[*].f[*]", capture: { name: "$.m[*].n", tags: "$.m[*].t" }';

test("each element of a batch maps to the same Input ID, whatever the order and the size of the batch", async () => {
  const series = fc.record({
    n: fc.constantFrom("cpu", "disk"),
    t: fc.record({ host: fc.constantFrom("a", "b"), core: fc.constantFrom("0", "1") }),
    f: fc.dictionary(fc.constantFrom("idle", "user", "free"), fc.integer({ min: 0, max: 9 }), { minKeys: 1 }),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(series, { minLength: 1, maxLength: 8 }),
      fc.infiniteStream(fc.nat()),
      async (elements, order) => {
        const shuffled = elements
          .map((element) => [order.next().value ?? 0, element] as const)
          .toSorted(([a], [b]) => a - b);
        const whole = (await mapped(batch, { m: elements })).values;
        const parts = (await mapped(batch, ...shuffled.map(([, element]) => ({ m: [element] })))).values;
        expect(parts.toSorted()).toEqual(whole.toSorted());
        expect(whole).toHaveLength(elements.flatMap(({ f }) => Object.keys(f)).length);
        for (const value of whole) expect(value).toMatch(/^[01]\.[ab]\.(cpu|disk)\.(idle|user|free)=/);
      },
    ),
    runs(30),
  );
});

test("objects with equal texts under different names are different, and the second one is refused", async () => {
  const tag = 'input: "{tags}.{key}", value: "$[*].f[*]", capture: { tags: "$[*].t" }';
  const { values, refused } = await mapped(tag, [
    { t: { host: "a" }, f: { v: 1 } },
    { t: { room: "a" }, f: { v: 2 } },
  ]);
  expect(values).toEqual(["a.v=1"]);
  expect(refused).toMatchObject([{ input: "a.v", address: "a room=a v", fedBy: { address: "a host=a v" } }]);
});

test.each<[string, string, unknown]>([
  [
    "an object and a text",
    'input: "{t}", value: "$[*].v", capture: { t: "$[*].t" }',
    [
      { t: { h: "a" }, v: 1 },
      { t: "h=a", v: 2 },
    ],
  ],
  [
    "texts of objects",
    'input: "{t}", value: "$[*].v", capture: { t: "$[*].t" }',
    [
      { t: { a: "1,b=2" }, v: 1 },
      { t: { a: "1", b: "2" }, v: 2 },
    ],
  ],
  ["members with a point in their names", 'input: "x.{i}", value: "$[*][*]"', { "a.b": { c: 1 }, a: { "b.c": 2 } }],
])("things whose names only look the same are not mixed in one signal: %s", async (_, tag, payload) => {
  const { values } = await mapped(tag, payload);
  const inputs = values.map((value) => value.split("=")[0]);
  expect(inputs).toEqual([...new Set(inputs)]);
  expect(values[0]).toMatch(/=1$/);
});

test.each([
  ["{i}, of elements with times of their own", 'input: "x.{i}", value: "$[*].v", time: { at: "$[*].t" }'],
  ["{key}, in a list", 'input: "x.{key}", value: "$[*].v"'],
  ["{key}, of records below .**", 'input: "x.{key}", value: "$.**"'],
  ["{i}, of records below .**", 'input: "x.{i}", value: "$.**"'],
])(
  "a value that only its position in a list distinguishes is counted and named, and not stored: %s",
  async (_, tag) => {
    const { values, lastUnnamed } = await mapped(tag, [
      { v: 1, t: 1767225600 },
      { v: 2, t: 1767225600 },
    ]);
    expect(values).toEqual([]);
    expect(lastUnnamed).toMatch(
      /^a: only its position in a list distinguishes a value at \$.*; name it by a field, capture/,
    );
  },
);

test.each([
  ["a name in none", 'input: "x.{id}", value: "$.l[*].v", capture: { id: "$.l[*].id" }'],
  ["a name in none, but members", 'input: "{id}.{key}", value: "$.l[*].f[*]", capture: { id: "$.l[*].id" }'],
  ["a name for another level", 'input: "{host}.{i}", value: "$.**", capture: { host: $.host }'],
  [
    "a name in the text of the signal alone",
    'input: "x.{i}", value: "$.l[*].f[*]", capture: { unit: "$.l[*].unit" }, signal: { engUnit: "{unit}" }',
  ],
])("elements that have no name are not mixed in one signal: %s", async (_, tag) => {
  const { values, lastUnnamed } = await mapped(tag, {
    host: "a",
    l: [
      { v: 1, f: { v: 1 }, unit: "V" },
      { v: 2, f: { v: 2 }, unit: "V" },
    ],
  });
  expect(values).toEqual([]);
  expect(lastUnnamed).toMatch(/^a: only its position in a list/);
});

test("elements without a name are skipped and the others stored", async () => {
  const tag = 'input: "x.{id}", value: "$[*].v", capture: { id: "$[*].id" }';
  expect((await mapped(tag, [{ v: 1 }, { v: 2, id: "k" }])).values).toEqual(["x.k=2"]);
});

test("the positions of numbers in a list are captured, also below .**", async () => {
  const power = { P: [231, 0, 229] };
  expect((await mapped('input: "p.{i}", value: "$.P[*]"', power)).values).toEqual(["p.0=231", "p.1=0", "p.2=229"]);
  expect((await mapped('input: "p.{i}", value: "$.**"', power)).values).toEqual(["p.P/0=231", "p.P/1=0", "p.P/2=229"]);
});

test("{i1} captures the position of a record when the order is configured as fixed", async () => {
  const { values, warnings } = await mapped('input: "fan{i1}", value: "$[*].rpm"', [{ rpm: 900 }, { rpm: 870 }]);
  expect(values).toEqual(["fan0=900", "fan1=870"]);
  expect(warnings).toEqual([]);
});

test.each([
  ["the position of records", 'input: "x.{i}", value: "$.list[*].v"', /for records in a list that is their position/],
  [
    "times of their own",
    'input: "x.{i}", value: "$[*].v", time: { at: "$[*].t" }',
    /empty for the elements of a list with times/,
  ],
  [
    "a position next to a name",
    'input: "{id}.{i1}", value: "$[*].v", capture: { id: "$[*].id" }',
    /position of an element of a batch/,
  ],
])("check warns of an Input ID that may depend on the position in a list: %s", async (_, tag, message) => {
  const { warnings } = await mapped(tag);
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toMatch(message);
});

test.each([
  ["nothing", 'input: x, value: "$[*]"', "needs {i} in it"],
  ["one of two levels", 'input: "x.{i1}", value: "$.a[*].b[*]"', "needs {i2} in it"],
  [
    "the fields of a named element",
    'input: "{id}", value: "$[*].f[*]", capture: { id: "$[*].id" }',
    "needs {i2} in it",
  ],
  [
    "elements that only the text of the signal names",
    'input: "x.{key}", value: "$[*].f[*]", capture: { id: "$[*].id" }, signal: { name: "{id}" }',
    "needs {i1} in it",
  ],
])("check refuses an Input ID that several values of each message would come to: %s", async (_, tag, message) => {
  await expect(mapped(tag)).rejects.toThrow(message);
});

test("numeric texts below .** are stored, and other texts are not", async () => {
  const { values } = await mapped('input: "x.{key}", value: "$.**"', {
    a: "21.5",
    b: "-3",
    c: "1e3",
    id: "0042",
    s: "on",
    hex: "24e124",
  });
  expect(values).toEqual(["x.a=21.5", "x.b=-3", "x.c=1000"]);
});
