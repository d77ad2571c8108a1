// Twelve situations of an agent, each light, dark and on a phone: the headline is right and nothing overflows sideways.
// With TAGFERRY_SHOTS=FOLDER the screenshots are written there.
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { chromium } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Status } from "../../../src/agent/status/status.ts";
import { epochMicros } from "../../../src/core/point.ts";
import { sourceWith, statusWith, tagWith } from "../../support/status.ts";
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
const { upload, buffer, gaps } = base;
const now = epochMicros(Date.now() * 1_000);
const fresh = { ...buffer, oldest: epochMicros(now - 1e6) };
const waiting = { ...buffer, unsettledPoints: 81_200, oldest: epochMicros(now - 1_900e6) };
const away = { error: "connect ECONNREFUSED 10.0.0.1:443", remedy: "check address, port and firewall" };
const plant = [
  sourceWith({ url: "mqtts://broker.local:8883", tags: 12 }),
  sourceWith({ name: "bus1", type: "modbus", url: "tcp://10.0.0.5:502", readingsPerSecond: 40, tags: 40 }),
  sourceWith({ name: "line3", type: "opcua", url: "opc.tcp://10.0.3.5:4840", readingsPerSecond: 210, tags: 9 }),
];
const tags = Array.from({ length: 30 }, (_, i) =>
  tagWith({ input: `hall${i % 3}.machine${i}.temp`, value: 20 + i / 7, time: epochMicros(now - i * 1e6) }),
);
const bad = tags.map((tag, i) =>
  i % 4 === 1 ? { ...tag, quality: "bad" as const, reason: "no reply within 1 s from unit 3" } : tag,
);
const error = (title: string, message: string, remedy: string) => ({ level: "error" as const, title, message, remedy });

const situations: readonly [name: string, path: string, headline: string, changes: Partial<Status>][] = [
  ["well", "/", "Data arrives and is delivered.", {}],
  [
    "started",
    "/",
    "No data arrives yet. Delivering.",
    { sources: plant.map((source) => ({ ...source, state: "opening" })), tags: [] },
  ],
  [
    "source offline",
    "/",
    "Delivering. 1 source offline.",
    { sources: [...plant.slice(1), sourceWith({ state: "waiting", ...away })], gaps: { ...gaps, open: 1, day: 1 } },
  ],
  ["tags without a value", "/", "Delivering. Tags not recorded.", { tags: bad, gaps: { ...gaps, open: 8, day: 8 } }],
  [
    "service away",
    "/",
    "Service unreachable.",
    {
      buffer: waiting,
      upload: {
        ...upload,
        ...away,
        state: "retrying",
        backlog: { trend: "unknown", text: "waits", fullMs: 41 * 3.6e6 },
      },
    },
  ],
  [
    "credentials refused",
    "/",
    "Delivery held.",
    { buffer: waiting, upload: { ...upload, state: "held", error: "HTTP 401", remedy: "check service.auth" } },
  ],
  [
    "values lost and refused",
    "/",
    "Delivering. 6 values lost in the last 24 h. 2 points refused.",
    { gaps: { ...gaps, day: 2, dayLost: 1, dayPoints: 6 }, upload: { ...upload, refusedPoints: 2 } },
  ],
  [
    "disk full",
    "/",
    "Delivering. Points cannot be stored.",
    {
      buffer: { ...fresh, degraded: "ENOSPC" },
      warnings: [error("points cannot be stored", "points cannot be stored: ENOSPC", "free disk space")],
    },
  ],
  [
    "everything at once",
    "/",
    "No data arrives. The clock is not set. Values lost in the last 24 h. 40 points refused. Service unreachable. 1 more problem.",
    {
      sources: plant.map((source) => ({ ...source, state: "waiting", ...away })),
      tags: bad,
      buffer: waiting,
      gaps: { ...gaps, open: 3, day: 9, dayLost: 4 },
      upload: { ...upload, ...away, state: "retrying", refusedPoints: 40 },
      warnings: [
        error("the clock is not set", "the clock is not set: 1970", "start chrony"),
        { level: "warn", message: "service.auth.basic.password: a secret stands in the file itself" },
      ],
    },
  ],
  ["delivery well", "/delivery", "Delivering, lag 1 s.", {}],
  [
    "delivery of a backlog",
    "/delivery",
    "Delivering, lag 1 s, backlog caught up in about 62 min.",
    {
      buffer: waiting,
      upload: { ...upload, backlog: { trend: "shrinking", text: "caught up in about 62 min", drainMs: 3_720_000 } },
    },
  ],
  ["tag", "/tag?source=hall&tag=0&input=hall.room1.temp", "good", {}],
];

const detail = {
  status: tagWith(),
  stored: 80,
  filtered: 10,
  rules: ["times 0.1", "stored when it changes by more than 0.5"],
  latest: [0, 1, 2].map((i) => ({
    raw: String(210 + i),
    type: "number",
    value: 21 + i / 10,
    time: now - i * 1e6,
    clock: "device",
    quality: "good",
    stored: i === 2,
    why: "it differs from 20 by more than 0.5",
  })),
  source: { name: "hall", type: "mqtt", url: "mqtt://broker.local", state: "online" },
  place: { file: "/etc/tagferry/tagferry.yaml", line: 42, column: 9 },
  readText: async () => "- { input: hall.room1.temp, topic: sensors/room1/env, value: $.t }",
};

const screens = {
  light: { viewport: { width: 1_280, height: 900 } },
  dark: { viewport: { width: 1_280, height: 900 }, colorScheme: "dark" },
  phone: { viewport: { width: 390, height: 844 } },
} as const;

test.each(situations)("%s", async (name, path, headline, changes) => {
  const folder = process.env["TAGFERRY_SHOTS"];
  for (const [screen, context] of Object.entries(screens)) {
    const snapshot = () => statusWith({ time: now, buffer: fresh, sources: plant, tags, ...changes });
    await using opened = await openPage(
      browser,
      { snapshot, tag: () => detail, configFile: "/etc/tagferry/tagferry.yaml" },
      { path, ...context },
    );
    const { page, complaints } = opened;
    await page.locator("#overall", { hasText: headline }).waitFor();
    expect(await page.locator("#overall").textContent()).toBe(headline);
    const { width } = context.viewport;
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
    expect(complaints).toEqual([]);
    if (folder !== undefined)
      await page.screenshot({ path: join(folder, `${name.replaceAll(" ", "-")}-${screen}.png`) });
  }
});
