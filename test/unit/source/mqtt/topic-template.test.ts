import { expect, test } from "vitest";
import { parseTopicTemplate } from "../../../../src/source/mqtt/topics/topic-template.ts";

test.each([
  ["sensors/{room}/env", "sensors/+/env", [{ name: "room", level: 1, rest: false }]],
  [
    "plant/{line}/{rest...}",
    "plant/+/#",
    [
      { name: "line", level: 1, rest: false },
      { name: "rest", level: 2, rest: true },
    ],
  ],
  ["a/+/{x}/#", "a/+/+/#", [{ name: "x", level: 2, rest: false }]],
  ["lamp/state", "lamp/state", []],
  ["{all...}", "#", [{ name: "all", level: 0, rest: true }]],
  ["$share/agents/a/{x}", "$share/agents/a/+", [{ name: "x", level: 1, rest: false }]],
  ["zigbee2mqtt/Cold Room 2", "zigbee2mqtt/Cold Room 2", []],
])("%s subscribes %s", (text, filter, captures) => {
  expect(parseTopicTemplate(text)).toMatchObject({ text, filter, captures });
});

test.each([
  ["", "not be empty"],
  ["a/{x}b", "have a capture fill a whole level, as in a/{name}/b or a/{name...}, not {x}b"],
  ["a/{x...}/b", "have {x...} at its end only"],
  ["{x}/{x}", "capture {x} once only"],
  ["a/#/b", "have # as its last level only"],
  ["a/b#", "have + and # fill a whole level, not b#"],
  ["a+/b", "have + and # fill a whole level, not a+"],
  ["a/{1x}", "have a capture fill a whole level, as in a/{name}/b or a/{name...}, not {1x}"],
  ["$share/a", "be $share/<group>/<topic> for a shared subscription"],
  ["$share/+/a", "be $share/<group>/<topic> for a shared subscription"],
  ["a/{x|loud}", "have one of the functions lower, upper, slug, replace, default, map, not loud"],
  ["a/{x|constructor}", "have one of the functions lower, upper, slug, replace, default, map, not constructor"],
  ["a/{x|replace}", "give the function other arguments: lower, replace(a,b), default(x), map(a=b,c=d), not replace"],
  ["a/{x|lower(}", "have functions as in {name|lower|replace(a,b)}, not |lower("],
  ...["\0", "\n", "\t", "\u0085", "\uffff"].map((sign) => [
    `a${sign}b`,
    "not contain a control character, such as a tab or a line break",
  ]),
  ["a".repeat(65_536), "be at most 65,535 bytes long"],
])("a template must: %#", (text, complaint) => {
  expect(parseTopicTemplate(text)).toBe(complaint);
});

test.each([
  ["{x|lower}", "Cold Room", "cold room"],
  ["{x|upper}", "straße", "STRASSE"],
  ["{x|slug}", " Kühl-Raum 2/3 ", "kuhl-raum-2-3"],
  ["{x|replace(-,_)}", "a-b-c", "a_b_c"],
  ["{x|replace(a)}", "banana", "bnn"],
  ["{x|replace(a,$&)}", "a", "$&"],
  ["{x|default(none)}", "", "none"],
  ["{x|default(none)}", "a", "a"],
  ["{x|map(1=hall,2=yard)}", "2", "yard"],
  ["{x|map(1=hall,2=yard)}", "3", "3"],
  ["{x|lower|replace(a,b)|upper}", "A", "B"],
  ["{x|lower...}", "A/B", "a/b"],
])("%s makes of %j %j", (template, level, captured) => {
  const parsed = parseTopicTemplate(template);
  if (typeof parsed === "string") throw new Error(parsed);
  expect(parsed.captures[0]?.apply?.(level)).toBe(captured);
});
