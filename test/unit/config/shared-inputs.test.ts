// Warnings about several addresses that feed one Input ID, and how a tag permits it.
import { expect, test } from "vitest";
import { complaints as complaintsWith, head, withPassword } from "../../support/config.ts";

const complaints = (text: string) => complaintsWith(text, withPassword);
const opcua = (tag: string) => `${head}sources:
  line: { type: opcua, url: "opc.tcp://127.0.0.1", security: { mode: none }, tags: [${tag}] }
`;
const mqtt = (...tags: readonly string[]) => `${head}sources:
  hall: { type: mqtt, url: "mqtt://127.0.0.1", tags: [${tags.join(", ")}] }
`;

test.each([
  ['{ input: "m.{name}", browse: "Line/Motors/**" }', /have the same name.*\n.*use \{path\}/],
  ['{ input: "m.{name}", browse: "Line/*/Current" }', /have the same name/],
  ["{ input: m, browse: Line/Motors/* }", /come to this Input ID.*\n.*use \{path\}/],
])("a browse pattern whose variables may meet is a warning: %s", async (tag, expected) => {
  expect(await complaints(opcua(tag))).toMatch(expected);
});

test.each([
  '{ input: "m.{path}", browse: "Line/Motors/**" }',
  '{ input: "m.{name}", browse: "Line/Motors/*" }',
  "{ input: m, browse: Line/Motors/M01 }",
  "{ input: m, browse: Line/Motors/**, shared: true }",
  '{ input: m, path: "Line/Motors/M01" }',
])("a browse pattern whose variables do not meet is none: %s", async (tag) => {
  expect(await complaints(opcua(tag))).toBe("");
});

