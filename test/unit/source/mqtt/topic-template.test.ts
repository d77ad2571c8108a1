import { expect, test } from "vitest";
import { parseTopicTemplate } from "../../../../src/source/mqtt/topic-template.ts";

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
  ["a\0b", "not contain a null character"],
  ["a".repeat(65_536), "be at most 65,535 bytes long"],
])("a template must: %#", (text, complaint) => {
  expect(parseTopicTemplate(text)).toBe(complaint);
});
