// `tagferry plan`: what a changed configuration would do, compared with another file or with the running agent.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startAgent } from "../support/agent-process.ts";
import { command } from "../support/command.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

interface Parts {
  readonly password?: string;
  readonly version?: string;
  readonly voltage?: string;
  readonly name?: string;
  readonly old?: string;
  readonly simulator?: string;
  readonly folder?: string;
}

const oldTag = "\n      - { at: hr:1 u16, input: m.old }";

function configuration(parts: Parts = {}): string {
  const { password = "canary-one", version = "v1", name = "m.name", old = oldTag, simulator = "pump", folder } = parts;
  const { voltage = "scale: 0.1, signal: { engUnit: V, labels: { site: [north] } }" } = parts;
  return `version: 1
agent: { name: gw, ownSignals: off${folder === undefined ? "" : `, dataDir: ${folder}/data`} }
service: { url: "http://127.0.0.1:1/${version}", integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: "${password}" } } }
http: { listen: "127.0.0.1:0" }
sources:
  meter:
    type: modbus
    url: tcp://127.0.0.1:1
    tags:
      - { at: hr:0 u16, input: m.voltage, ${voltage} }${old}
      - { at: hr:2 u16, input: ${name} }
  ${simulator}: { type: simulator, tags: [{ input: ${simulator}.a }] }
  same: { type: simulator, tags: [{ input: same.a }] }
`;
}

/** Runs `tagferry plan` for the two files. */
async function planned(before: string, after: string, ...args: readonly string[]) {
  using folder = temporaryFolder();
  for (const [name, text] of Object.entries({ before, after })) {
    mkdirSync(folder.file(name));
    writeFileSync(join(folder.path, name, "tagferry.yaml"), text);
  }
  const at = (name: string) => join(folder.path, name, "tagferry.yaml");
  return await command(["plan", "-c", at("after"), "--from", at("before"), ...args]);
}

const changed: Parts = {
  version: "v2",
  voltage: "scale: 1, every: 2s, signal: { engUnit: kV, labels: { site: [north] } }",
  name: "m.better",
  old: "",
  simulator: "fan",
};

test("plan lists sources, Input IDs, units and sections that a new configuration changes, and its load", async () => {
  const { status, stdout, stderr } = await planned(configuration(), configuration(changed));
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  expect(stdout).toBe(`sources stopped: pump
sources restarted: meter
sources started: fan
the agent must be restarted for changes of service
may change the meaning of values; recorded ones stay as they are
  scale: 0.1 → 1, of m.voltage
  signal.engUnit: V → kV, of m.voltage
Input IDs renamed at the same address: each is a new signal, recorded values stay at the old one
  m.name → m.better
Input IDs removed: their signals and values stay at the service
  m.old
  pump.a
Input IDs added
  fan.a
other changes of Input IDs
  every: 1000ms → 2000ms, of m.voltage
settings
  service.url  http://127.0.0.1:1/v1 → http://127.0.0.1:1/v2
${stdout.split("\n").at(-2)}
`);
  const forecast = /^at most 302,400 points a day, .* a month; before: 432,000 points a day, .* a month$/;
  expect(stdout.split("\n").at(-2)).toMatch(forecast);
  const json = JSON.parse((await planned(configuration(), configuration(changed), "--json")).stdout);
  expect(json).toMatchObject({
    ok: true,
    sources: { started: ["fan"], restarted: ["meter"], stopped: ["pump"], unchanged: ["same"] },
    needRestart: ["service"],
    inputs: { added: ["fan.a"], removed: ["m.old", "pump.a"], renamed: [{ from: "m.name", to: "m.better" }] },
    forecast: { from: { pointsPerDay: 432_000 }, to: { pointsPerDay: 302_400 } },
  });
  expect(json.inputs.changed).toContainEqual({
    input: "m.voltage",
    field: "signal.engUnit",
    from: "V",
    to: "kV",
    meaning: true,
  });
});

