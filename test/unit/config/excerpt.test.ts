// The source line in an error: the caret points at the column, and nothing that may be a secret is shown.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { z } from "zod";
import { unclosedQuote } from "../../../src/config/files/yaml-hints.ts";
import { sections } from "../../../src/config/format/file-schema.ts";
import { excerpt, isHidden, shownLines } from "../../../src/config/nodes/excerpt.ts";
import { core, isSecret } from "../../../src/config/nodes/schema-walk.ts";
import { drivers } from "../../../src/source/registry.ts";
import { runs } from "../../support/property.ts";

const canary = "canary-77aa";
const shown = (text: string, line: number, column = 1) => excerpt(text.split("\n"), line, column);

test("the caret is under the column", () => {
  expect(shown("a: 1\nlog: { level: loud }", 2, 15)).toBe("     2 | log: { level: loud }\n       |               ^");
});

test.each([
  [1, 5, "password: ***", 0],
  [1, 14, "password: ***", 10],
  [2, 4, "url: mqtt://***@broker:1883", 3],
  [2, 30, "url: mqtt://***@broker:1883", 18],
])("what is hidden moves the caret along: line %i, column %i", (line, column, text, caret) => {
  const lines = `password: ${canary}\nurl: mqtt://gw:${canary}@broker:1883`;
  const [first = "", second = ""] = shown(lines, line, column)?.split("\n") ?? [];
  expect(first.slice(9)).toBe(text);
  if (column > 10 || line === 2) expect(second.indexOf("^") - 9).toBe(caret);
});

test("an error in each of 30,000 lines does not read the file 30,000 times", () => {
  const lines = Array.from({ length: 30_000 }, (_, i) => `line.${i},hr:${i} u61`);
  const found = lines.map((_, i) => excerpt(lines, i + 1, 10));
  expect(found.at(-1)).toContain("30000 | line.29999,hr:29999 u61");
});

test("a whole file is shown without secrets, comments and user names in addresses, valid or not", () => {
  const file = `# canary-comment
version: 1
http: { listen: 127.0.0.1:8421, token: canary-token-0123456789 }
service:
  proxy: http://me:canary-proxy@proxy:3128 # canary-behind
  auth: { basic: { username: me, password: "canary-literal" } }
sources:
  hall:
    pasword: canary-misspelled
    password |
      canary-without-colon
    headers: >-
      canary-of-headers
    tags:
      - input: machine.key
        topic: x   # canary-tag
  line: { password: "\${file:/run/secrets/line}" }
  other: { type: unheard, tokens: [canary-list] }`;
  expect(shownLines(file).join("\n")).toBe(`# ***
version: 1
http: { listen: 127.0.0.1:8421, token: ***
service:
  proxy: http://***@proxy:3128 # ***
  auth: { basic: { username: me, password: *** } }
sources:
  hall:
    pasword: ***
    password ***
      ***
    headers: ***
      ***
    tags:
      - input: machine.key
        topic: x   # ***
  line: { password: "\${file:/run/secrets/line}" }
  other: { type: unheard, tokens: ***`);
});

/** Where a schema has secrets, as `auth.basic.password`. */
function secretPaths(schema: z.core.$ZodType, path = ""): readonly string[] {
  if (isSecret(schema)) return [path];
  type Inner = Partial<Record<"valueType" | "element", z.core.$ZodType>> & {
    readonly shape?: Readonly<Record<string, z.core.$ZodType>>;
    readonly options?: readonly z.core.$ZodType[];
  };
  const { shape, valueType, element, options = [] } = core(schema)._zod.def as Inner; // the parts that zod documents
  const members = Object.entries({ ...shape, ...(valueType && { name: valueType }) });
  return [
    ...members.flatMap(([key, value]) => secretPaths(value, path === "" ? key : `${path}.${key}`)),
    ...[...options, ...(element ? [element] : [])].flatMap((each) => secretPaths(each, path)),
  ];
}

test("each secret of a schema has a name that tells, for files that are not valid", () => {
  const schemas = [...Object.values(sections), ...drivers.map(({ schema }) => schema)];
  const paths = schemas.flatMap((schema) => secretPaths(schema));
  expect(paths.length).toBeGreaterThan(5);
  expect(paths.filter((path) => !isHidden(path, []))).toEqual([]);
});

