// Which sources keep running over a reload.
import { expect, test } from "vitest";
import { sameSource } from "../../../src/config/format/config.ts";
import { head, load, withPassword } from "../../support/config.ts";

async function source(options: string, tag: string, variables = {}) {
  const text = `${head}sources:\n  hall: { type: mqtt, url: "mqtt://b", password: "\${PW:-x}", ${options} tags: [{ input: "h.{room}", topic: "s/{room}", ${tag} }] }\n`;
  const [first] = (await load(text, { ...withPassword, ...variables })).sources;
  if (!first) throw new Error("no source");
  return first;
}

test("a source is the same when no relevant setting was changed", async () => {
  expect(sameSource(await source("", ""), await source("qos: 1,", "scale: 1,"))).toBe(true);
  expect(sameSource(await source("", ""), await source("", "", { PW: "x" }))).toBe(true);
});

test("a changed option, secret, address or rule makes it another source", async () => {
  const before = await source("", "");
  expect(sameSource(before, await source("qos: 0,", ""))).toBe(false);
  expect(sameSource(before, await source("", "", { PW: "y" }))).toBe(false);
  expect(sameSource(before, await source("", "value: $.t,"))).toBe(false);
  expect(sameSource(before, await source("", "report: { deadband: 1 },"))).toBe(false);
  expect(sameSource(before, await source("", "signal: { engUnit: V },"))).toBe(false);
});
