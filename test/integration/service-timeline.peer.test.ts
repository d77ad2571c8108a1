// The timeline page in a real Chromium, used as a person would.
import type { Browser, Page } from "playwright-core";
import { chromium } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Secret } from "../../src/core/secret.ts";
import { eventually } from "../support/eventually.ts";
import type { TestService } from "../support/service.ts";
import { integration, password, testService } from "../support/service.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await chromium.launch({
    executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"],
  });
});
afterAll(() => browser.close());

async function serviceWithData(): Promise<TestService> {
  const service = await testService({ namespace: "acme", throttle: "queue" });
  const now = Date.now();
  const times = Array.from({ length: 600 }, (_, i) => new Date(now - (600 - i) * 1_000).toISOString());
  await service.call("integration.saveSignals", {
    integration,
    inputs: {
      "boiler.temp": { name: "Boiler temperature", engUnit: "°C" },
      "pump.on": { name: "<img src=x onerror=alert(1)>" },
    },
  });
  await service.call("integration.insert", {
    integration,
    data: {
      times,
      series: { "boiler.temp": times.map((_, i) => Math.sin(i / 50) * 10), "pump.on": times.map((_, i) => i % 2) },
    },
  });
  return service;
}

interface Opened extends AsyncDisposable {
  readonly page: Page;
  /** Errors, refused resources, dialogs and requests to other hosts. */
  readonly complaints: readonly string[];
}

