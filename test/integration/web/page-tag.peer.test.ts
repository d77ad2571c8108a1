// The page of a tag, and the button that resends refused points, in a real Chromium.
import type { Browser } from "playwright-core";
import { chromium } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Gap } from "../../../src/agent/gaps/gap.ts";
import { epochMicros } from "../../../src/core/point.ts";
import { Secret } from "../../../src/core/secret.ts";
import { eventually } from "../../support/eventually.ts";
import { statusWith, tagWith } from "../../support/status.ts";
import { openPage } from "./open-page.ts";

let browser: Browser;

beforeAll(async () => {
  browser = await chromium.launch({
    executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"],
  });
});
afterAll(() => browser.close());

const base = statusWith();
const path = "/tag?source=hall&tag=0&input=hall.room1.temp";
const reading = { raw: "215", type: "number", value: 21.5, time: base.time, clock: "device", quality: "good" };
const text = "- input: hall.room1.temp\n  topic: sensors/room1/env";
const detail = {
  status: tagWith(),
  stored: 80,
  filtered: 10,
  rules: ["times 0.1", "stored when it changes by more than 0.5"],
  latest: [
    { ...reading, address: "sensors/room1/env", stored: false, why: "it differs from 21.4 by no more than 0.5" },
    { ...reading, address: "sensors/room1/env", stored: true, why: "it differs from 20 by more than 0.5" },
  ],
  source: { name: "hall", type: "mqtt", url: "mqtt://broker", state: "online" },
  place: { file: "/etc/tagferry.yaml", line: 42, column: 9 },
  readText: async () => text,
};

test("a tag has its value, raw values, clock, rules, what became of each reading, and its configuration", async () => {
  const asked: unknown[] = [];
  const tag = (...given: unknown[]) => {
    asked.push(given);
    return detail;
  };
  await using opened = await openPage(browser, { snapshot: () => statusWith(), tag }, { path });
  const { page, complaints } = opened;
  await page.locator("#tag-value", { hasText: "21.5 °C" }).waitFor();
  expect(asked[0]).toEqual(["hall", 0, "hall.room1.temp"]);
  const rows = page.locator("#readings tr");
  expect(await rows.nth(0).innerText()).toMatch(/device\s+215\s+21\.5 °C\s+good\s+not stored: it differs from 21\.4/);
  expect(await rows.nth(1).innerText()).toMatch(/stored: it differs from 20 by more than 0\.5/);
  expect(await page.locator("#tag-facts").innerText()).toMatch(
    /raw value\s+215\s+rules\s+times 0\.1, stored when[^]*80, 10 readings held back/,
  );
  expect(await page.locator("#text").textContent()).toBe(text);
  expect(await page.locator("#text-place").textContent()).toBe("/etc/tagferry.yaml:42");
  // The line that a wrong value comes from is on the first screen.
  expect(await page.locator("#text").boundingBox()).toMatchObject({ y: expect.toSatisfy((y: number) => y < 600) });
  await page.locator("#plot .u-axis").first().waitFor();
  expect(complaints).toEqual([]);
});

test("a value in a wrong byte order is drawn, and what other orders give is next to it", async () => {
  const wrong = tagWith({ value: 5.755442e22, unit: "W" });
  const otherFormats = [
    { format: "hr:1 f32 abcd", value: 229.5 },
    { format: "hr:1 u32 abcd", value: 1_130_725_376 },
  ];
  const tag = () => ({ ...detail, status: wrong, otherFormats });
  await using opened = await openPage(browser, { snapshot: () => statusWith({ tags: [wrong] }), tag }, { path });
  const { page, complaints } = opened;
  await page.getByText("229.5 as hr:1 f32 abcd; 1,130,725,376 as hr:1 u32 abcd").waitFor();
  await page.locator("#plot .u-axis").first().waitFor();
  await page.locator("#plot .u-over").waitFor();
  expect(complaints).toEqual([]);
});

test("on a phone the columns of the readings have their headings above them", async () => {
  const phone = { path, viewport: { width: 390, height: 844 } };
  await using opened = await openPage(browser, { snapshot: () => statusWith(), tag: () => detail }, phone);
  const { page } = opened;
  await page.locator("#readings tr").first().waitFor();
  for (const [column, name] of ["Time", "Clock", "Raw value", "Value", "Quality", "What became of it"].entries()) {
    const heading = await page.getByRole("columnheader", { name, exact: true }).boundingBox();
    const cell = await page.locator("#readings td").nth(column).boundingBox();
    expect(cell).toMatchObject({ x: heading?.x, width: heading?.width });
  }
});

test("a longer time comes from the service, with the range of each bucket, and a failure says what to do", async () => {
  const asked: string[] = [];
  const series = async (input: string, spanMs: number) => {
    asked.push(`${input} ${spanMs}`);
    if (spanMs > 86_400_000) throw new Error("the integration may not read");
    const times = [0, 1, 2].map((i) => base.time / 1_000 + i * 120_000);
    return { times, values: [1, 2, 3], min: [0, 1, 2], max: [2, 3, 4], bucketMs: 120_000 };
  };
  await using opened = await openPage(browser, { snapshot: () => statusWith(), tag: () => detail, series }, { path });
  const { page } = opened;
  await page.getByRole("button", { name: "24 h" }).click();
  await page.getByText("from the service, mean, least and greatest of 2 min").waitFor();
  await page.locator("#plot .u-series", { hasText: "greatest" }).waitFor();
  expect(await page.getByRole("button", { name: "24 h" }).getAttribute("aria-pressed")).toBe("true");
  await page.getByRole("button", { name: "30 d" }).click();
  await page.getByText("the integration may not read").waitFor();
  expect(asked).toEqual(["hall.room1.temp 86400000", "hall.room1.temp 2592000000"]);
});

