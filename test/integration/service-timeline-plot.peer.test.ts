// What the timeline page draws in a real Chromium: lines, gaps, steps and states. Includes what the page exports.
import { readFile } from "node:fs/promises";
import type { Browser, Page } from "playwright-core";
import { chromium } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import type { TestService } from "../support/service.ts";
import { integration, password, testService } from "../support/service.ts";
import { storeItems } from "../support/service-items.ts";

let browser: Browser;
let service: TestService;
let item: (name: string) => string;
beforeAll(async () => {
  browser = await chromium.launch({
    executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"],
  });
  service = await testService({ throttle: "queue" });
  const sampled = { sampleInterval: "PT10M", gapDetection: "PT30M" };
  item = await storeItems(
    service,
    {
      // One value every ten minutes, with a gap from 04:00 to 12:20.
      temperature: minutes(0, 240).concat(minutes(740, 1_440)),
      pressure: minutes(0, 1_440).map(([time, value]) => [time, -value]),
      setpoint: [
        [at(-600), 40],
        [at(1_200), 60],
      ],
      mode: [
        [at(-60), 1],
        [at(600), 0],
        [at(900), 2],
      ],
      valve: [
        [at(-30), 1],
        [at(700), 0],
      ],
      flow: [[at(10), 3]],
      formula: [[at(10), 1]],
      leak: [[at(10), 4.25e-8]],
      meter: [[at(10), 123_456_789]],
      rightToLeft: [[at(10), 12.5]],
      ...Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`many.${i}`, minutes(0, 1_440)])),
      "gw/tagferry/delivery/lag": [[at(10), 1]],
    },
    {
      temperature: { ...sampled, engUnit: "°C" },
      pressure: { ...sampled, engUnit: "bar" },
      formula: { name: "=cmd|'/c calc'!A1" },
      rightToLeft: { name: "\u202Eforced" },
      ...Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`many.${i}`, { ...sampled, engUnit: "°C" }])),
      setpoint: { engUnit: "°C" },
      valve: { valueType: "enum", enumValues: { 0: "closed", 1: "open" } },
      flow: { engUnit: "m³/h" },
      mode: { valueType: "enum", enumValues: { 0: "off", 1: "on", 2: "fault" } },
    },
  );
});
afterAll(async () => {
  await browser.close();
  await service[Symbol.asyncDispose]();
});

const at = (minute: number) => new Date(Date.UTC(2026, 2, 1) + minute * 60_000).toISOString();
function minutes(from: number, to: number): (readonly [string, number])[] {
  return Array.from({ length: (to - from) / 10 }, (_, i) => [at(from + i * 10), (from + i * 10) / 100] as const);
}
const day = `from=${at(0)}&to=${at(1_440)}`;

