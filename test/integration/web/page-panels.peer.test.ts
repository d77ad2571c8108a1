// The panels of the status page that show faults, unrecorded times and the operator's tasks.
import type { Browser } from "playwright-core";
import { chromium } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import type { Gap, GapList } from "../../../src/agent/gaps/gap.ts";
import type { Status } from "../../../src/agent/status/status.ts";
import type { KnownCertificate } from "../../../src/core/commissioning.ts";
import { epochMicros } from "../../../src/core/point.ts";
import type { WebOptions } from "../../../src/web/server.ts";
import { eventually } from "../../support/eventually.ts";
import { sourceWith, statusWith } from "../../support/status.ts";
import { openPage } from "./open-page.ts";

const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const script = '<img src=x onerror="alert(1)">';
let browser: Browser;

beforeAll(async () => {
  browser = await chromium.launch({
    executablePath,
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"],
  });
});
afterAll(() => browser.close());

const base = statusWith();
const at = (seconds: number) => epochMicros(base.time + seconds * 1e6);

function gapWith(id: number, changes: Partial<Gap> = {}): Gap {
  const gap = { id, source: "press", cause: "disconnected", reason: "connection refused", from: at(-600) } as const;
  return { ...gap, state: "open", tags: 0, inputs: [], times: 1, ...changes };
}

const gapList = (gaps: readonly Gap[]): GapList => ({ time: base.time, gaps: [...gaps], more: 0 });

const certificate: KnownCertificate = {
  thumbprint: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
  sha256: "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
  subject: "CN=press, O=Works",
  applicationUri: "urn:press:server",
  validFrom: "Mar  1 08:00:00 2024 GMT",
  validTo: "Mar  1 08:00:00 2034 GMT",
  state: "rejected",
  path: "/data/pki/rejected/press.der",
};

const open = (web: Partial<WebOptions>, status: Partial<Status> = {}, width = 1_200, path = "/") =>
  openPage(browser, { snapshot: () => statusWith(status), ...web }, { viewport: { width, height: 900 }, path });
const openDelivery = (web: Partial<WebOptions>, status: Partial<Status> = {}) => open(web, status, 1_200, "/delivery");

test("the page of a tag claims no more about its gaps than the record that it has read", async () => {
  const path = "/tag?source=press&tag=0&input=press.speed";
  const other = gapWith(1, { source: "hall" });
  const said = async (list: GapList) => {
    await using opened = await open({ gaps: () => list }, {}, 1_200, path);
    await opened.page.locator("#gaps-count", { hasText: /./ }).waitFor();
    return [await opened.page.locator("#gaps-count").innerText(), await opened.page.locator(".gap").count()];
  };
  expect(await said(gapList([other]))).toEqual(["none in the last 7 days", 0]);
  expect(await said({ ...gapList([other]), more: 5 })).toEqual(["none among the latest 1 of 6 gaps", 0]);
  const many = gapWith(2, { tags: 2_000, inputs: ["press.force"] });
  const { source: _, ...ofBuffer } = gapWith(3, { cause: "buffer" });
  expect(await said(gapList([many, gapWith(4, { tags: 1, inputs: ["press.force"] }), ofBuffer]))).toEqual([
    "2 in the last 7 days",
    2,
  ]);
});

