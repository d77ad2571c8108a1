// Keys, defaults and examples of the configuration in the documents are those of the program.
import { createHash } from "node:crypto";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { lossReasons } from "../../src/buffer/disk/counters/point-counters.ts";
import { readInitAnswers } from "../../src/cli/configure/question.ts";
import { templateNames } from "../../src/discover/tags/input-names.ts";
import { parseDuration } from "../../src/lib/time/duration.ts";
import { parseByteSize } from "../../src/lib/values/byte-size.ts";
import { drivers } from "../../src/source/registry.ts";
import { command } from "../support/command.ts";
import { complaints, environmentOf, head } from "../support/config.ts";
import { blocksOf, documentedKeys, manuals, root, spansOf, textOf, withoutBlocks } from "../support/documents.ts";

const spans = manuals.flatMap(spansOf);
const keys = documentedKeys();

test("every key of the configuration that a document names exists, with the value that stands there", () => {
  const sections = new Set([...keys.keys()].filter((key) => key.includes(".")).map((key) => key.split(".")[0] ?? ""));
  const wrong = spans.filter(({ text }) => {
    const [, key = "", values] = /^([a-z]\w*(?:\.[a-z]\w*)*)(?:: ([a-z]\w*(?: \| [a-z]\w*)*))?$/i.exec(text) ?? [];
    const known = keys.get(key);
    const isFile = /\.(ts|db|md|sqlite|test|damaged|py|js|yaml|json|csv)$/.test(key);
    if (!known) return key.includes(".") && sections.has(key.split(".")[0] ?? "") && !isFile;
    const choices = known.map(({ takes }) => [...takes.matchAll(/`([^`]+)`/g)].map(([, choice]) => choice));
    const isChosen = (value: string) => choices.some((some) => some.length < 2 || some.includes(value));
    return values?.split(" | ").some((value) => !isChosen(value)) ?? false;
  });
  // Of the driver of a new protocol, and of NATS servers.
  const others = ["format: NAME", "verify: true"];
  expect(wrong.filter(({ text }) => !others.includes(text))).toEqual([]);
});

/** The words that the configuration takes for `key`, of the longest list if several keys end with it. */
const choicesOf = (key: string) => {
  const lists = (keys.get(key) ?? []).map(({ takes }) =>
    [...takes.matchAll(/`([^`]+)`/g)].map(([, word = ""]) => word),
  );
  return lists.reduce((longest, list) => (list.length > longest.length ? list : longest), []);
};
const [, faultKinds = ""] = /const faultKinds = \{([^}]+)\}/.exec(textOf("src/service/config/fault.ts")) ?? [];

test.each([
  ["docs/mqtt.md", "payload format", choicesOf("format")],
  ["docs/modbus.md", "type of value", choicesOf("at.type")],
  ["docs/modbus.md", "byte order", choicesOf("at.order")],
  ["docs/scaling.md", "value of run", choicesOf("run")],
  ["docs/discover.md", "name in a template", Object.keys(templateNames)],
  ["docs/local-service.md", "kind of fault", faultKinds.match(/^ {2}\w+/gm)?.map((kind) => kind.trim()) ?? []],
  ["src/buffer/disk/README.md", "reason of a loss", lossReasons],
])("%s has every %s", (document, _, words) => {
  const page = textOf(document);
  expect(words.length).toBeGreaterThan(2);
  expect(words.filter((word) => !new RegExp(`[\`{ ]${word}\\b`).test(page))).toEqual([]);
});

/** A length of time in ms or an amount of bytes; undefined for anything else. */
const amount = (text: string) => {
  const short = text
    .replaceAll(",", "")
    .replace(/ ?minutes?$/, "m")
    .replace(/ ?hours?$/, "h")
    .replaceAll(" ", "");
  return parseDuration(short) ?? parseByteSize(short);
};

test("every default that stands next to its key in a document is the one of the reference", () => {
  const stated = manuals.flatMap((document) => {
    const texts = withoutBlocks(textOf(document)).matchAll(/`([a-z][A-Za-z.]*)`(?:,\s|\s\()(\d[\d,]* ?(?:\w+))[,)]/g);
    return [...texts].map(([, key = "", value = ""]) => ({ document, key, value }));
  });
  const known = stated.filter(({ key, value }) => keys.has(key) && amount(value) !== undefined);
  const isUsual = ({ key, value }: (typeof known)[number]) =>
    keys.get(key)?.some(({ usual }) => amount(usual) === amount(value));
  expect(known.length).toBeGreaterThan(8);
  expect(known.filter((each) => !isUsual(each))).toEqual([]);
});

const complete = manuals
  .flatMap(blocksOf)
  .filter(({ language }) => language === "yaml complete")
  .map(({ document, text }) => ({ name: document, text }));

test("each kind of source has a page with a complete example", () => {
  const names = complete.map(({ name }) => name);
  const isShown = (type: string) => names.includes(`docs/${type}.md`) || names.includes(`src/source/${type}/README.md`);
  expect(drivers.map(({ type }) => type).filter((type) => !isShown(type))).toEqual([]);
  expect(names).toContain("README.md");
});

/** What `check` says of `text` on a machine that has every variable, file and credential that it refers to. */
function checked(text: string): Promise<string> {
  const named = (pattern: RegExp) => [...text.matchAll(pattern)].map(([, name = ""]) => name);
  const secret = "a secret of 20 bytes";
  const variables = named(/\$\{([A-Z_0-9]+)/g).map((name) => [name, "x"]);
  const files = named(/\$\{file:([^}]+)\}/g).map((path) => [resolve("/site", path), secret]);
  const credentials = named(/\$\{credential:([^}]+)\}/g).map((name) => [`/run/credentials/${name}`, secret]);
  return complaints(
    text,
    Object.fromEntries([...variables, ["CREDENTIALS_DIRECTORY", "/run/credentials"]]),
    Object.fromEntries([...files, ...credentials, ["/site/conf.d/more.yaml", "{}"]]),
  );
}

test.each(complete)("the complete example in $name is valid, without a warning", async ({ text }) => {
  expect(await checked(text)).toBe("");
});

const sections = Object.keys(JSON.parse(textOf("config/tagferry.schema.json")).properties);
const parts = [
  ...manuals.flatMap(blocksOf).filter(({ language }) => language === "yaml"),
  ...spans.filter(({ text }) => /^\w+: \{.*\}$/.test(text)),
]
  .map(({ document, text }) => ({ name: document, text, keys: Object.keys(parse(text) ?? {}) }))
  .filter(({ keys }) => keys.length > 0 && keys.every((key) => sections.includes(key)));

test.each(parts)("the part $keys of a configuration in $name is valid, without a warning", async ({ text, keys }) => {
  const sources = "sources: { demo: { type: simulator, tags: [{ input: demo.sine }] } }\n";
  const before = `${keys.includes("service") ? "version: 1\n" : head}${keys.includes("sources") ? "" : sources}`;
  expect(await checked(before + text)).toBe("");
});

test("the answers of init without a person in the operator's guide are valid", async () => {
  const [answers] = blocksOf("docs/operating.md").filter(({ text }) => text.includes("--answers"));
  const environment = environmentOf({}, { "/site/answers.yaml": answers?.text ?? "" });
  expect(await readInitAnswers("answers.yaml", { environment })).toMatchObject({ name: "north-gw1" });
});

test("the forecast in the operator's guide is that of the sample configuration", async () => {
  const [shown] = blocksOf("docs/operating.md").filter(({ text }) => text.startsWith("config/example.yaml"));
  const variables = { SERVICE_PASSWORD: "x", LINE3_PASSWORD: "x", MQTT_PASSWORD: "x" };
  const { stdout } = await command(["check", "-c", "config/example.yaml"], { cwd: root, variables });
  const checksum = createHash("sha256").update(textOf("config/example.yaml")).digest("hex").slice(0, 12);
  expect(shown?.text).toContain(`the checksum of this configuration is ${checksum}\n`);
  // A warning about the disk of this machine may follow.
  expect(stdout.slice(0, shown?.text.length)).toBe(shown?.text);
});
