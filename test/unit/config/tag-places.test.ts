// The position of a tag in the configuration, and its text for copying.
import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { processEnvironment } from "../../../src/config/files/environment.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { TagPlaces, tagText } from "../../../src/config/sources/tag-places.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const configuration = `version: 1
agent: { name: gw1, dataDir: data }
service: { url: "http://127.0.0.1:1/v1", integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: "\${PW:-x}" } } }
sources:
  demo:
    type: simulator
    tags:
      - { input: a, wave: sine, signal: { engUnit: V } }
      - input: b
        wave: sine
        report:
          deadband: 1
      - { input: c,
          wave: sine }
  more: { type: simulator, tags: [{ input: d, wave: sine }, { input: e, wave: sine }] }
  table: { type: simulator, tagsFrom: tags.csv }
`;

test("each tag has its file and line, and its text is YAML that can be pasted", async () => {
  using folder = temporaryFolder();
  writeFileSync(folder.file("tags.csv"), "input,wave\nf,sine\n");
  writeFileSync(folder.file("agent.yaml"), configuration);
  const { sources } = await loadConfig(folder.file("agent.yaml"), processEnvironment());
  const textOf = async (source: number, tag: number) => {
    const place = sources[source]?.places?.at(tag);
    return place && [place.line, await tagText(place)];
  };
  expect(await textOf(0, 0)).toEqual([8, "- { input: a, wave: sine, signal: { engUnit: V } }"]);
  expect(await textOf(0, 1)).toEqual([9, "- input: b\n  wave: sine\n  report:\n    deadband: 1"]);
  expect(await textOf(0, 2)).toEqual([13, "- { input: c,\n    wave: sine }"]);
  expect(await textOf(1, 0)).toEqual([15, "- { input: d, wave: sine }"]);
  expect(await textOf(1, 1)).toEqual([15, "- { input: e, wave: sine }"]);
  expect(await textOf(2, 0)).toEqual([2, "f,sine"]);
  expect(await textOf(0, 9)).toBeUndefined();
});

test("a tag of a template has the entry of the template, where its scale is, next to its own", async () => {
  using folder = temporaryFolder();
  const own = configuration.replace(/sources:[^]*/, "");
  writeFileSync(
    folder.file("agent.yaml"),
    `${own}templates:
  wave:
    - { input: "{dev}.a", wave: sine }
    - { input: "{dev}.b", wave: sine, scale: 0.1 }
sources:
  demo: { type: simulator, tags: [{ template: wave, vars: { dev: m1 } }] }
`,
  );
  const { sources } = await loadConfig(folder.file("agent.yaml"), processEnvironment());
  const { places } = sources[0] ?? {};
  const place = places?.at(1);
  expect([place?.line, places?.template(0)?.line, places?.template(1)?.line]).toEqual([9, 6, 7]);
  expect(place && (await tagText(place, places?.template(1)))).toBe(
    `- { template: wave, vars: { dev: m1 } }\n# template, line 7:\n- { input: "{dev}.b", wave: sine, scale: 0.1 }`,
  );
});

test("a file that has fewer lines by now gives no text", async () => {
  using folder = temporaryFolder();
  const file = folder.file("agent.yaml");
  writeFileSync(file, "version: 1\n");
  const places = new TagPlaces();
  places.add({ file, line: 40, column: 3 });
  expect(await tagText({ file, line: 40, column: 3 })).toBeUndefined();
  expect(places.at(0)).toEqual({ file, line: 40, column: 3 });
});
