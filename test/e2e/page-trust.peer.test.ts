// From an untrusted OPC UA server to its values, with only the status page in a real Chromium and a shell.
import { execFile } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { promisify } from "node:util";
import { chromium } from "playwright-core";
import { expect, test } from "vitest";
import { startAgent } from "../support/agent-process.ts";
import { eventually } from "../support/eventually.ts";
import { opcuaServer } from "../support/opcua-server.ts";
import { program } from "../support/program.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

test("the page shows the certificate and the command; pasted into a shell unchanged, it makes values arrive", async () => {
  using home = temporaryFolder();
  await using server = await opcuaServer({ folder: home.file("server"), secure: true });
  const refused = { at: "2026-03-01T08:00:00Z", input: "old.tag", time: "2026-03-01T07:00:00Z", value: 1, code: 422 };
  const configuration = `version: 1
agent: { name: gw1, dataDir: ${JSON.stringify(home.file("the data"))} }
http: { listen: "127.0.0.1:0" }
service: { url: "http://127.0.0.1:1/v1", integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: "\${PW:-x}" } } }
sources: { line: { type: opcua, url: "${server.url}", tags: [{ input: temp, node: "ns=2;s=Temp" }] } }
`;
  await using agent = await startAgent({ folder: home.path, configuration });
  // The agent is ready before the uploader has created its folder.
  await eventually(() => existsSync(home.file("the data/upload")));
  writeFileSync(home.file("the data/upload/rejects.ndjson"), `${JSON.stringify({ ...refused, reason: "too old" })}\n`);
  await using parts = new AsyncDisposableStack();
  const browser = parts.adopt(
    await chromium.launch({
      executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"],
    }),
    (opened) => opened.close(),
  );
  const page = await browser.newPage();
  await page.goto(agent.page);
  const command = page.locator("#certificates .command");
  await command.waitFor({ timeout: 60_000 });
  await page.locator(".source", { hasText: "trust accept" }).waitFor();
  await page.getByRole("link", { name: "Delivery", exact: true }).click();
  await page.locator(".reason", { hasText: "too old" }).waitFor();
  await page.getByRole("link", { name: "Overview" }).click();
  await command.waitFor({ timeout: 60_000 });
  const text = (await command.textContent()) ?? "";
  expect(text).toMatch(/^tagferry trust accept [0-9a-f]{40} -c /);
  await promisify(execFile)("sh", ["-c", text.replace(/^tagferry /, '"$NODE" "$MAIN" ')], {
    env: { ...process.env, NODE: process.execPath, MAIN: program },
  });
  await page.locator("#trust").waitFor({ state: "hidden", timeout: 60_000 });
  await page.locator(".source .pill", { hasText: "online" }).waitFor({ timeout: 60_000 });
  await page.locator(".tag .value", { hasText: /\d/ }).waitFor({ timeout: 60_000 });
});
