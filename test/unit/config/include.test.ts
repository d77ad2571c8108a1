// Sources and templates in included files.
import { expect, test } from "vitest";
import { complaints, head, load, withPassword } from "../../support/config.ts";

const sim = (name: string, input: string) => `sources:\n  ${name}: { type: simulator, tags: [{ input: ${input} }] }\n`;

test("files that match a pattern are read in the order of their names", async () => {
  const { sources } = await load(`${head}include: conf.d/*.yaml\n${sim("main", "a")}`, withPassword, {
    "/site/conf.d/20-b.yaml": sim("b", "b"),
    "/site/conf.d/10-a.yaml": sim("a", "c"),
    "/site/conf.d/notes.txt": "not YAML: [",
    "/site/conf.d/.hidden.yaml": "not YAML: [",
  });
  expect(sources.map(({ name }) => name)).toEqual(["main", "a", "b"]);
});

test("a template of one file serves a source of another", async () => {
  const { sources } = await load(`${head}include: [templates.yaml, bus.yaml]\n`, withPassword, {
    "/site/templates.yaml": 'version: 1\ntemplates: { t: [{ input: "{d}.x", at: "hr:0" }] }\n',
    "/site/bus.yaml":
      "sources: { bus1: { type: modbus, url: 'tcp://h', devices: [{ template: t, vars: { d: ${PASSWORD} } }] } }\n".replace(
        "${PASSWORD}",
        '"${PASSWORD}"',
      ),
  });
  expect(sources[0]?.rules[0]?.input).toBe("canary-7f3a.x");
});

test("an error in an included file is reported with its name", async () => {
  const said = await complaints(`${head}include: conf.d/*.yaml\n${sim("main", "a")}`, withPassword, {
    "/site/conf.d/a.yaml": `log: { level: info }\n${sim("main", "b")}`,
    "/site/conf.d/b.yaml": "sources:\n  b: { type: simulator, tags: [{ input: a, wave: sin }] }\n",
    "/site/conf.d/c.yaml": "- x\n",
  });
  expect(said.split("\n").filter((line) => /^\S/.test(line))).toEqual([
    "conf.d/a.yaml:1:1  log  unknown key",
    "conf.d/a.yaml:3:3  sources.main  stands here twice, first in agent.yaml:5",
    "conf.d/c.yaml:1:1  must be a map with sources or templates",
    expect.stringMatching(/^conf\.d\/b\.yaml:2:41 {2}sources\.b\.tags\[0\]\.input {2}Input ID a is used twice/),
    expect.stringMatching(/^conf\.d\/b\.yaml:2:50 {2}sources\.b\.tags\[0\]\.wave {2}must be sine/),
  ]);
});

test("a named file and folder must exist, a pattern may match no file, and no file above the folder is read", async () => {
  expect(await complaints(`${head}include: x.yaml\n`, withPassword)).toMatch(
    /^agent\.yaml:3:10 .*x\.yaml cannot be read/,
  );
  expect(await complaints(`${head}include: "*.yml"\n`, withPassword)).toMatch(
    /^agent\.yaml:1:1 {2}warning: has no sources/,
  );
  expect(await complaints(`${head}include: conf.d/*.yaml\n`, withPassword)).toMatch(
    /^agent\.yaml:3:10 .*conf\.d cannot be read: .*\n +create the folder, or correct include/,
  );
  for (const path of ["../x.yaml", "a/../../x.yaml", "*/x.yaml"])
    expect(await complaints(`${head}include: "${path}"\n`, withPassword)).toMatch(/must name files below this one/);
});