test("gaps are shown with their outcome, open ones first, and updated when they change", async () => {
  let revision = 1;
  const lastLost = {
    source: "press",
    to: at(-300),
    from: at(-420),
    cause: "agentDown",
    reason: "it was stopped",
  } as const;
  const over = { ...lastLost, state: "lost" } as const;
  await using opened = await open({
    snapshot: () => statusWith({ gaps: { open: 2 - revision, day: 1, dayLost: 1, revision, lastLost } }),
    gaps: () =>
      gapList([
        gapWith(2, over),
        gapWith(1, revision === 1 ? {} : { to: at(-60), state: "filled", outcome: "its server had kept them" }),
      ]),
  });
  const rows = opened.page.locator(".gap");
  await rows.nth(1).waitFor();
  expect(await rows.nth(0).innerText()).toMatch(
    /open\s+press\s+all its tags\s+10 min\s+since .*\s+not connected: connection refused\s+see the error of the source/,
  );
  expect(await rows.nth(1).innerText()).toMatch(/lost[^]*2 min[^]*agent down[^]*tagferry install-service/);
  // The first screen says where, when and why, and leads to the list.
  const [problem, when] = [opened.page.locator(".problem"), await rows.nth(1).locator(".quiet").nth(1).textContent()];
  expect(await problem.first().innerText()).toContain(`press: ${when}, agent down: it was stopped`);
  expect(await problem.getByRole("link", { name: when ?? "" }).getAttribute("href")).toBe("#gaps-title");
  expect(await opened.page.locator("#gaps-count").textContent()).toBe("1 now, 1 in the last 24 h, 1 with values lost");
  revision = 2;
  await opened.page.getByText("its server had kept them").waitFor();
  expect(await opened.page.locator(".gap", { hasText: "open" }).count()).toBe(0);
  expect(opened.complaints).toEqual([]);
});

test("long lists are shortened and a button shows the rest", async () => {
  const gaps = Array.from({ length: 20 }, (_, i) => gapWith(i));
  await using opened = await open({ gaps: () => gapList(gaps) });
  const { page } = opened;
  await page.getByRole("button", { name: "Show all 20" }).click();
  expect(await page.locator(".gap").count()).toBe(20);
  await page.getByRole("button", { name: "Show fewer" }).click();
  expect(await page.locator(".gap").count()).toBe(6);
});

test("a pending certificate is shown with its thumbprint and command, and removed once it is trusted", async () => {
  let trusted = false;
  let seconds = 0;
  const source = sourceWith({ type: "opcua", name: "press" });
  await using opened = await open({
    // The page's time runs twenty times as fast, so that it refreshes soon.
    snapshot: () => {
      seconds += 20;
      return statusWith({ time: at(seconds), sources: [source], buffer: { ...base.buffer, unsettledPoints: 0 } });
    },
    certificates: async () => [{ ...certificate, state: trusted ? "trusted" : "rejected" }],
    configFile: "/etc/tagferry/press line.yaml",
  });
  const { page } = opened;
  const panel = page.locator("#trust");
  await panel.getByText("CN=press, O=Works").waitFor();
  expect(await panel.locator(".command").textContent()).toBe(
    "tagferry trust accept 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b -c '/etc/tagferry/press line.yaml'",
  );
  for (const text of [certificate.sha256, "urn:press:server", "1 Mar 2024 to 1 Mar 2034"])
    expect(await panel.getByText(text, { exact: true }).count()).toBe(1);
  await page.locator("#overall", { hasText: "1 certificate to trust." }).waitFor();
  trusted = true;
  await panel.waitFor({ state: "hidden" });
  await page.locator("#overall", { hasText: "Data arrives and is delivered." }).waitFor();
  expect(opened.complaints).toEqual([]);
});

test("without an OPC UA source no certificates are requested", async () => {
  let asked = 0;
  await using opened = await open({ certificates: async () => [certificate].slice(asked++) });
  await opened.page.locator(".source").first().waitFor();
  expect(await opened.page.locator("#trust").isVisible()).toBe(false);
  expect(asked).toBe(0);
});

test("refused points are shown by reason, with the command that sends them again", async () => {
  const reason = { code: 422, reason: "out of range", points: 40, earliest: undefined, latest: undefined };
  await using opened = await openDelivery(
    {
      rejects: async () => ({ points: 40, unreadable: 0, reasons: [{ ...reason, inputs: new Map([["hall.t", 40]]) }] }),
      configFile: "/etc/tagferry.yaml",
    },
    { buffer: { ...base.buffer, refusedPoints: 40 } },
  );
  const row = opened.page.locator(".reason");
  await row.waitFor();
  expect(await row.innerText()).toMatch(/40\s+out of range\s+hall\.t \(40\)/);
  expect(await opened.page.locator("#refused .command, #refused-run .command").textContent()).toBe(
    "tagferry rejects retry -c /etc/tagferry.yaml",
  );
});

