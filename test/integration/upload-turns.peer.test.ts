// Commands and a running agent share one request rate, in real time.
import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { InputId } from "../../src/core/point.ts";
import { TurnFolder } from "../../src/upload/client/pacer.ts";
import { command } from "../support/command.ts";
import { eventually } from "../support/eventually.ts";
import { testRuntime } from "../support/runtime.ts";
import { accepts, ScriptedService, says } from "../support/scripted-service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { closest, uploadIntegration, uploading } from "../support/uploading.ts";

const save = "integration.saveSignals";

test("an agent and two concurrent commands save signals a second apart", { timeout: 90_000 }, async () => {
  using home = temporaryFolder();
  await using service = await ScriptedService.open();
  const nothing = says(() => ({ result: { signals: {}, items: {} } }));
  service.otherwise = (exchange) => (exchange.request.method === save ? accepts : nothing)(exchange);
  const dataDir = home.file("data");
  mkdirSync(dataDir);
  const file = home.file("agent.yaml");
  writeFileSync(
    file,
    `version: 1
agent: { dataDir: ${JSON.stringify(dataDir)}, ownSignals: off }
service: { url: "${service.url}", integration: ${uploadIntegration}, auth: { basic: { password: "\${PW:-secret}" } } }
sources: { waves: { type: simulator, tags: [{ input: boiler, wave: sine, period: 5s, min: 0, max: 1 }] } }
`,
  );
  await using upload = await uploading({ url: service.url, speed: 1, folder: dataDir });
  let ended = 0;
  const commands = [1, 2].map(async () => {
    const { status, stderr } = await command(["signals", "save", "-c", file]);
    ended++;
    return [status, stderr];
  });
  let described = 0;
  await eventually(() => {
    if (upload.catalog.pending.size === 0) upload.catalog.describe(`tag${described++}` as InputId, { engUnit: "V" });
    return ended === 2 && described > 3;
  }, 80_000);
  expect(await Promise.all(commands)).toEqual([
    [0, ""],
    [0, ""],
  ]);
  const lengths = new Set(service.requests(save).map(({ bytes }) => bytes));
  const saves = upload.departures.filter(({ bytes }) => lengths.has(bytes));
  const byCommands = service.requests(save).filter(({ request }) => "boiler" in (request.params.inputs ?? {}));
  expect(byCommands.length).toBeGreaterThan(0);
  expect(saves.length).toBe(service.requests(save).length);
  expect(closest(saves)).toBeGreaterThanOrEqual(1_000);
  expect(service.mostOpen).toBeLessThanOrEqual(3);
});

test("the turn of a process killed during its call is free", async () => {
  using home = temporaryFolder();
  const module = join(import.meta.dirname, "../../src/upload/client/pacer.ts");
  const source = `
    const { TurnFolder } = await import(${JSON.stringify(module)});
    const turns = new TurnFolder(${JSON.stringify(home.path)}, console).of(${JSON.stringify(save)});
    turns.take();
    turns.callAgainAt(5);
    await new Promise((resolve) => setTimeout(resolve, 100));
    console.log("taken");
    setInterval(() => turns, 1_000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", source], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await new Promise((resolve) => child.stdout.once("data", resolve));
  using folder = new TurnFolder(home.path, testRuntime().log);
  const turns = folder.of(save);
  expect(turns?.take()).toBe(false);
  child.kill("SIGKILL");
  await eventually(() => turns?.take());
  expect(await turns?.next()).toBe(5);
  await turns?.give();
});