async function open(names: readonly string[], window: string, viewport = { width: 1_200, height: 900 }) {
  const context = await browser.newContext({ viewport, timezoneId: "UTC", locale: "en-GB", hasTouch: true });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => {
    // Such messages concern the pixels that this test reads.
    if (!message.text().startsWith("Canvas2D")) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.addInitScript(
    ([credentials]) => sessionStorage.setItem("credentials", credentials ?? ""),
    [JSON.stringify([integration, password])],
  );
  await page.goto(`${service.pageUrl}#items=${names.map((name) => item(name)).join(",")}&${window}`);
  await page.waitForSelector(`#plot[data-shown="${names.length}"]`);
  return { page, complaints, [Symbol.asyncDispose]: () => context.close() };
}

/** Whether the plot contains the first series' colour at this share of its width, below the lanes of states. */
function drawnAt(page: Page, share: number): Promise<boolean> {
  // As text, because the browser's types are not available to this program.
  return page.evaluate(`(() => {
    const canvas = document.querySelector("#plot canvas");
    const over = document.querySelector("#plot .u-over").getBoundingClientRect();
    const box = canvas.getBoundingClientRect();
    const ratio = canvas.width / box.width;
    const x = Math.round((over.left - box.left + over.width * ${share}) * ratio);
    const top = Math.round((over.top - box.top) * ratio);
    const pixels = canvas.getContext("2d").getImageData(x, top, 3, Math.round(over.height * ratio)).data;
    for (let i = 0; i < pixels.length; i += 4)
      if (Math.abs(pixels[i] - 0x1f) + Math.abs(pixels[i + 1] - 0x77) + Math.abs(pixels[i + 2] - 0xb4) < 60) return true;
    return false;
  })()`);
}

async function tipAt(page: Page, share: number): Promise<string> {
  const over = await page.locator("#plot .u-over").boundingBox();
  await page.mouse.move((over?.x ?? 0) + (over?.width ?? 0) * share, (over?.y ?? 0) + (over?.height ?? 0) / 2);
  await page.locator("#tip").waitFor();
  return (await page.locator("#tip").textContent()) ?? "";
}

test("a gap longer than gapDetection has neither a line, nor a value, nor a band", async () => {
  // The second input has points within the gap of the first.
  await using opened = await open(["temperature", "pressure"], day);
  expect(await drawnAt(opened.page, 0.1)).toBe(true);
  expect(await drawnAt(opened.page, 0.33)).toBe(false);
  expect(await drawnAt(opened.page, 0.8)).toBe(true);
  expect(await tipAt(opened.page, 0.33)).toContain("no data");
  expect(opened.complaints).toEqual([]);
});

test("a setpoint is drawn in steps from before the window, and weighted by its duration", async () => {
  await using opened = await open(["setpoint", "mode"], day);
  const { page } = opened;
  for (const share of [0.02, 0.4, 0.95]) expect(await drawnAt(page, share)).toBe(true);
  const early = await tipAt(page, 0.1);
  expect(early).toMatch(/setpoint 40 °C.*mode on/);
  expect(await tipAt(page, 0.5)).toMatch(/setpoint 40 °C.*mode off/);
  expect(await tipAt(page, 0.9)).toMatch(/setpoint 60 °C.*mode fault/);
  const cells = await page.locator("#legend tr").first().locator("td").allTextContents();
  // The value is 40 for twenty hours and 60 for four.
  expect(cells.map((text) => /[\d.]+/.exec(text)?.[0])).toEqual(["60", "40", "60", "43.33333"]);
  expect(opened.complaints).toEqual([]);
});

test("very small, long and right-to-left texts are readable where values are shown", async () => {
  await using opened = await open(["leak", "meter", "rightToLeft"], `from=${at(0)}&to=${at(20)}`);
  const { page } = opened;
  expect(await tipAt(page, 0.9)).toMatch(/leak 4.25e-8 .*meter 123,456,789 .*forced 12.5 00:10:00$/);
  expect(await page.locator('#legend td[data-label="max"]').allTextContents()).toEqual([
    "4.25e-8",
    "123,456,789",
    "12.5",
  ]);
  // The value stands behind the name.
  const [name, value] = await Promise.all(
    ["bdi", "b"].map((element) => page.locator(`#tip > div:last-child ${element}`).boundingBox()),
  );
  expect(value!.x).toBeGreaterThanOrEqual(name!.x + name!.width);
});

test("the values of thirty series under the pointer fit into the window", async () => {
  const names = Array.from({ length: 30 }, (_, i) => `many.${i}`);
  await using opened = await open(names, day);
  expect(await tipAt(opened.page, 0.5)).toMatch(/many.0 .*many.29 /);
  const tip = (await opened.page.locator("#tip").boundingBox())!;
  expect([tip.x >= 0, tip.x + tip.width <= 1_200, tip.y >= 0, tip.y + tip.height <= 900]).toEqual(Array(4).fill(true));
});

test("more than fifty signals are refused in words, and a window without data says so", async () => {
  const names = Array.from({ length: 50 }, (_, i) => `many.${i}`);
  await using opened = await open(names, `from=${at(-1_440)}&to=${at(-720)}`);
  const { page } = opened;
  expect(await page.locator("#empty").textContent()).toBe("No data in this window.");
  await page.getByLabel("Search signals").fill("many.50");
  const box = page.getByRole("checkbox", { name: "many.50" });
  await box.click();
  await page.locator("#problem", { hasText: "At most 50 signals" }).waitFor();
  expect(await box.isChecked()).toBe(false);
  await page.getByRole("button", { name: "Remove many.0", exact: true }).click();
  await page.locator("#problem").waitFor({ state: "hidden" });
  await box.click();
  await page.locator("#legend th", { hasText: "many.50" }).waitFor();
});

test("on a phone the values under the finger do not cover the plot", async () => {
  const phone = { width: 390, height: 844 };
  await using opened = await open(["temperature", "pressure", "setpoint", "mode", "valve"], day, phone);
  expect(await tipAt(opened.page, 0.5)).toContain("valve closed");
  const [plot, tip] = [
    await opened.page.locator("#plot .u-over").boundingBox(),
    await opened.page.locator("#tip").boundingBox(),
  ];
  expect(tip?.y).toBeGreaterThan((plot?.y ?? Number.NaN) + (plot?.height ?? Number.NaN));
});

test("each of several states is carried in from before the window", async () => {
  await using opened = await open(["mode", "valve"], day);
  expect(await tipAt(opened.page, 0.1)).toMatch(/mode on.*valve open/);
  expect(await tipAt(opened.page, 0.6)).toMatch(/mode off.*valve closed/);
});

test("the last value is shown however long before the end of the window it came", async () => {
  await using opened = await open(["temperature", "mode"], `from=${at(0)}&to=${at(100 * 1_440)}`);
  expect(await opened.page.locator('#legend td[data-label="last"]').allTextContents()).toEqual([
    expect.stringMatching(/^14.3 °C/),
    expect.stringMatching(/^fault/),
  ]);
});

test("a link opened in the same tab shows its signals and window", async () => {
  await using opened = await open(["temperature"], day);
  const hash = `items=${item("setpoint")},${item("mode")}&from=${at(60)}&to=${at(120)}`;
  await opened.page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
  await opened.page.waitForSelector('#plot[data-shown="2"]');
  expect(await opened.page.locator("#range").textContent()).toMatch(/01:00:00.* 1 hour$/);
  expect(new URL(opened.page.url()).hash).toContain(item("mode"));
});

test("on a phone only as many axes are drawn as leave room for the plot", async () => {
  await using opened = await open(["temperature", "pressure", "flow"], day, { width: 390, height: 844 });
  expect(await opened.page.locator("#plot .u-axis").count()).toBe(3);
  expect((await opened.page.locator("#plot .u-over").boundingBox())!.width).toBeGreaterThan(200);
});

test("each unit has an axis, and the range is shown in words", async () => {
  await using opened = await open(["temperature", "pressure", "setpoint"], day);
  expect(await opened.page.locator("#plot .u-axis").count()).toBe(3);
  expect(await opened.page.locator("#range").textContent()).toMatch(/1 Mar.* 00:00:00 – .*2 Mar.* 00:00:00, 1 day$/);
});

test("the shown data is downloaded as CSV, in which no name is a formula", async () => {
  await using opened = await open(["setpoint", "mode", "formula"], `from=${at(0)}&to=${at(20)}`);
  const [download] = await Promise.all([
    opened.page.waitForEvent("download"),
    opened.page.getByRole("button", { name: "Download CSV" }).click(),
  ]);
  const lines = (await readFile(await download.path(), "utf8")).split("\r\n");
  expect(lines[0]).toMatch(/^time,setpoint \[°C\] avg,setpoint \[°C\] min,setpoint \[°C\] max,mode,'=cmd/);
  expect(lines[1]).toMatch(/^2026-03-01T00:10:00.000Z,,,,,1,1,1$/);
});

test("dragging, the wheel and two fingers change the window, and the address shows the same to others", async () => {
  await using opened = await open(["temperature"], day);
  const { page } = opened;
  const spanOf = () => {
    const given = new URLSearchParams(new URL(page.url()).hash.slice(1));
    return [Date.parse(given.get("from") ?? ""), Date.parse(given.get("to") ?? "")] as const;
  };
  const over = (await page.locator("#plot .u-over").boundingBox())!;
  const middle = over.y + over.height / 2;
  await page.mouse.move(over.x + over.width * 0.75, middle);
  await page.mouse.down();
  await page.mouse.move(over.x + over.width * 0.25, middle, { steps: 5 });
  await page.mouse.up();
  // The window has moved by half its width.
  await eventually(() => Math.abs(spanOf()[0] - Date.parse(at(720))) < 600_000);
  const client = await page.context().newCDPSession(page);
  const touch = (type: "touchStart" | "touchMove" | "touchEnd", shares: readonly number[]) =>
    client.send("Input.dispatchTouchEvent", {
      type,
      touchPoints: shares.map((share, id) => ({ x: over.x + over.width * share, y: middle, id })),
    });
  await touch("touchStart", [0.4, 0.6]);
  for (const by of [0.05, 0.1, 0.15, 0.2]) await touch("touchMove", [0.4 - by, 0.6 + by]);
  await touch("touchEnd", []);
  // The fingers end three times as far apart, so the span becomes a third.
  await eventually(() => Math.abs(spanOf()[1] - spanOf()[0] - 480 * 60_000) < 30 * 60_000);
  const address = page.url();
  const before = await page.locator("#range").textContent();
  await using second = await open([], day);
  await second.page.goto("about:blank");
  await second.page.goto(address);
  await second.page.waitForSelector('#plot[data-shown="1"]');
  expect(await second.page.locator("#range").textContent()).toBe(before);
});

test("signals of the process come before the agent's own, and on a phone the plot comes before the list", async () => {
  await using opened = await open(["temperature"], day, { width: 390, height: 844 });
  const { page } = opened;
  const inputs = await page
    .locator("#signals li")
    .evaluateAll((rows) => rows.map((row) => row.getAttribute("data-input")));
  expect(inputs.at(-1)).toBe("gw/tagferry/delivery/lag");
  expect(await page.locator('[data-kind="own"] li').count()).toBe(1);
  const [plot, list] = await Promise.all([page.locator("#plot").boundingBox(), page.locator("#signals").boundingBox()]);
  expect(plot!.y + plot!.height).toBeLessThan(844);
  expect(list!.y).toBeGreaterThan(plot!.y + plot!.height);
  expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(390);
});
