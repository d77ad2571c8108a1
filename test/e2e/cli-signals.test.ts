// What a user sees and changes in the metadata of signals at the service.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { InputId } from "../../src/core/point.ts";
import { Secret } from "../../src/core/secret.ts";
import { openCatalog } from "../../src/upload/signals/catalog.ts";
import { command } from "../support/command.ts";
import { testRuntime } from "../support/runtime.ts";
import { integration, password, type TestService, testService } from "../support/service.ts";
import { type TemporaryFolder, temporaryFolder } from "../support/temporary-folder.ts";

interface Written {
  readonly apiVersion?: string;
  readonly signals?: string;
  readonly secret?: string;
  readonly url?: string;
}

/** A configuration with a few tags. */
function configuration(home: TemporaryFolder, service: TestService, written: Written = {}): string {
  const { apiVersion = "1.1beta1", signals = "{}", secret = password, url = service.url } = written;
  const file = home.file("agent.yaml");
  writeFileSync(
    file,
    `version: 1
agent: { dataDir: ${JSON.stringify(home.file("data"))}, ownSignals: off }
service: { url: "${url}", apiVersion: ${apiVersion}, integration: ${integration}, auth: { basic: { password: "\${PW:-${secret}}" } }, signals: ${signals} }
sources:
  waves:
    type: simulator
    tags:
      - { input: boiler, wave: sine, period: 5s, min: 0, max: 1, signal: { name: Boiler, engUnit: °C, labels: { hall: ["1"] } } }
      - { input: pump, wave: sine, period: 5s, min: 0, max: 1, signal: { engUnit: rpm } }
`,
  );
  return file;
}

test("the agent's own signals are all listed before its first run, including those of each source", async () => {
  using home = temporaryFolder();
  await using service = await testService();
  const file = configuration(home, service);
  writeFileSync(file, readFileSync(file, "utf8").replace(", ownSignals: off", ", name: gw1"));

  const { stdout } = await command(["signals", "diff", "-c", file]);

  expect(stdout).toMatch(/^ {2}gw1\/tagferry\/source\/waves\/online +create$/m);
  expect(stdout).toMatch(/^ {2}gw1\/tagferry\/source\/waves\/readings +create$/m);
  expect(stdout).toContain("\n12 signals to save (12 new, 0 changed), 0 the same\n");
});

async function signalsOf(service: TestService): Promise<Record<string, Record<string, unknown>>> {
  const { body } = await service.call("admin.selectSignals", { integration, signals: { include: true } });
  return Object.fromEntries(Object.values<any>(body?.result?.["signals"]).map((view) => [view.inputId, view])); // oxlint-disable-line typescript/no-explicit-any
}

test.for(["1.0", "1.1beta1", "1.1"])("differences are shown and saved, at version %s", async (apiVersion) => {
  using home = temporaryFolder();
  await using service = await testService();
  const inputs = { boiler: { name: "Boiler", engUnit: "K", labels: { hall: ["1"], by: ["me"] } }, "old.tag": {} };
  await service.call("integration.saveSignals", { integration, inputs });
  const file = configuration(home, service, { apiVersion });

  const diff = await command(["signals", "diff", "-c", file]);
  expect(diff.status).toBe(0);
  expect(diff.stdout.split("\n")).toEqual([
    '  boiler  change  engUnit    "K" → "°C"',
    '                  labels.by  ["me"] → none',
    "  pump    create",
    "2 signals to save (1 new, 1 changed), 0 the same",
    "1 signal at the service not configured, never touched:",
    "  old.tag",
    "",
  ]);
  const planned = await command(["signals", "save", "-c", file, "--dry-run"]);
  expect([planned.status, planned.stdout]).toEqual([0, diff.stdout]);
  expect((await signalsOf(service))["pump"]).toBeUndefined();

  const saved = await command(["signals", "save", "-c", file]);
  expect([saved.status, saved.stdout.split("\n").at(-2)]).toEqual([0, "2 signals saved"]);
  expect(await signalsOf(service)).toMatchObject({
    boiler: { engUnit: "°C", labels: { hall: ["1"] } },
    pump: { engUnit: "rpm" },
    "old.tag": { engUnit: "" },
  });
  const after = await command(["signals", "diff", "-c", file, "--json"]);
  expect(JSON.parse(after.stdout)).toEqual({ signals: [], same: 2, unconfigured: ["old.tag"], nameless: 0 });
});

