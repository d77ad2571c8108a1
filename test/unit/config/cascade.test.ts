// Where the fields of a tag come from: defaults, source, device, template, the tag itself, and variables.
import { expect, test } from "vitest";
import type { ConfiguredSource } from "../../../src/config/format/config.ts";
import { complaints, head, load, withPassword } from "../../support/config.ts";

async function sourceOf(text: string): Promise<ConfiguredSource> {
  const { sources } = await load(head + text, withPassword);
  const [source] = sources;
  if (!source) throw new Error("no source");
  return source;
}

test("a setting nearer to the tag takes precedence", async () => {
  const { rules, tags } = await sourceOf(`
defaults: { every: 1s, badQuality: keep, scale: 2, offset: 1, align: 1s }
templates:
  t: [{ input: "{d}.template", at: "hr:0", scale: 5 }]
sources:
  bus1:
    type: modbus
    url: tcp://h
    every: 2s
    scale: 3
    devices:
      - { unit: 7, every: 3s, scale: 4, template: t, vars: { d: x }, tags: [{ input: own, at: "hr:1", every: 4s }] }
    tags:
      - { input: direct, at: "hr:2" }
`);
  expect(rules).toMatchObject([
    { input: "direct", every: 2_000, scale: 3, offset: 1, badQuality: "keep", align: 1_000 },
    { input: "x.template", every: 3_000, scale: 5, offset: 1 },
    { input: "own", every: 4_000, scale: 4, offset: 1 },
  ]);
  expect(tags).toMatchObject([
    { unit: 1, every: 2_000 },
    { unit: 7, every: 3_000 },
    { unit: 7, every: 4_000 },
  ]);
});

test("report, signal and valid are merged key by key, other settings are replaced", async () => {
  const { rules } = await sourceOf(`
defaults:
  report: { heartbeat: 10m }
  signal: { sourceType: measurement, labels: { site: [north] } }
  values: { ON: 1 }
sources:
  demo:
    type: simulator
    signal: { labels: { line: ["3"] } }
    tags:
      - { input: a, report: { deadband: 1 }, signal: { engUnit: V }, values: { AN: 1 } }
      - { input: b, report: off }
`);
  expect(rules[0]).toMatchObject({
    report: { deadband: 1, heartbeat: 600_000 },
    signal: { sourceType: "measurement", engUnit: "V", labels: { site: ["north"], line: ["3"] } },
    values: { AN: 1 },
  });
  expect(rules[0]?.values).not.toHaveProperty("ON");
  expect(rules[1]?.report).toBe("off");
});

test("a template serves many devices, and a tag of the same input overrides it", async () => {
  const { rules, tags } = await sourceOf(`
templates:
  meter:
    - { input: "{dev}.voltage", at: "hr:{base} u16", scale: 0.1, signal: { name: "{dev} voltage", engUnit: V } }
    - { input: "{dev}.power", at: "hr:4 f32" }
sources:
  bus1:
    type: modbus
    url: tcp://h
    vars: { base: 0 }
    devices:
      - { unit: 1, template: meter, vars: { dev: m1 } }
      - unit: 2
        template: meter
        vars: { dev: m2, base: 100 }
        tags:
          - { input: m2.voltage, scale: 0.01, signal: { engUnit: kV } }
          - { input: m2.extra, at: "hr:9" }
`);
  expect(rules.map(({ input, scale }) => [input, scale])).toEqual([
    ["m1.voltage", 0.1],
    ["m1.power", 1],
    ["m2.voltage", 0.01],
    ["m2.power", 1],
    ["m2.extra", 1],
  ]);
  expect(rules[2]?.signal).toEqual({ name: "m2 voltage", engUnit: "kV" });
  expect(tags.map((tag) => [tag.unit, (tag.at as { address: number }).address])).toEqual([
    [1, 0],
    [1, 4],
    [2, 100],
    [2, 4],
    [2, 9],
  ]);
});

test("a tag may use one or several templates, and its own fields take precedence", async () => {
  const { rules } = await sourceOf(`
templates:
  env: [{ input: "{hall}.{room}.t", topic: "{hall}/{room}/env", value: $.t }, { input: "{hall}.{room}.h", topic: "{hall}/{room}/env", value: $.h }]
  lamp: [{ input: "{hall}.lamp", topic: "{hall}/lamp" }]
sources:
  hall:
    type: mqtt
    url: mqtt://b
    tags:
      - { template: [env, lamp], vars: { hall: h1 }, badQuality: keep }
      - { template: lamp, vars: { hall: h2 } }
`);
  expect(rules.map(({ input, badQuality }) => [input, badQuality])).toEqual([
    ["h1.{room}.t", "keep"],
    ["h1.{room}.h", "keep"],
    ["h1.lamp", "keep"],
    ["h2.lamp", "drop"],
  ]);
});

test("a variable may be a number, and a reference may be the value of a variable", async () => {
  const { tags, rules } = await sourceOf(`
templates: { t: [{ input: "{d}.a", at: "hr:0", unit: "{u}" }] }
sources:
  bus1: { type: modbus, url: "tcp://h", devices: [{ template: t, vars: { d: "\${PASSWORD}", u: 42 } }] }
`);
  expect(tags[0]).toMatchObject({ unit: 42 });
  expect(rules[0]?.input).toBe("canary-7f3a.a");
});

test("an error in a template is reported once with its position, however many devices use it", async () => {
  const said = await complaints(
    `${head}templates: { t: [{ input: "{d}.a", at: "hr:0 u61" }] }
sources:
  bus1: { type: modbus, url: "tcp://h", devices: [{ template: t, vars: { d: a } }, { template: t, vars: { d: b } }] }
`,
    withPassword,
  );
  expect(said.match(/agent\.yaml:3:\d+ {2}templates\.t\[0\]\.at/g)).toHaveLength(1);
});

test("an unused template is a warning", async () => {
  const said = await complaints(
    `${head}templates: { t: [] }\nsources: { a: { type: simulator, tags: [{ input: a }] } }\n`,
    withPassword,
  );
  expect(said).toMatch(/^agent\.yaml:3:17 {2}warning: templates\.t {2}template t is not used\n/);
});
