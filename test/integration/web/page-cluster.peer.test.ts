// The panel of the cluster on the status page.
import { type Browser, chromium } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Status } from "../../../src/agent/status/status.ts";
import { statusWith } from "../../support/status.ts";
import { openPage } from "./open-page.ts";

let browser: Browser;
beforeAll(async () => {
  const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
});
afterAll(() => browser.close());

const record = { version: "0.1.0", offers: [], prefers: [] };
const cluster: NonNullable<Status["cluster"]> = {
  connected: true,
  server: "n2",
  hasQuorum: true,
  delivers: "gw2",
  members: 2,
  sameName: false,
  forwardLagMs: 300,
  agents: [
    { ...record, node: "gw1", reads: ["hall", "press"], aliveMs: 60_000, forwardLagMs: 300, backlogPoints: 12 },
    { ...record, node: "gw2", reads: [], aliveMs: 90_000 },
    { ...record, node: "gw<3>", reads: ["line"], aliveMs: undefined },
  ],
  stream: { messages: 1_200, bytes: 2 ** 20, maxBytes: 2 ** 30, oldestMs: 90_000, replicas: 3, replicasInPlace: 2 },
};

test("the page shows who delivers, what each agent reads, and the state of the shared stream", async () => {
  let shown: Partial<Status> = {};
  await using opened = await openPage(browser, { snapshot: () => statusWith(shown) }, { path: "/delivery" });
  const panel = opened.page.locator("#cluster");
  await opened.page.locator("#name", { hasText: "north-gw1" }).waitFor();
  expect(await panel.isHidden()).toBe(true);

  shown = { cluster };
  await panel.locator("#cluster-state", { hasText: "replica missing" }).waitFor();
  const text = (await panel.innerText()).replaceAll(/\s+/g, " ");
  for (const part of ["connected to n2; gw2 delivers", "2 of 3", "1,200", "of 1.0 GiB"]) expect(text).toContain(part);
  const rows = await panel.locator("[role=listitem]").allInnerTexts();
  const words = rows.map((row) => row.replaceAll(/\s+/g, " "));
  expect(words).toEqual([
    expect.stringMatching(/^gw1 .*12 points not handed over standby reads hall, press$/),
    expect.stringMatching(/^gw2 .*delivers reads nothing$/),
    expect.stringMatching(/^gw<3> .*gone last read line$/),
  ]);

  shown = { cluster: { ...cluster, hasQuorum: false } };
  await panel.locator("#cluster-state", { hasText: "no quorum" }).waitFor();
  shown = { cluster: { ...cluster, connected: false, reason: "connection refused" } };
  await panel.locator("#cluster-note", { hasText: "not reachable: connection refused" }).waitFor();
});