test.for(["1.1beta1", "1.1"])("what is fit for it is published, at version %s", async (apiVersion) => {
  using home = temporaryFolder();
  mkdirSync(home.file("data/upload"), { recursive: true });
  await using service = await testService();
  const file = configuration(home, service, { apiVersion, signals: "{ publish: update }" });
  await command(["signals", "save", "-c", file]);

  const planned = await command(["signals", "publish", "-c", file, "--dry-run"]);
  expect(planned.stdout.split("\n")).toEqual([
    "  boiler  publish",
    "  pump    unfit    missing: name, labels",
    "1 item to publish (1 new, 0 changed), 0 left as they are, 1 not fit to be published (service.signals.require)",
    "  what they miss goes into signal: of the tag, its source or defaults; service.signals.require: [] asks for nothing",
    "",
  ]);
  expect((await signalsOf(service))["boiler"]?.["item"]).toBeNull();
  const published = await command(["signals", "publish", "-c", file, "--json"]);
  expect(published.status).toBe(0);
  expect(JSON.parse(published.stdout)).toMatchObject({
    items: [
      { input: "boiler", action: "create" },
      { input: "pump", action: "unfit", missing: ["name", "labels"] },
    ],
    done: { published: 1, refused: [] },
  });
  // A user edits the unit at the service; the configuration changes the name.
  const { id, item } = (await signalsOf(service))["boiler"] ?? {};
  const edited = { name: "Boiler", type: "numeric", sourceType: "measurement", engUnit: "K", labels: { hall: ["1"] } };
  await service.call("admin.publishSignals", {
    integration,
    itemsBySignal: { [String(id)]: { ...edited, visible: true } },
  });
  writeFileSync(file, readFileSync(file, "utf8").replace("name: Boiler", "name: Kessel").replace("°C", "F"));
  const again = await command(["signals", "publish", "-c", file]);
  expect(again.stdout.replaceAll(/ {2,}/g, "  ").split("\n").slice(0, 2)).toEqual([
    '  boiler  update  name  "Boiler" → "Kessel"',
    '  edited  engUnit  "K" stays',
  ]);
  const { body } = await service.call("platform.selectItems", { items: { include: true } });
  expect(body?.result?.["items"]).toMatchObject({ [String(item)]: { name: "Kessel", engUnit: "K" } });
});

test("metadata from devices come from the agent, while it runs and afterwards", async () => {
  using home = temporaryFolder();
  await using service = await testService();
  const file = configuration(home, service, { signals: "{ createOnly: true }" });
  mkdirSync(home.file("data"));
  const runtime = testRuntime();
  {
    const path = join(home.file("data"), "signals.db");
    await using catalog = await openCatalog(path, runtime, new AbortController().signal);
    catalog.bind(`${service.url} ${integration}`);
    catalog.describe("pump" as InputId, { engUnit: "1/min", description: "by the device" });
    catalog.describe("gone" as InputId, { engUnit: "bar" });
  }
  const saved = await command(["signals", "save", "-c", file]);
  expect(saved).toMatchObject({ status: 0, stderr: "" });
  // The configuration takes precedence over the device. Signals that it no longer contains are not saved.
  expect(await signalsOf(service)).toMatchObject({ pump: { engUnit: "rpm", description: "by the device" } });
  expect(Object.keys(await signalsOf(service)).toSorted()).toEqual(["boiler", "pump"]);
  await service.call("integration.saveSignals", { integration, inputs: { pump: { engUnit: "Hz" } } });
  const left = await command(["signals", "save", "-c", file]);
  expect(left.stdout).toContain(
    "0 signals to save (0 new, 0 changed), 1 left as they are there (createOnly), 1 the same",
  );
  expect((await signalsOf(service))["pump"]).toMatchObject({ engUnit: "Hz" });
});

test("each kind of failure has its exit status", async () => {
  using home = temporaryFolder();
  await using service = await testService({
    integrations: [{ id: integration, password: new Secret(password), grants: [] }],
  });
  const refused = await command(["signals", "diff", "-c", configuration(home, service)]);
  expect(refused).toMatchObject({ status: 77, stderr: expect.stringContaining("no access to the admin namespace") });
  const wrong = await command(["signals", "diff", "-c", configuration(home, service, { secret: "wrong" })]);
  expect(wrong.status).toBe(77);
  const nobody = await command([
    "signals",
    "diff",
    "-c",
    configuration(home, service, { url: "http://127.0.0.1:1/v1" }),
  ]);
  expect(nobody.status).toBe(69);
  const invalid = configuration(home, service, { apiVersion: "1.0", signals: "{ publish: update, require: [unit] }" });
  const config = await command(["signals", "publish", "-c", invalid]);
  expect(config).toMatchObject({ status: 78, stderr: expect.stringContaining("labels.<key>") });
  const old = await command([
    "signals",
    "publish",
    "-c",
    configuration(home, service, { apiVersion: "1.0", signals: "{ publish: update }" }),
  ]);
  expect(old).toMatchObject({ status: 78, stderr: expect.stringContaining("1.0 has no method to publish") });
  expect((await command(["signals", "save", "--often"])).status).toBe(2);
});
