// What is said beforehand of addresses that come to one Input ID, and how a tag allows it.
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

test("shared stands on a tag alone", async () => {
  const text = `${head}defaults: { shared: true }\nsources: {}\n`;
  expect(await complaints(text)).toMatch(/unknown|no key/);
});

test("one template of an Input ID for two sources is a warning, and none where a variable tells them apart", async () => {
  const text = (first: string, second: string) => `${head}templates:
  env: [{ input: "${first === "" ? "" : "{site}."}{room}.temp", topic: "a/{room}" }]
sources:
  one: { type: mqtt, url: "mqtt://127.0.0.1", tags: [{ template: env, vars: { site: "${first}" } }] }
  two: { type: mqtt, url: "mqtt://127.0.0.2", tags: [{ template: env, vars: { site: "${second}" } }] }
`;
  expect(await complaints(text("", ""))).toMatch(/serves sources\.one\.tags\[0\] and sources\.two\.tags\[0\]/);
  expect(await complaints(text("north", "south"))).not.toMatch(/serves/);
});