test("a long line is shown around the caret", () => {
  const long = `list: [${Array.from({ length: 80 }, (_, i) => `n${i}`).join(", ")}]`;
  const column = long.indexOf("n60") + 1;
  const [first = "", second = ""] = shown(long, 1, column)?.split("\n") ?? [];
  expect(first.length).toBeLessThan(115);
  expect(first.slice(second.indexOf("^")).startsWith("n60")).toBe(true);
});

test("a reference is not a secret, and neither is a file with one", () => {
  for (const line of [
    'password: "${SERVICE_PASSWORD}"',
    "auth: { basic: { password: '${file:/run/secrets/x}' } }",
    "passwordFile: /run/secrets/x",
    "username: reader",
    "keyFile: /etc/ssl/key.pem",
  ])
    expect(shown(line, 1)?.split("\n")[0]?.slice(9)).toBe(line);
  expect(shown(`password: "\${NAME:-${canary}}"`, 1)).not.toContain(canary);
});

const ways = [
  `password: ${canary}`,
  `password: "${canary}"`,
  `"password": '${canary}'`,
  `password: "${canary}`,
  `password: "x" ${canary}`,
  `password: x, ${canary}`,
  `password: [${canary}]`,
  `pasword: ${canary}`,
  `auth: ${canary}`,
  `auth: { basic: ${canary} }`,
  `auth: { basic: { pw: ${canary} } }`,
  `auth: { basic: { username: a, password: ${canary} } }`,
  `clientCredentials: { clientId: a, clientSecret: ${canary} }`,
  `auth:\n  basic:\n    pw: ${canary}`,
  `password: |\n  ${canary}`,
  `password:\n  - ${canary}`,
  `password: >-\n  first\n  x: ${canary}`,
  `token: ${canary}`,
  `keyPassphrase: ${canary}`,
  `url: "http://gw:${canary}@127.0.0.1"`,
  `url: http://gw:p w ${canary}@127.0.0.1`,
  `url: mqtt://gw:p@ss${canary}@broker # old`,
  `a: 1 # ${canary}`,
  `# ${canary}`,
  `{ password: ${canary}, a: 1 }`,
  `- { input: a, password: ${canary} }`,
  `basic: {"password":"${canary}", "username":"a"}`,
  `- {"password":'${canary}'}`,
  `password:${canary}`,
  `{ password:${canary} }`,
  `pw: ${canary}`,
  `accessKey: ${canary}`,
  `tokn: ${canary}`,
  `http: { listen: 127.0.0.1:1, raedToken: ${canary} }`,
  `paswrod: ${canary}`,
  `clientSecert: ${canary}`,
  `otlp: { url: "http://h", headers: { x-api-key: ${canary} } }`,
  `headers: { x-scope-id: ${canary} }`,
  `password:\n- ${canary}`,
  `password: "first\n${canary}"`,
  `auth: { basic: { password:\n${canary} } }`,
];

test("a secret is not shown in whatever form the file has it", () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...ways), { minLength: 1, maxLength: 4 }),
      fc.nat({ max: 6 }),
      fc.nat({ max: 60 }),
      (parts, indent, column) => {
        const lines = parts.flatMap((part) => part.split("\n").map((line) => " ".repeat(indent) + line));
        for (const line of lines.keys()) expect(excerpt(lines, line + 1, column + 1) ?? "").not.toContain(canary);
      },
    ),
    runs(300),
  );
});

test.each([
  ['a: "b\nc: d\n', 3],
  ["a: 'b\nc: d\n", 3],
  ['a: "b"\nc: [1, "x, y]\nd: "z"\n', 14],
  ['- "a\n- b: "c"\n', 2],
  ["a: it's\nb: 'c\n", 11],
  ['a: "b\\"\nc: d\n', 3],
  ["a: 'it''s\nb: c\n", 3],
  ["a: !!str 'b\nc: d\n", 9],
  ['{"a":"b,\nc: d}\n', 5],
])("an unclosed quote is found where it begins: %j", (text, offset) => {
  expect(unclosedQuote(text)?.offset).toBe(offset);
});

test.each([
  'a: "b\n  c"\nd: e\n',
  "a: it's\nb: c\n",
  'a: "b" # don"t\nc: d\n',
  'a: |\n  "text\nb: c\n',
  "a: 'it''s'\nb: \"x\\\"y\"\n",
  "a: {b: 'c', d: \"e\"}\n",
  "a: rock 'n roll\nb: c\n",
  'a: a pipe of 2 "\nb: [1\nc: d\n',
])("a text that goes on in the next line, or an apostrophe, is no unclosed quote: %j", (text) => {
  expect(unclosedQuote(text)).toBeUndefined();
});
