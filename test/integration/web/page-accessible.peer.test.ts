// Accessibility of the pages for keyboards and screen readers: axe checks them in a real Chromium, light, dark and on a
// phone. axe is under MPL-2.0, so it is not a dependency and is installed outside the project.
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { chromium } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { Secret } from "../../../src/core/secret.ts";
import { npmPackageFolder } from "../../support/npm-package.ts";
import { sourceWith, statusWith, tagWith } from "../../support/status.ts";
import { openPage } from "./open-page.ts";

let browser: Browser;
let axe: string;

beforeAll(async () => {
  const folder = await npmPackageFolder("axe-core", "4.14.1");
  axe = join(folder, "node_modules/axe-core/axe.min.js");
  browser = await chromium.launch({
    executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"],
  });
}, 180_000);
afterAll(() => browser.close());

const base = statusWith();
const tags = [
  tagWith(),
  tagWith({ input: "hall.co2", quality: "bad", reason: "out of range" }),
  tagWith({ input: "hall.lamp", quality: "uncertain" }),
];
const troubled = () =>
  statusWith({
    tags,
    sources: [
      sourceWith(),
      sourceWith({ name: "bus1", type: "modbus", state: "waiting", error: "no answer", remedy: "check" }),
    ],
    gaps: { ...base.gaps, day: 1, dayLost: 1 },
    upload: { ...base.upload, refusedPoints: 2, signals: { known: 3, pending: 1, saved: 2 } },
    warnings: [{ level: "warn", message: "a secret stands in the file itself" }],
  });
const reason = { code: 422, reason: "out of range", points: 2, earliest: undefined, latest: undefined };
const web = {
  snapshot: troubled,
  rejects: async () => ({ points: 2, unreadable: 0, reasons: [{ ...reason, inputs: new Map([["a", 2]]) }] }),
  configFile: "/etc/tagferry.yaml",
  control: {
    tokens: [new Secret("token-of-the-page")],
    tokenFile: "/data/control.token",
    reload: async () => ({ ok: true }),
    retryRejects: async () => ({ ok: true }),
    log: () => [],
    logSince: () => ({
      lines: [30, 40, 50].map((level) => JSON.stringify({ level, time: "2026-03-01T08:00:00Z", msg: "late" })),
      next: 3,
      missed: 0,
    }),
    security: () => ({}),
    config: () => ({
      files: [import.meta.filename],
      values: [
        { path: "agent.name", value: "gw1", at: { file: import.meta.filename, line: 2, column: 1 } },
        { path: "service.interval", value: "1s" },
      ],
      sources: [],
    }),
  },
  tag: () => ({
    status: tagWith(),
    stored: 1,
    filtered: 0,
    rules: ["every good reading is stored"],
    latest: [],
    source: { name: "hall", type: "mqtt", state: "online" },
  }),
};
const found = z.array(
  z.object({ id: z.string(), impact: z.string().nullable(), nodes: z.array(z.object({ html: z.string() })) }),
);

const screens = {
  light: { viewport: { width: 1_280, height: 900 } },
  dark: { viewport: { width: 1_280, height: 900 }, colorScheme: "dark" },
  phone: { viewport: { width: 390, height: 844 } },
} as const;
const pages = ["/", "/delivery", "/config", "/log", "/tag?source=hall&tag=0&input=hall.room1.temp"];
const withToken = ["/config", "/log"];

test.each(pages.flatMap((path) => Object.keys(screens).map((screen) => [path, screen] as const)))(
  "axe has no serious finding on %s, %s",
  async (path, screen) => {
    await using opened = await openPage(browser, web, {
      path,
      ...screens[screen as keyof typeof screens],
      bypassCSP: true,
    });
    const { page } = opened;
    if (withToken.includes(path)) {
      await page.getByRole("dialog").waitFor();
      await page.keyboard.type("token-of-the-page");
      await page.keyboard.press("Enter");
      await page.locator(".place, .line").first().click();
    }
    await page.addScriptTag({ path: axe });
    const all = found.parse(await page.evaluate("axe.run().then(({ violations }) => violations)"));
    const serious = all.filter(({ impact }) => impact === "serious" || impact === "critical");
    expect(serious.map(({ id, nodes }) => [id, nodes.map(({ html }) => html.slice(0, 160))])).toEqual([]);
  },
);

test("with the keyboard alone: search, the next page of rows, a tag, and a source that unfolds", async () => {
  const many = Array.from({ length: 60 }, (_, i) => tagWith({ input: `line.tag${i}`, value: i }));
  await using opened = await openPage(browser, { ...web, snapshot: () => statusWith({ tags: many }) });
  const { page } = opened;
  await page.locator(".tag").first().waitFor();
  await page.getByRole("button", { name: "Next" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("26 to 50 of 60").waitFor();
  await page.getByRole("searchbox").focus();
  await page.keyboard.type("tag59");
  await page.getByText("1 of 60").waitFor();
  const source = page.locator(".source summary");
  await source.focus();
  await page.keyboard.press("Space");
  await page.locator(".source[open]").waitFor();
  await page.getByRole("link", { name: "line.tag59" }).focus();
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/tag\?source=hall&tag=0&input=line\.tag59/);
});
