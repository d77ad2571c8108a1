// The status page as a user sees it, in a real Chromium.
import type { Browser, Page } from "playwright-core";
import { chromium } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Status } from "../../../src/agent/status/status.ts";
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

test("values change on the page by themselves, without a request to another host", async () => {
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
  expect(await page.title()).toBe("north-gw1");
  expect(complaints).toEqual([]);
});

test("ten thousand tags: only the rows of a page exist, and turning, sorting and searching find the rest", async () => {
  const tags = Array.from({ length: 10_000 }, (_, i) =>
    tagWith({ input: `line.tag${i}`, value: i, ...(i === 6_000 && { quality: "bad", reason: "out of range" }) }),
  );
  await using opened = await openPage(() => statusWith({ tags }));
  const { page, complaints } = opened;
  const only = (input: string) =>
    eventually(async () => (await page.locator(".tag .input").first().textContent()) === input);
  await rowOf(page, "line.tag0").waitFor();
  expect(await page.locator(".tag").count()).toBe(25);
  await page.getByRole("button", { name: "Next" }).click();
  await rowOf(page, "line.tag25").waitFor();
  expect(await page.locator("#range").textContent()).toBe("26 to 50 of 10,000");
  await page.getByLabel("Order").selectOption("state");
  await only("line.tag6000");
  await page.getByLabel("State").selectOption("bad");
  await eventually(async () => (await page.locator(".tag").count()) === 1);
  expect(await page.locator(".tag").innerText()).toMatch(/line\.tag6000[^]*no usable value[^]*out of range/);
  await page.getByLabel("State").selectOption("");
  await page.locator("#search").fill("tag7777");
  await only("line.tag7777");
  expect(await page.locator("#tags-count").textContent()).toBe("1 of 10,000");
  await page.reload();
  await only("line.tag7777");
  expect(complaints).toEqual([]);
});

test("rows of one source are shown by a link and by a choice", async () => {
  const sources = ["hall", "press"].map((name) => sourceWith({ name }));
  const tags = ["hall", "press"].map((source) => tagWith({ source, input: `${source}.temp` }));
  await using opened = await openPageWith(
    browser,
    { snapshot: () => statusWith({ sources, tags }) },
    { path: "/?source=press" },
  );
  const { page } = opened;
  const shown = (input: string) =>
    eventually(async () => (await page.locator(".tag .input").allTextContents()).join() === input);
  await shown("press.temp");
  await page.getByLabel("Source", { exact: true }).selectOption("hall");
  await shown("hall.temp");
  expect(new URL(page.url()).search).toBe("?source=hall");
});

test("names and reasons with markup or bidirectional controls are shown literally", async () => {
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
  expect(await page.locator("#overall").textContent()).toContain("1 source offline.");
  expect(complaints).toEqual([]);
});

test("a failing source shows its error and the remedy until it recovers", async () => {
  let repaired = false;
  const failing = { state: "waiting" as const, error: "10.0.0.5:502: connection refused", remedy: "check the cable" };
  await using opened = await openPage(() => statusWith({ sources: [sourceWith(repaired ? {} : failing)] }));
  const { page } = opened;
  await page
    .locator(".problem", { hasText: "10.0.0.5:502: connection refused" })
    .getByText("check the cable")
    .waitFor();
  await page.locator(".source .trouble", { hasText: "10.0.0.5:502: connection refused: check the cable" }).waitFor();
  repaired = true;
  await page.locator("#overall", { hasText: "Data arrives and is delivered." }).waitFor();
  await page.locator(".problem", { hasText: "offline" }).waitFor({ state: "detached" });
  // The details of healthy sources are collapsed.
  await page.locator(".source:not([open])").waitFor();
});

test("details of a source are words with units", async () => {
  const details = { keepaliveSeconds: 60, keepAlive: "10000 ms", session: "600000 ms (asked for 1200000 ms)" };
  await using opened = await openPage(() => statusWith({ sources: [sourceWith({ details })] }));
  const { page } = opened;
  await page.locator(".source summary").click();
  expect((await page.locator(".details").innerText()).replace(/\s+/g, " ")).toBe(
    "points 12,000 keep-alive 60 s keep-alive 10 s session 10 min (asked for 20 min)",
  );
});

