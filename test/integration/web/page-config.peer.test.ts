// The pages of the configuration and of the log in a real Chromium, with a configuration that was read from files.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { chromium } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { processEnvironment } from "../../../src/config/files/environment.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { epochMicros } from "../../../src/core/point.ts";
import { Secret } from "../../../src/core/secret.ts";
import type { WebOptions } from "../../../src/web/server.ts";
import { statusWith } from "../../support/status.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { openPage } from "./open-page.ts";

let browser: Browser;

beforeAll(async () => {
  browser = await chromium.launch({
    executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"],
  });
});
afterAll(() => browser.close());

const token = "token-of-the-page";
/** The first request has no token, and the dialog asks for it outside of a form. */
const expected = /status of 401|Password field is not contained in a form/;
const main = `version: 1
# the password of the old gateway was canary-comment
agent: { name: north-gw1 }
service:
  url: https://service.example.com/v1
  integration: c8ktonqsahsmemfs7lv0
  auth: { basic: { password: canary-password } }
  interval: 60s
include: sources/*.yaml
`;
const hall = `sources:
  hall:
    type: mqtt
    url: mqtts://broker.plant:8883
    username: gw1
    password: "\${BROKER_PASSWORD:-canary-fallback}"
    tags:
      - { input: hall.room1.temp, topic: sensors/room1/env, value: "$.t" }
      - { input: "hall.{room}.co2", topic: "sensors/{room}/env", value: "$.co2" }
`;

const screens = {
  light: { viewport: { width: 1_280, height: 900 } },
  dark: { viewport: { width: 1_280, height: 900 }, colorScheme: "dark" },
  phone: { viewport: { width: 390, height: 844 } },
} as const;
type Screen = (typeof screens)[keyof typeof screens];

function controlWith(changes: Partial<NonNullable<WebOptions["control"]>>): NonNullable<WebOptions["control"]> {
  return {
    tokens: [new Secret(token)],
    tokenFile: "/data/control.token",
    reload: async () => ({ ok: true }),
    retryRejects: async () => ({ ok: true }),
    log: () => [],
    security: () => ({}),
    ...changes,
  };
}

/** The page with its token entered. */
async function openWithToken(
  path: string,
  control: NonNullable<WebOptions["control"]>,
  screen: Screen = screens.light,
) {
  const opened = await openPage(browser, { snapshot: () => statusWith(), control }, { path, ...screen });
  await opened.page.getByRole("dialog", { name: "This page needs a token" }).waitFor();
  await opened.page.keyboard.type(token);
  await opened.page.keyboard.press("Enter");
  return opened;
}