async function openPage(url: string, origin: string, viewport = { width: 1_200, height: 900 }): Promise<Opened> {
  const page = await browser.newPage({ viewport });
  const complaints: string[] = [];
  page.on("console", (message) => complaints.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => complaints.push(`dialog: ${dialog.message()}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(origin)) complaints.push(`request: ${request.url()}`);
  });
  await page.goto(url);
  return { page, complaints, [Symbol.asyncDispose]: () => page.close() };
}

/** Waits until the chart shows this many series. */
const shows = (page: Page, count: number) => page.waitForSelector(`#plot[data-shown="${count}"]`);
const row = (page: Page, input: string) => page.locator(`#signals li[data-input="${input}"]`);

test("a user signs in, searches, publishes a signal, and sees its values, without a request to another host", async () => {
  await using service = await serviceWithData();
  await using opened = await openPage(service.pageUrl, service.pageUrl);
  const { page } = opened;
  await page.getByLabel("Integration ID").fill(integration);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await row(page, "boiler.temp").waitFor();
  expect(await page.locator("#signals li").count()).toBe(2);

  await page.getByLabel("Search signals").fill("BOILER");
  await eventually(async () => (await page.locator("#signals li").count()) === 1);

  const boiler = row(page, "boiler.temp");
  expect(await boiler.getByRole("checkbox").isDisabled()).toBe(true);
  await boiler.getByRole("button", { name: "Publish" }).click();
  await boiler.getByRole("checkbox").check();
  await shows(page, 1);
  expect(await page.locator("#legend").textContent()).toMatch(/Boiler temperature.*-?[\d.]+ °C/);
  const { body } = await service.call("acme.selectItems", { items: { include: true } });
  expect(Object.values(body?.result?.items)).toMatchObject([{ name: "Boiler temperature", engUnit: "°C" }]);
  expect(opened.complaints).toEqual([]);
});

test("the resolution follows the zoom, from one value for many seconds down to every point", async () => {
  await using service = await serviceWithData();
  const { body } = await service.call("admin.selectSignals", { integration, signals: { include: true } });
  const view = { name: "Item", type: "numeric", sourceType: "measurement" };
  const itemsBySignal = Object.fromEntries(Object.keys(body?.result?.signals).map((id) => [id, view]));
  await service.call("admin.publishSignals", { integration, itemsBySignal });
  await using opened = await openPage(
    `${service.pageUrl}#${integration}:${encodeURIComponent(password)}`,
    service.pageUrl,
  );
  const { page } = opened;
  expect(page.url()).not.toContain(integration);
  for (const input of ["boiler.temp", "pump.on"]) await row(page, input).getByRole("checkbox").check();
  const resolution = page.locator("#resolution");
  await page.getByRole("button", { name: "1 d", exact: true }).click();
  await eventually(async () => (await resolution.textContent()) === "one value for 2 minutes");
  await shows(page, 2);
  await page.getByRole("button", { name: "15 min" }).click();
  await eventually(async () => (await resolution.textContent()) === "one value for 2 seconds");
  await page.locator("#plot").hover();
  // Zooms from 15 minutes to 100 s. The page loads values once the wheel rests.
  for (let n = 0; n < 10; n++) await page.mouse.wheel(0, -100);
  await eventually(async () => (await resolution.textContent()) === "every point");
  expect(await page.locator("#live").isChecked()).toBe(false);
  expect(await page.locator("#signals").textContent()).toContain("<img src=x onerror=alert(1)>");
  expect(opened.complaints).toEqual([]);
});

test("on a phone a name without a space stays on the screen, next to the button that publishes it", async () => {
  await using service = await testService({ namespace: "acme" });
  const name = "Plant7.Hall3.Press12.Hydraulics.Pump2.MotorTemperature.Bearing";
  await service.call("integration.saveSignals", { integration, inputs: { press: { name } } });
  const url = `${service.pageUrl}#${integration}:${encodeURIComponent(password)}`;
  await using opened = await openPage(url, service.pageUrl, { width: 390, height: 844 });
  const { page } = opened;
  const button = await row(page, "press").getByRole("button", { name: "Publish" }).boundingBox();
  expect((button?.x ?? 390) + (button?.width ?? 0)).toBeLessThanOrEqual(390);
});

test("a link with more signals than can be plotted says how many are", async () => {
  await using service = await testService();
  const items = Array.from({ length: 51 }, (_, i) => `c8ktonqsahsmemfs${String(i).padStart(4, "0")}`);
  await using opened = await openPage(`${service.pageUrl}#items=${items.join(",")}&last=900`, service.pageUrl);
  await opened.page.getByText("The link names 51 signals; the first 50 are plotted.").waitFor();
});

test("a wrong password and an unreachable service are shown on the page", async () => {
  await using service = await serviceWithData();
  await using opened = await openPage(`${service.pageUrl}#${integration}:wrong`, service.pageUrl);
  const { page } = opened;
  const problem = page.locator("#problem");
  await eventually(async () => (await problem.textContent())?.includes("Integration ID with this password"));
  expect(await page.getByLabel("Password").isVisible()).toBe(true);
  await page.getByLabel("Integration ID").fill(integration);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await row(page, "boiler.temp").waitFor();
  await service.pause();
  await page.getByLabel("Search signals").fill("boiler");
  await eventually(async () => (await problem.textContent())?.includes("does not answer"));
});

test("the page is limited to its files by a strict policy in every answer", async () => {
  await using service = await testService();
  for (const path of [
    "",
    "timeline/timeline.js",
    "timeline/uPlot.iife.min.js",
    "timeline/timeline.css",
    "timeline/settings.json",
  ]) {
    const reply = await fetch(new URL(path, service.pageUrl));
    expect(reply.status).toBe(200);
    expect(reply.headers.get("content-security-policy")).toMatch(/^default-src 'none'; script-src 'self';/);
  }
  expect((await fetch(new URL("timeline/../options.ts", service.pageUrl))).status).toBe(404);
});

test("a password with a literal percent sign in the address signs in", async () => {
  await using service = await testService({
    integrations: [{ id: integration, password: new Secret("50%off"), grants: ["admin", "platform"] }],
  });
  await using opened = await openPage(`${service.pageUrl}#${integration}:50%off`, new URL(service.url).origin);
  await opened.page.waitForSelector("#main:not([hidden])");
  expect(opened.complaints).toEqual([]);
});