test("when the agent stops answering, the page reports it instead of showing old values as current", async () => {
  const opened = await openPage(() => statusWith());
  const { page } = opened;
  await using _ = opened;
  await page.route("**/api/events*", (route) => route.abort());
  await page.locator("#search").fill("room");
  await page.getByText(/No answer from the agent/).waitFor({ timeout: 15_000 });
});

test("on a phone nothing overflows the width", async () => {
  await using opened = await openPage(
    () => statusWith({ sources: [sourceWith({ url: `opc.tcp://${"long-name".repeat(9)}:4840` })] }),
    { width: 360, height: 700 },
  );
  const width = await opened.page.evaluate("document.documentElement.scrollWidth");
  expect(width).toBeLessThanOrEqual(360);
});

test.each([1_280, 390])("every digit of a value is visible at a width of %i pixels", async (width) => {
  const values = [77_368_016.4, 21.700000762939453, -1.7976931348623157e308, 0.30000000000000004, 123_456_789];
  const tags = values.map((value, i) => tagWith({ input: `hall.meter${i}.energy`, value, unit: "kWh" }));
  await using opened = await openPage(() => statusWith({ tags }), { width, height: 900 });
  const { page } = opened;
  for (const [i, value] of values.entries()) {
    const cell = rowOf(page, `hall.meter${i}.energy`).locator(".value");
    const shown = (await cell.textContent()) ?? "";
    expect(Number(shown.replace(" kWh", "").replaceAll(",", ""))).toBe(value);
    const { height = 0, width: wide = 0 } = (await cell.boundingBox()) ?? {};
    const row = (await rowOf(page, `hall.meter${i}.energy`).boundingBox())?.height;
    expect({ shown, fits: height <= (row ?? 0) && wide > 0 }).toEqual({ shown, fits: true });
  }
  // No value is cut off at the right edge of its cell.
  const cut = "[...document.querySelectorAll('.tag .value')].filter((e) => e.scrollWidth > e.clientWidth + 1).length";
  expect(await page.evaluate(cut)).toBe(0);
  expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
});

test("with losses, refused points and addresses, and a backlog the headline says so", async () => {
  const base = statusWith();
  const remedy = "use {path} in `input`";
  const refused = { source: "hall", input: "hall.temp", address: "sensors/b/temp", reason: "", remedy, readings: 7 };
  const message = "hall.temp is fed by hall sensors/a/temp; refused: hall sensors/b/temp; 7 readings were not stored";
  await using opened = await openPage(() =>
    statusWith({
      gaps: { ...base.gaps, day: 1, dayLost: 1 },
      upload: { ...base.upload, refusedPoints: 40, backlog: { trend: "steady", text: "does not shrink" } },
      buffer: { ...base.buffer, unsettledPoints: 23_300, oldest: epochMicros(base.time - 420e6) },
      refusedInputs: [{ ...refused, fedBy: { source: "hall", address: "sensors/a/temp" } }],
      warnings: [{ level: "error", message, remedy }],
    }),
  );
  const { page } = opened;
  expect(await page.locator("#overall").textContent()).toBe(
    "Delivering. Hall.temp is fed by hall sensors/a/temp; refused: hall sensors/b/temp; 7 readings were not stored. Values lost in the last 24 h. 40 points refused. Backlog does not shrink.",
  );
  expect(await page.locator("#overall").getAttribute("class")).toContain("bad");
  await page.locator(".problem", { hasText: message }).waitFor();
  await page.getByText(remedy).waitFor();
});

test("two tags of one shared Input ID have a row each", async () => {
  const tags = [0, 1].map((tag) => tagWith({ tag, input: "hall.temp", address: `sensors/${tag}/temp`, value: tag }));
  await using opened = await openPage(() => statusWith({ tags }));
  await eventually(async () => (await opened.page.locator(".tag").count()) === 2);
  expect(await opened.page.locator(".tag .value").allTextContents()).toEqual(["0 °C", "1 °C"]);
});