async function openConfig(screen?: Screen) {
  await using opening = new AsyncDisposableStack();
  const folder = opening.use(temporaryFolder());
  const file = folder.file("tagferry.yaml");
  mkdirSync(folder.file("sources"));
  writeFileSync(file, main);
  writeFileSync(folder.file("sources/hall.yaml"), hall);
  const config = await loadConfig(file, processEnvironment());
  const opened = opening.use(await openWithToken("/config", controlWith({ config: () => config }), screen));
  await opened.page.getByText("The file is in effect as it was loaded").waitFor();
  const owned = opening.move();
  return { ...opened, file, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

async function keep(page: Awaited<ReturnType<typeof openWithToken>>["page"], name: string): Promise<void> {
  const folder = process.env["TAGFERRY_SHOTS"];
  if (folder !== undefined) await page.screenshot({ path: join(folder, `${name}.png`) });
}

test("every value has its place or is a default, and the place shows the lines of its file", async () => {
  await using opened = await openConfig();
  const { page, complaints } = opened;
  const row = (path: string) => page.getByRole("row").filter({ has: page.getByText(path, { exact: true }) });
  expect(await row("service.interval").innerText()).toMatch(/60s\s+tagferry\.yaml:8/);
  expect(await row("buffer.maxSize").innerText()).toMatch(/2GiB\s+default/);
  await page.getByRole("searchbox").fill("hall");
  await page.getByText("sources.hall.tags[1]").waitFor();
  expect(await row("sources.hall.tags[0]").innerText()).toMatch(/hall\.room1\.temp\s+hall\.yaml:8/);
  const link = page.getByRole("link", { name: "hall.room1.temp" });
  expect(await link.getAttribute("href")).toBe("tag?source=hall&tag=0&input=hall.room1.temp");
  await row("sources.hall.url").getByRole("button").click();
  expect(await page.locator(".lines .here").textContent()).toBe("    url: mqtts://broker.plant:8883");
  await row("sources.hall.url").getByRole("button").click();
  expect(await page.locator(".lines").count()).toBe(0);
  expect(complaints.filter((text) => !expected.test(text))).toEqual([]);
});

test("from the last page of values, which is shorter, Previous leads to the whole page before it", async () => {
  const values = Array.from({ length: 250 }, (_, i) => ({ path: `a.${i}`, value: "1" }));
  await using opened = await openWithToken("/config", controlWith({ config: () => ({ values, sources: [] }) }));
  const { page } = opened;
  await page.getByText("1 to 200 of 250").waitFor();
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByText("201 to 250 of 250").waitFor();
  await page.getByRole("button", { name: "Previous" }).click();
  await page.getByText("1 to 200 of 250").waitFor();
});

test.each(["/config", "/log", "/discover"])(
  "an agent that does not offer its control interface says so on %s",
  async (path) => {
    await using opened = await openPage(browser, { snapshot: () => statusWith() }, { path });
    await opened.page.getByText("This agent does not offer this on its page").waitFor();
    expect(await opened.page.getByRole("button", { name: "Enter the token" }).isVisible()).toBe(false);
  },
);

test("no secret reaches the browser: not its value, nor in the lines of its file or in comments", async () => {
  await using opened = await openConfig();
  const { page } = opened;
  const bodies: Promise<string>[] = [];
  page.on("response", (response) => void bodies.push(response.text().catch(() => "")));
  await page.getByRole("combobox").selectOption("written");
  await page.getByText("sources.hall.password").waitFor();
  expect(await page.locator("#values").innerText()).toContain("${BROKER_PASSWORD:-***}");
  for (const button of await page.locator(".place:enabled").all()) await button.click();
  await page.waitForFunction("document.querySelectorAll('.lines .here').length >= 10");
  const sent = (await Promise.all(bodies.filter((_, index) => index >= 0))).join("\n");
  expect(sent).toContain("mqtts://broker.plant:8883");
  expect(sent).not.toContain("canary");
  expect(await page.content()).not.toContain("canary");
});

test("a file that was changed after it was loaded is named in the headline", async () => {
  await using opened = await openConfig();
  writeFileSync(opened.file, `${main}log: { level: debug }\n`);
  await opened.page.getByRole("searchbox").fill("log");
  await opened.page.getByText("The file was changed after it was loaded").waitFor();
});

const line = (level: number, msg: string, more: object = {}) =>
  JSON.stringify({ level, time: new Date().toISOString(), agent: "north-gw1", ...more, msg });

/** A log that grows. */
function growing(lines: string[]) {
  return {
    logSince: (after: number) => ({ lines: lines.slice(after), next: lines.length, missed: 0 }),
  };
}

const someLines = [
  line(30, "ready", { version: "0.1.0", sources: 1, page: "http://127.0.0.1:8421" }),
  line(30, "connected", { part: "source", source: "hall", url: "mqtts://broker.plant:8883" }),
  line(40, "connection lost", {
    part: "source",
    source: "hall",
    err: { type: "Error", message: "keep-alive timed out" },
  }),
  line(50, "points cannot be stored", { part: "buffer", err: { type: "Error", message: "ENOSPC: no space left" } }),
  line(30, "connected", { part: "source", source: "hall", url: "mqtts://broker.plant:8883" }),
];

test("the log shows further lines by itself, newest first, and filters by level, source and text", async () => {
  const lines = [...someLines];
  await using opened = await openWithToken("/log", controlWith(growing(lines)));
  const { page, complaints } = opened;
  const rows = page.locator(".line");
  await page.getByText("ENOSPC: no space left").waitFor();
  expect(await rows.count()).toBe(5);
  await page.getByText(/^1 error and 1 warning since/).waitFor();
  lines.push(line(40, "<b>late</b>", { source: "hall" }));
  await page.getByText("<b>late</b>").waitFor();
  expect(await rows.first().innerText()).toContain("<b>late</b>");
  await page.getByLabel("Level").selectOption("40");
  expect(await rows.count()).toBe(3);
  await page.getByLabel("Source").selectOption("hall");
  expect(await rows.count()).toBe(2);
  await page.getByRole("searchbox").fill("KEEP-ALIVE");
  expect(await rows.allInnerTexts()).toEqual([expect.stringContaining("connection lost")]);
  expect(complaints.filter((text) => !expected.test(text))).toEqual([]);
});

test("after a restart of the agent the log has all lines of the new run, however many it had before", async () => {
  const { agent } = statusWith();
  let startedAt = agent.startedAt;
  let lines = [line(30, "first run"), line(30, "of two lines")];
  const control = controlWith({ logSince: (after) => ({ lines: lines.slice(after), next: lines.length, missed: 0 }) });
  const snapshot = () => statusWith({ agent: { ...agent, startedAt } });
  await using opened = await openPage(browser, { snapshot, control }, { path: "/log" });
  const { page } = opened;
  await page.getByRole("dialog").waitFor();
  await page.keyboard.type(token);
  await page.keyboard.press("Enter");
  await page.getByText("of two lines").waitFor();
  startedAt = epochMicros(startedAt + 60e6);
  lines = [line(30, "second run"), line(30, "with three"), line(30, "lines")];
  await page.getByText("second run").waitFor();
  expect(await page.locator(".line").count()).toBe(3);
});

test("the lines on screen are bounded, and a paused log stands still", async () => {
  const lines = Array.from({ length: 5_000 }, (_, i) => line(30, `line ${i}`));
  await using opened = await openWithToken("/log", controlWith(growing(lines)));
  const { page } = opened;
  await page.getByText("5,000 of 5,000 lines, the latest 300 shown").waitFor();
  expect(await page.locator(".line").count()).toBe(300);
  await page.getByRole("button", { name: "Pause" }).click();
  lines.push(line(30, "after the pause"));
  await page.getByRole("searchbox").fill("after the pause");
  await page.getByText("0 of 5,000 lines").waitFor();
  await page.getByRole("button", { name: "Paused" }).click();
  await page.getByText("1 of 5,000 lines").waitFor();
});

test.each(Object.entries(screens))("configuration and log fit the width, %s", async (name, screen) => {
  await using config = await openConfig(screen);
  await config.page.getByRole("button", { name: "tagferry.yaml:8" }).click();
  await config.page.locator(".lines .here").waitFor();
  await keep(config.page, `configuration-${name}`);
  await using log = await openWithToken("/log", controlWith(growing(someLines)), screen);
  await log.page.locator(".line").first().waitFor();
  await keep(log.page, `log-${name}`);
  for (const { page } of [config, log])
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(screen.viewport.width);
});