test.each([
  ["{ input: t, topic: sensors/+/temp }", /several topics match sensors\/\+\/temp.*\n.*\{name\} in place of \+/],
  ['{ input: t, topic: "sensors/#" }', /\n.*\{path\.\.\.\} in place of #/],
  ['{ input: "t.{room}", topic: "{site}/{room}/temp" }', /\n.*use \{site\}/],
  ['{ input: t, topic: a, value: "$[*].v", capture: { id: "$[*].id" } }', /differ in \{id\}/],
  ["{ input: t, topic: a, format: senml }", /differ in \{name\}/],
  ['{ input: "{node}.{metric}", topic: "spBv1.0/#", format: sparkplugB }', /differ in \{group\} and \{device\}/],
  ['{ input: "{device}", topic: "spBv1.0/G/+/N/#", format: sparkplugB }', /differ in \{metric\} /],
])("topics, payloads and metrics that meet are a warning: %s", async (tag, expected) => {
  expect(await complaints(mqtt(tag))).toMatch(expected);
});

test.each([
  "{ input: t, topic: sensors/hall/temp }",
  "{ input: t, topic: sensors/+/temp, shared: true }",
  '{ input: "t.{room}", topic: "a/{room}", value: $.v, capture: { unit: $.unit }, signal: { engUnit: "{unit}" } }',
  '{ input: t, topic: "data/{day}/temp", time: { capture: day, format: iso } }',
  '{ input: "{group}.{node}.{device}.{metric}", topic: "spBv1.0/#", format: sparkplugB }',
  '{ input: t, topic: "spBv1.0/G/+/N/D", metric: Temp, format: sparkplugB }',
])("topics, payloads and metrics that do not meet are none: %s", async (tag) => {
  expect(await complaints(mqtt(tag))).toBe("");
});

test("several tags have one Input ID where each of them is shared", async () => {
  const tag = (topic: string, shared: boolean) => `{ input: t, topic: ${topic}${shared ? ", shared: true" : ""} }`;
  expect(await complaints(mqtt(tag("a", true), tag("b", true)))).toBe("");
  expect(await complaints(mqtt(tag("a", true), tag("b", false)))).toMatch(
    /Input ID t is used twice.*\n.*each tag that feeds a shared Input ID must have shared: true/,
  );
  expect(await complaints(mqtt(tag("a", false), tag("b", false)))).toMatch(/is used twice.*\n.*shared: true on both/);
});

test.each(["t", "t.{room}"])("tags that share the Input ID %s have one sameTime, or get a warning", async (input) => {
  const tag = (site: string, sameTime: string) =>
    `{ input: "${input}", topic: "${site}/{room}", shared: true, sameTime: ${sameTime} }`;
  const mixed = /sources\.hall\.tags\[1\]\.input {2}.*tags\[0\].* sameTime: keep, and has replace .*\n.*same sameTime/;
  expect(await complaints(mqtt(tag("a", "keep"), tag("b", "replace")))).toMatch(mixed);
  expect(await complaints(mqtt(tag("a", "keep"), tag("b", "keep")))).not.toContain("sameTime");
});

test("shared is valid on a tag only", async () => {
  const text = `${head}defaults: { shared: true }\nsources: {}\n`;
  expect(await complaints(text)).toMatch(/unknown|no key/);
});

test("one template of an Input ID for two sources is a warning, unless a variable distinguishes them", async () => {
  const text = (first: string, second: string) => `${head}templates:
  env: [{ input: "${first === "" ? "" : "{site}."}{room}.temp", topic: "a/{room}" }]
sources:
  one: { type: mqtt, url: "mqtt://127.0.0.1", tags: [{ template: env, vars: { site: "${first}" } }] }
  two: { type: mqtt, url: "mqtt://127.0.0.2", tags: [{ template: env, vars: { site: "${second}" } }] }
`;
  expect(await complaints(text("", ""))).toMatch(/serves sources\.one\.tags\[0\] and sources\.two\.tags\[0\]/);
  expect(await complaints(text("north", "south"))).not.toMatch(/serves/);
});

const met =
  /sources\.hall\.tags\[1\]\.input {2}.*gives the same Input ID as sources\.hall\.tags\[0\]\.input in line \d+ for each message of/;

test.each([
  // A pattern and a fixed tag, in both orders.
  ['{ input: "hall.{room}", topic: "s/{room}/t" }', "{ input: hall.kitchen, topic: s/kitchen/t }"],
  ["{ input: hall.kitchen, topic: s/kitchen/t }", '{ input: "hall.{room}", topic: "s/{room}/t" }'],
  ['{ input: "hall.{rest}", topic: "s/{rest...}" }', "{ input: hall.kitchen/t, topic: s/kitchen/t }"],
  ['{ input: "{room}.t", topic: "s/{room|lower}/t" }', "{ input: kitchen.t, topic: s/Kitchen/t }"],
  ['{ input: "x.{room}", topic: "s/{room}/t", value: $.v }', "{ input: x.kitchen, topic: s/kitchen/t, value: $.v }"],
  // Two patterns with the same filter, or one within the other.
  ['{ input: "{a}.t", topic: "s/{a}/t" }', '{ input: "{b}.t", topic: "s/{b}/t" }'],
  ['{ input: "{a}.{b}", topic: "s/{a}/{b}" }', '{ input: "{a}.t", topic: "s/{a}/t" }'],
  [
    '{ input: "{id}.v", topic: "s/+", value: $.v, capture: { id: $.id } }',
    '{ input: "{id}.v", topic: "s/#", value: $.v, capture: { id: $.id } }',
  ],
])("two tags that read the same value into one Input ID are a warning: %s and %s", async (first, second) => {
  expect(await complaints(mqtt(first, second))).toMatch(met);
});

test.each([
  ['{ input: "hall.{room}", topic: "s/{room}/t" }', "{ input: hall.bath, topic: s/kitchen/t }"],
  ['{ input: "hall.{room}", topic: "s/{room}/t" }', "{ input: hall.kitchen, topic: other/kitchen/t }"],
  // Which of the values a message contains is unknown.
  [
    '{ input: "hall.{room}", topic: "s/{room}/t", value: $.a }',
    "{ input: hall.kitchen, topic: s/kitchen/t, value: $.b }",
  ],
  ['{ input: "{a}.t", topic: "s/{a}/t" }', '{ input: "{a}.t", topic: "r/{a}/t" }'],
  ['{ input: "{a}.{b}", topic: "s/{a}/{b}" }', '{ input: "{b}.{a}", topic: "s/{a}/{b}" }'],
  ['{ input: "{a}.t", topic: "s/{a|lower}/t" }', '{ input: "{a}.t", topic: "s/{a}/t" }'],
  ['{ input: "{a}.t", topic: "s/{a|map(x=y)}/t" }', '{ input: "{a}.t", topic: "s/{a}/t" }'],
  ['{ input: "{a}.t", topic: "s/{a}/t", shared: true }', '{ input: "{b}.t", topic: "s/{b}/t", shared: true }'],
  // A wildcard does not match topics that begin with $.
  ['{ input: "x{a}", topic: "{a}/x" }', "{ input: x_SYS, topic: $SYS/x }"],
])("two tags that need not come to one Input ID are none: %s and %s", async (first, second) => {
  expect(await complaints(mqtt(first, second))).not.toContain("same Input ID");
});

test("two browse patterns of one text that fill the same Input ID are a warning", async () => {
  const tag = (input: string, more = "") => `{ input: "${input}", browse: "Line/*/T"${more} }`;
  const both = (second: string) => complaints(opcua(`${tag("{path}")}, ${second}`));
  expect(await both(tag("{path}"))).toMatch(
    /tags\[1\]\.input {2}.*gives the same Input ID as sources\.line\.tags\[0\]\.input/,
  );
  expect(await both(tag("x.{path}"))).not.toContain("same Input ID");
  expect(await both(tag("{path}", ", index: 1"))).not.toContain("same Input ID");
});
