// The status page as a person sees it, in a real Chromium.
import type { Browser, Page } from "playwright-core";
import { chromium } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Status } from "../../../src/agent/status.ts";
import { epochMicros } from "../../../src/core/point.ts";
import { eventually } from "../../support/eventually.ts";
import { sourceWith, statusWith, tagWith } from "../../support/status.ts";
import { openPage as openPageWith } from "./open-page.ts";

const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
let browser: Browser;

beforeAll(async () => {
  browser = await chromium.launch({
    executablePath,
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"],
  });
});
afterAll(() => browser.close());

const openPage = (snapshot: () => Status, viewport?: { width: number; height: number }) =>
  openPageWith(browser, { snapshot }, viewport ? { viewport } : {});

const rowOf = (page: Page, input: string) => page.locator(".tag", { has: page.getByText(input, { exact: true }) });

test("values change on the page by themselves, and nothing is asked of anybody else", async () => {
  let n = 0;
  await using opened = await openPage(() => {
    n++;
    return statusWith({
      time: epochMicros(statusWith().time + n * 1e6),
      tags: [tagWith({ value: n }), tagWith({ input: "hall.lamp", value: 1, text: "on" })],
    });
  });
  const { page, complaints } = opened;
  const value = rowOf(page, "hall.room1.temp").locator(".value");
  const first = await value.textContent();
  expect(first).toMatch(/^\d+ °C$/);
  await eventually(async () => (await value.textContent()) !== first);
  expect(await rowOf(page, "hall.lamp").locator(".value").textContent()).toBe("on °C");
  await eventually(async () =>
    (await rowOf(page, "hall.room1.temp").locator("path.line").getAttribute("d"))?.includes("L"),
  );
  expect(await page.title()).toBe("north-gw1");
  expect(complaints).toEqual([]);
});

test("ten thousand tags: only what is on the screen exists, and scrolling and searching find the rest", async () => {
  const tags = Array.from({ length: 10_000 }, (_, i) => tagWith({ input: `line.tag${i}`, value: i }));
  await using opened = await openPage(() => statusWith({ tags }));
  const { page, complaints } = opened;
  await rowOf(page, "line.tag0").waitFor();
  expect(await page.locator(".tag").count()).toBeLessThan(60);
  await page.evaluate("scrollTo(0, document.body.scrollHeight)");
  await rowOf(page, "line.tag9999").waitFor();
  expect(await page.locator(".tag").count()).toBeLessThan(60);
  await page.locator("#search").fill("tag7777");
  await rowOf(page, "line.tag7777").waitFor();
  expect(await page.locator("#tags-count").textContent()).toBe("1 of 10,000");
  await eventually(async () => (await page.locator(".tag").count()) === 1);
  expect(complaints).toEqual([]);
});

test("names and reasons that hold markup or turn the writing round are shown as what they are", async () => {
  const script = '<img src=x onerror="alert(1)">';
  await using opened = await openPage(() =>
    statusWith({
      sources: [sourceWith({ name: script, error: script, remedy: "javascript:alert(1)", state: "waiting" })],
      tags: [tagWith({ input: script, address: "evil\u202Egpj.exe", unit: script })],
      warnings: [{ level: "error", message: script, remedy: script }],
    }),
  );
  const { page, complaints } = opened;
  await rowOf(page, script).waitFor();
  expect(await page.locator("img, script:not([src])").count()).toBe(0);
  expect(await rowOf(page, script).locator(".address").textContent()).toBe("hall  evil\\u202egpj.exe");
  expect(await page.locator("#overall").textContent()).toBe("1 source offline");
  expect(complaints).toEqual([]);
});

test("a failing source shows its error and the remedy, and both go away when it is mended", async () => {
  let mended = false;
  const failing = { state: "waiting" as const, error: "10.0.0.5:502: connection refused", remedy: "check the cable" };
  await using opened = await openPage(() => statusWith({ sources: [sourceWith(mended ? {} : failing)] }));
  const { page } = opened;
  await page.getByText("10.0.0.5:502: connection refused: check the cable").waitFor();
  mended = true;
  await page.locator("#overall", { hasText: "all well" }).waitFor();
  await page.getByText("connection refused").waitFor({ state: "hidden" });
});

test("when the agent stops answering, the page says so instead of showing old values as new", async () => {
  const opened = await openPage(() => statusWith());
  const { page } = opened;
  await using _ = opened;
  await page.route("**/api/events*", (route) => route.abort());
  await page.locator("#search").fill("room");
  await page.getByText(/No answer from the agent/).waitFor({ timeout: 15_000 });
});

test("on a phone nothing sticks out to the side", async () => {
  await using opened = await openPage(
    () => statusWith({ sources: [sourceWith({ url: `opc.tcp://${"long-name".repeat(9)}:4840` })] }),
    { width: 360, height: 700 },
  );
  const width = await opened.page.evaluate("document.documentElement.scrollWidth");
  expect(width).toBeLessThanOrEqual(360);
});