test("messages without a tag are listed with a sample, most frequent first", async () => {
  const unknown = [
    { address: "plant/rare", count: 2, sample: "1" },
    { address: "plant/often", count: 900, sample: '{"temp":21.5}' },
  ];
  await using opened = await open({}, { sources: [sourceWith({ unknown })] });
  const rows = opened.page.locator(".unmapped");
  expect(await rows.nth(0).innerText()).toMatch(/plant\/often\s+hall\s+900 ×\s+\{"temp":21\.5\}/);
  expect(await rows.count()).toBe(2);
});

test("a service that is away: the error, its remedy, a backlog that waits, and when the buffer is full", async () => {
  const error = "connect ECONNREFUSED 10.0.0.1:443";
  const upload = {
    ...base.upload,
    state: "retrying",
    error,
    remedy: "check the network",
    backlogPoints: 9,
    backlog: { trend: "unknown", text: "waits; buffer full in about 41 h", fullMs: 41 * 3_600_000 },
  } as const;
  await using overview = await open({}, { upload });
  await overview.page.locator(".problem", { hasText: "Service unreachable" }).getByText("check the network").waitFor();
  expect(await overview.page.locator("#overall").textContent()).toBe("Service unreachable.");
  expect(await overview.page.locator("#delivering").innerText()).toMatch(/200 points wait, buffer full in about 41 h/);

  await using delivery = await openDelivery({}, { upload });
  const { page } = delivery;
  await page.getByText(`${error}: check the network`).waitFor();
  expect(await page.locator("#upload-state").textContent()).toBe("service unreachable");
  expect(await page.locator("#buffer-figures > div", { hasText: /backlog$/ }).innerText()).toMatch(/^waits\s+backlog$/);
  expect(await page.locator("#buffer-where").textContent()).toMatch(
    /; the buffer is full in 1 d 17 h, at .*\d\d:\d\d\.$/,
  );
});

test("a backlog that drains says when it is caught up, with plots that have axes", async () => {
  const backlog = { trend: "shrinking", text: "caught up in about 62 min", drainMs: 3_720_000 } as const;
  const upload = { ...base.upload, backlog };
  const buffer = { ...base.buffer, oldest: at(-4_000) };
  await using opened = await openDelivery({}, { upload, buffer });
  const { page } = opened;
  expect(await page.locator("#buffer-where").textContent()).toMatch(/; caught up at [^]*\d\d:\d\d\.$/);
  const figure = page.locator("#buffer-figures > div", { hasText: /backlog$/ });
  expect(await figure.innerText()).toMatch(/^caught up in about 62 min/);
  for (const name of [
    "Lag",
    "Points waiting",
    "Points delivered a second",
    "Buffer on disk",
    "Permitted requests used",
  ]) {
    const chart = page.locator(".chart", { hasText: name });
    await chart.locator("canvas").waitFor();
    expect(await chart.locator(".u-axis").count()).toBe(2);
    expect(await chart.getByRole("img").getAttribute("aria-label")).toMatch(new RegExp(`^${name}: `));
  }
  expect(opened.complaints).toEqual([]);
});