/** Whether the line of the plot is drawn at this share of its width, 0 to 1. */
const isDrawnAt = (share: number) => `(() => {
  const canvas = document.querySelector("#plot canvas");
  const [inner, outer] = [document.querySelector("#plot .u-over"), canvas].map((node) => node.getBoundingClientRect());
  const scale = canvas.width / outer.width;
  const x = Math.round((inner.left - outer.left + inner.width * ${share}) * scale);
  const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  probe.fillStyle = getComputedStyle(document.body).getPropertyValue("--accent").trim();
  probe.fillRect(0, 0, 1, 1);
  const accent = probe.getImageData(0, 0, 1, 1).data;
  const { data } = canvas.getContext("2d").getImageData(x, 0, 1, canvas.height);
  const isAccent = (at) => [0, 1, 2].every((i) => Math.abs(data[at + i] - accent[i]) < 40) && data[at + 3] > 100;
  return Array.from({ length: canvas.height }, (_, y) => y * 4).some(isAccent);
})()`;

test("the plot ends where nothing was recorded, and goes on after it", async () => {
  const now = base.time / 1_000;
  const minutes = (count: number) => now + count * 60_000;
  // A value every minute, none from 20 to 40.
  const times = Array.from({ length: 61 }, (_, i) => minutes(i)).filter((_, i) => i <= 20 || i >= 40);
  const values = times.map((_, i) => 20 + (i % 5));
  const row: Gap = {
    id: 1,
    source: "hall",
    cause: "disconnected",
    reason: "connection refused",
    state: "lost",
    from: epochMicros(minutes(20) * 1_000),
    to: epochMicros(minutes(40) * 1_000),
    tags: 1,
    inputs: ["hall.room1.temp"],
    times: 1,
  };
  const cases: readonly (readonly [name: string, gaps: Gap[], gapMs?: number])[] = [
    ["record", [row]],
    ["detection", [], 120_000],
    ["none", []],
  ];
  for (const [name, gaps, gapMs] of cases) {
    await using opened = await openPage(
      browser,
      {
        snapshot: () => statusWith(),
        tag: () => detail,
        series: async () => ({ times, values, holds: false, ...(gapMs !== undefined && { gapMs }) }),
        gaps: () => ({ time: base.time, gaps, more: 0 }),
      },
      { path },
    );
    const { page } = opened;
    await page.locator("#gaps-count", { hasText: gaps.length > 0 ? "1 in" : "none" }).waitFor();
    await page.getByRole("button", { name: "1 h", exact: true }).click();
    await page.getByText("from the service, every value").waitFor();
    // The gaps of the record may come later than the values.
    await eventually(async () => {
      const drawn: unknown[] = [];
      for (const share of [0.2, 0.5, 0.8]) drawn.push(await page.evaluate(isDrawnAt(share)));
      return JSON.stringify(drawn) === JSON.stringify([true, name === "none", true]);
    });
    const shots = process.env["TAGFERRY_SHOTS"];
    if (shots !== undefined) await page.screenshot({ path: `${shots}/tag-gap-${name}.png`, fullPage: true });
  }
});

test("a tag that the agent does not have says so", async () => {
  await using opened = await openPage(browser, { snapshot: () => statusWith(), tag: () => undefined }, { path });
  await opened.page.getByText("this agent has no such tag").waitFor();
});

test("refused points are sent again by a button that asks for the token once", async () => {
  let retry: object | undefined;
  const reason = { code: 422, reason: "out of range", points: 2, earliest: undefined, latest: undefined };
  const control = {
    tokens: [new Secret("token-of-the-page")],
    tokenFile: "/data/control.token",
    reload: async () => ({ ok: true }),
    retryRejects: async () => {
      retry = { running: false, points: 2, accepted: 1, refused: 1, unsendable: 0, held: 0 };
      return { ok: true, ...retry };
    },
    log: () => [],
    security: () => ({}),
  };
  await using opened = await openPage(
    browser,
    {
      snapshot: () => statusWith({ upload: { ...base.upload, refusedPoints: 2 } }),
      rejects: async () => ({ points: 2, unreadable: 0, reasons: [{ ...reason, inputs: new Map([["a", 2]]) }] }),
      retry: () => retry,
      control,
      configFile: "/etc/tagferry.yaml",
    },
    { path: "/delivery" },
  );
  const { page } = opened;
  await page.getByRole("button", { name: "Send again" }).click();
  const dialog = page.getByRole("dialog", { name: "A change needs a token" });
  await dialog.getByText("/data/control.token").waitFor();
  await page.keyboard.type("wrong");
  await page.keyboard.press("Enter");
  await dialog.getByText("invalid token").waitFor();
  await page.keyboard.type("token-of-the-page");
  await page.keyboard.press("Enter");
  await page.getByText("1 delivered, 1 refused again").waitFor();
  await page.getByRole("button", { name: "Send again" }).click();
  await eventually(async () => (await page.getByRole("dialog").count()) === 0);
});