test("an Input ID that another address or source feeds is marked; metadata and intervals are not, and no secret is shown", async () => {
  const noted = 'scale: 0.1, signal: { engUnit: V, labels: { site: [north] }, annotations: { token: "canary-one" } }';
  const before = configuration({ voltage: noted });
  const after = before
    .replace("hr:2 u16", "hr:7 u16")
    .replace("site: [north]", "site: [south]")
    .replace('token: "canary-one"', 'token: "canary-two"')
    .replace("input: pump.a", "input: pump.a, every: 5s")
    .replace("input: same.a", "input: other.a")
    .replace("input: pump.a", "input: same.a");
  const { stdout } = await planned(before, after, "--json");
  expect(stdout).not.toContain("canary");
  const { inputs } = JSON.parse(stdout);
  const marks = inputs.changed.map(({ input, field, meaning }: Record<string, unknown>) => [input, field, meaning]);
  expect(marks).toEqual([
    ["m.voltage", "signal.annotations.token", false],
    ["m.voltage", "signal.labels.site", false],
    ["m.name", "at.address", true],
    ["same.a", "source", true],
    ["same.a", "every", false],
  ]);
});

test("no change, and a changed secret, are reported without the secret", async () => {
  expect(await planned(configuration(), `# comment\n${configuration()}`)).toMatchObject({
    status: 0,
    stdout: "nothing changes\n",
  });
  const { stdout, stderr } = await planned(configuration(), configuration({ password: "canary-two" }), "--json");
  expect(JSON.parse(stdout)).toMatchObject({ needRestart: ["service"], settings: [] });
  expect(stdout + stderr).not.toContain("canary");
  const { stdout: text } = await planned(configuration(), configuration({ password: "canary-two" }));
  expect(text).toMatch(/^the agent must be restarted for changes of service\nat most .*, as before\n$/);
});

test("an invalid new file ends with 78 and all errors, an invalid old one with 1", async () => {
  const wrong = configuration({ voltage: "scal: 1", name: "' '" });
  const invalid = await planned(configuration(), wrong);
  expect(invalid.status).toBe(78);
  expect(invalid.stdout).toContain("unknown key; did you mean scale?");
  expect(invalid.stdout).toMatch(/after[/\\]tagferry\.yaml: 2 errors\n/);
  expect(JSON.parse((await planned(configuration(), wrong, "--json")).stdout)).toMatchObject({
    ok: false,
    errors: [{ line: 10 }, { line: 12 }],
  });
  expect(await planned(wrong, configuration())).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/nothing to compare .* with: .*before[/\\]tagferry\.yaml has 2 errors/),
  });
});

test("without --from, the running agent compares its file with the configuration in effect, and changes nothing", async () => {
  using folder = temporaryFolder();
  const file = folder.file("tagferry.yaml");
  const text = (parts: Parts = {}) => configuration({ folder: folder.path, ...parts });
  await using agent = await startAgent({ folder: folder.path, configuration: text() });
  const plan = (...args: string[]) => command(["plan", "--url", agent.page, ...args]);
  expect(await plan()).toMatchObject({ status: 0, stdout: "nothing changes\n", stderr: "" });

  writeFileSync(file, text({ ...changed, password: "canary-two" }));
  const { stdout } = await plan();
  expect(stdout).toMatch(/^sources stopped: pump\nsources restarted: meter\nsources started: fan\nthe agent must be/);
  expect(stdout).toContain("  m.name → m.better\n");
  expect(stdout).not.toContain("canary");
  expect((await agent.status()).sources.map(({ name }) => name)).toEqual(["meter", "pump", "same"]);

  // After a reload, only what needs a restart is left.
  await command(["reload", "--url", agent.page]);
  const left = JSON.parse((await plan("--json")).stdout);
  expect(left).toMatchObject({ ok: true, file, needRestart: ["service"], sources: { started: [], restarted: [] } });
  expect(left.inputs).toEqual({ added: [], removed: [], renamed: [], changed: [] });

  writeFileSync(file, text({ voltage: "scal: 1" }));
  const wrong = await plan();
  expect(wrong.status).toBe(78);
  expect(wrong.stdout).toContain("unknown key; did you mean scale?");
});