test("labels of an axis are as far apart as their lines, also where all values are 0", async () => {
  const record = `const { fillText, clearRect } = CanvasRenderingContext2D.prototype;
    Object.assign(CanvasRenderingContext2D.prototype, {
      clearRect(...area) { this.canvas.labels = []; clearRect.apply(this, area); },
      fillText(text, ...at) { this.canvas.labels.push(text); fillText.call(this, text, ...at); },
    });`;
  await using opened = await openDelivery({});
  const { page } = opened;
  await page.addInitScript(record);
  const zeros = [0, 0, 0];
  const figures = { lagMs: zeros, backlogPoints: zeros, sentPoints: zeros, bufferBytes: zeros, budgetShare: zeros };
  const times = [0, 5_000, 10_000].map((ms) => base.time / 1_000 + ms);
  await page.route("**/api/history", (route) => route.fulfill({ json: { times, figures } }));
  await page.reload();
  const drawn = "[...document.querySelectorAll('.chart canvas')].map(({ labels = [] }) => labels)";
  const all = await eventually(async () => {
    const charts = z.array(z.array(z.string())).parse(await page.evaluate(drawn));
    return charts.length === 5 && charts.every((labels) => labels.length > 0) ? charts : undefined;
  });
  for (const labels of all) {
    const numbers = labels.filter((text) => !text.includes(":")).map((text) => Number.parseFloat(text));
    const steps = numbers.slice(1).map((number, i) => number - (numbers[i] ?? 0));
    expect([labels, new Set(steps).size]).toEqual([labels, 1]);
    expect(steps[0]).toBeGreaterThan(0);
  }
});

test("signals at the service: what differs there", async () => {
  const signals = { known: 12, pending: 3, saved: 9, checkedAt: at(-60), lost: 1, changed: 2, unconfigured: 1 };
  await using opened = await open(
    {},
    { upload: { ...base.upload, signals: { ...signals, unconfiguredInputs: ["old.tag"] } } },
  );
  expect(await opened.page.locator("#signals").innerText()).toMatch(/3 to save[^]*Not configured: old\.tag/);
});

test("differing clocks of agent and browser are shown, and an unset clock with its remedy", async () => {
  const warning = { level: "error", message: "the clock is not set: 1970", remedy: "start chrony" } as const;
  await using opened = await open({}, { time: epochMicros(Date.parse("1970-01-02") * 1_000), warnings: [warning] });
  const { page } = opened;
  await page.locator("#overall.bad", { hasText: "The clock is not set: 1970." }).waitFor();
  expect(await page.locator("#problems").innerText()).toMatch(
    /The clock is not set: 1970\s+start chrony[^]*The clock of the agent is .* behind the clock of this browser/,
  );
});

test.each([
  [1_200, "/", [".gap", ".certificate", ".unmapped"]],
  [360, "/", [".gap", ".certificate", ".unmapped"]],
  [1_200, "/delivery", [".reason"]],
  [360, "/delivery", [".reason"]],
])("markup in every panel stays text and nothing sticks out at %i pixels of %s", async (width, path, rows) => {
  const long = `${"unbroken".repeat(30)}${script}`;
  const reason = { code: 400, reason: long, points: 1, earliest: undefined, latest: undefined };
  await using opened = await open(
    {
      gaps: () => gapList([gapWith(1, { source: long, reason: long, outcome: long, inputs: [long], tags: 1 })]),
      certificates: async () => [{ ...certificate, subject: long, applicationUri: long }],
      rejects: async () => ({ points: 1, unreadable: 0, reasons: [{ ...reason, inputs: new Map([[long, 1]]) }] }),
      configFile: `/${long}`,
    },
    {
      sources: [
        sourceWith({
          type: "opcua",
          name: long,
          unknown: [{ address: long, count: 1, sample: long }],
          details: { [long]: long },
        }),
      ],
      upload: {
        ...base.upload,
        error: long,
        remedy: long,
        signals: { known: 1, pending: 0, saved: 1, unconfigured: 1, unconfiguredInputs: [long] },
      },
      buffer: { ...base.buffer, degraded: long },
      warnings: [{ level: "error", message: long, remedy: long }],
    },
    width,
    path,
  );
  const { page, complaints } = opened;
  for (const row of rows) await page.locator(row).waitFor();
  expect(await page.locator("img, script:not([src])").count()).toBe(0);
  expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
  expect(complaints).toEqual([]);
});
