// Finding and adding tags in a real Chromium: an OPC UA server of another make.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Locator, Page } from "playwright-core";
import { chromium } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { type Asyncua, asyncua } from "../../support/asyncua.ts";
import { discoverToken, discoverWorld } from "../../support/discover-world.ts";
import { modbusDevice } from "../../support/modbus-device.ts";
import { openMosquitto } from "../../support/mosquitto.ts";
import { openMqttBroker } from "../../support/mqtt-broker.ts";
import { npmPackageFolder } from "../../support/npm-package.ts";
import { statusWith, tagWith } from "../../support/status.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { openPage } from "./open-page.ts";

let browser: Browser;
let axe: string;
let server: Asyncua;
const folder = temporaryFolder();

beforeAll(async () => {
  // axe is under MPL-2.0, so it is not a dependency and is installed outside the project.
  axe = join(await npmPackageFolder("axe-core", "4.14.1"), "node_modules/axe-core/axe.min.js");
  browser = await chromium.launch({
    executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"],
  });
  server = await asyncua({ folder: folder.path });
}, 180_000);
afterAll(async () => {
  await browser.close();
  await server[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

async function giveToken(page: Page) {
  await page.getByRole("dialog").waitFor();
  await page.keyboard.type(discoverToken);
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor({ state: "detached" });
}

/** Whether it can be seen without a scroll. */
async function onScreen(part: Locator) {
  const [box, view] = [await part.boundingBox(), part.page().viewportSize()];
  return box !== null && view !== null && box.y + box.height <= view.height;
}

/** A picture in the folder `TAGFERRY_SHOTS`. */
async function shoot(page: Page, name: string) {
  const shots = process.env["TAGFERRY_SHOTS"];
  if (shots !== undefined) await page.screenshot({ path: `${shots}/discover-${name}.png`, fullPage: true });
}

const findings = z.array(
  z.object({ id: z.string(), impact: z.string().nullable(), nodes: z.array(z.object({ html: z.string() })) }),
);

async function seriousFindings(page: Page) {
  await page.addScriptTag({ path: axe });
  const all = findings.parse(await page.evaluate("axe.run().then(({ violations }) => violations)"));
  return all
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => [id, nodes.map(({ html }) => html.slice(0, 160))]);
}

test.for([
  ["light", { colorScheme: "light" }],
  ["dark", { colorScheme: "dark" }],
  ["phone", { viewport: { width: 390, height: 844 } }],
] as const)("tags of an unknown OPC UA server are added, %s", async ([name, screen]) => {
  await using world = await discoverWorld();
  const recorded = [tagWith({ source: "press", input: "press.Temp", value: 33.5 }), tagWith({ source: "press" })];
  const web = { snapshot: () => statusWith({ tags: recorded }), control: world.control };
  await using opened = await openPage(browser, web, { path: "/discover", bypassCSP: true, ...screen });
  const { page, complaints } = opened;
  await giveToken(page);
  await page.getByLabel("Address", { exact: true }).fill(server.url);
  await page.getByRole("button", { name: "Connect", exact: true }).click();
  await page.getByText("Compare the SHA-256 with what the server itself displays").waitFor();
  await shoot(page, `certificate-${name}`);
  await page.getByRole("button", { name: "It is the same: trust it" }).click();
  await page.getByRole("button", { name: "Line ▸" }).click();
  await page.getByLabel("Temp", { exact: true }).check();
  await server.set("Temp", 33.25);
  await page.locator(".node", { hasText: "Temp" }).getByText("33.25").first().waitFor();
  await page.getByLabel("Count", { exact: true }).check();
  await page.getByLabel("Name of the source").fill("press");
  await page.getByLabel("Input ID of each tag").fill("{source}.{name}");
  await page.locator("#change-text", { hasText: "input: press.Temp" }).waitFor();
  const file = world.folder.file("conf.d/press.yaml");
  expect(existsSync(file)).toBe(false);
  await shoot(page, `change-${name}`);
  expect(await seriousFindings(page)).toEqual([]);
  const shown = (await page.locator("#change-text .added").allTextContents()).map((line) => line.slice(1)).join("");
  await page.getByRole("button", { name: "Write it and reload" }).click();
  await page.getByText("and taken up: 2 tags").waitFor();
  expect(readFileSync(file, "utf8")).toBe(shown);
  const values = page.getByRole("list", { name: "Values of the new tags" });
  await values.getByText("33.5").waitFor();
  expect(await values.getByRole("listitem").count()).toBe(1);
  await shoot(page, `written-${name}`);
  await page.getByLabel("Big", { exact: true }).check();
  await page.locator("#change-text .added", { hasText: "input: press.Big" }).waitFor();
  expect(await page.locator("#change-text .added").count()).toBe(1);
  expect(await page.locator("#change-file").innerText()).toBe(file);
  expect(await page.getByLabel("Name of the source").isVisible()).toBe(false);
  expect(complaints.filter((text) => !/401|Password field is not contained/.test(text))).toEqual([]);
});

test("topics of mosquitto are ticked, survive a restart of the agent, and are written", async () => {
  await using broker = await openMosquitto();
  await using world = await discoverWorld();
  const publisher = await broker.publisher();
  await publisher.publishAsync("hall/room1/env", '{"t":21.5,"text":"<b>x</b>"}', { retain: true });
  await using opened = await openPage(
    browser,
    { snapshot: () => statusWith(), control: world.control },
    { path: "/discover" },
  );
  const { page, complaints } = opened;
  await giveToken(page);
  await page.getByLabel("Address", { exact: true }).fill(broker.url);
  await page.getByLabel("User name").fill(broker.username);
  await page.getByLabel("Password").fill(broker.password);
  await page.getByRole("button", { name: "Connect", exact: true }).click();
  await page.getByLabel("t", { exact: true }).check();
  await publisher.publishAsync("hall/room1/env", '{"t":22.5,"text":"<b>x</b>"}');
  await page.locator(".node .value", { hasText: "22.5" }).waitFor();
  await page.locator("#change-text", { hasText: "input: hall.room1.env.t" }).waitFor();
  // As after a restart, the agent knows none of the connections.
  await world.discover[Symbol.asyncDispose]();
  await page.getByRole("button", { name: "Write it and reload" }).click();
  await page.getByText("this connection was closed").first().waitFor();
  expect(existsSync(world.folder.file("conf.d/mqtt1.yaml"))).toBe(false);
  await page.getByRole("button", { name: "Connect", exact: true }).click();
  await page.locator("#write:enabled").click();
  await page.getByText("and taken up: 1 tag").waitFor();
  expect(readFileSync(world.folder.file("conf.d/mqtt1.yaml"), "utf8")).toContain("topic: hall/room1/env");
  expect(complaints.filter((text) => !/40[19]|410|Password field is not contained/.test(text))).toEqual([]);
});

test("a user name alone is no password", async () => {
  await using broker = await openMqttBroker();
  await using world = await discoverWorld();
  await broker.publish("hall/env", '{"t":21.5}', { retain: true });
  await using opened = await openPage(
    browser,
    { snapshot: () => statusWith(), control: world.control },
    { path: "/discover" },
  );
  const { page } = opened;
  await giveToken(page);
  await page.getByLabel("Address", { exact: true }).fill(broker.url);
  await page.getByLabel("User name").fill("gw1");
  await page.getByRole("button", { name: "Connect", exact: true }).click();
  await page.getByLabel("t", { exact: true }).check();
  await page.locator("#change-text", { hasText: "username: gw1" }).waitFor();
  expect(await page.locator("#change-text").textContent()).not.toContain("password");
});

test("errors name the place in the file, few of them, and a new choice removes what was said of the last write", async () => {
  await using broker = await openMqttBroker();
  await using world = await discoverWorld();
  await broker.publish("hall/env", '{"a":1,"b":2,"c":3,"d":4,"e":5}', { retain: true });
  await using opened = await openPage(
    browser,
    { snapshot: () => statusWith(), control: world.control },
    { path: "/discover" },
  );
  const { page } = opened;
  await giveToken(page);
  await page.getByLabel("Address", { exact: true }).fill(broker.url);
  await page.getByRole("button", { name: "Connect", exact: true }).click();
  await page.getByLabel("e", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Tick all shown" }).click();
  await page.getByLabel("Input ID of each tag").fill("{nowhere}");
  await page.locator("#change-error", { hasText: "and 2 more" }).waitFor();
  const errors = await page.locator("#change-error").innerText();
  expect(errors.match(/nothing fills \{nowhere\}/g)).toHaveLength(3);
  const [line = "", caret = ""] = errors.split("\n").filter((text) => text.includes("|"));
  expect(caret.indexOf("^")).toBe(line.indexOf('"{nowhere}"'));
  await page.getByLabel("Input ID of each tag").fill("{path}");
  await page.locator("#write:enabled").click();
  await page.getByRole("link", { name: "See the values" }).waitFor();
  await page.getByLabel("a", { exact: true }).check();
  await page.locator("#change-text", { hasText: "hall.env.a" }).waitFor();
  await page.getByRole("link", { name: "See the values" }).waitFor({ state: "detached" });
});

test("points of a Modbus device can be ticked once their values are there, and values follow the device", async () => {
  await using device = await modbusDevice();
  const unit = device.unit(1);
  unit.set("hr", 40_000, [0x5375, 0x6e53, 103, 50]);
  // Power with its scale factor: 234.5 W.
  unit.set("hr", 40_016, [2_345, 0xff_ff]);
  unit.set("hr", 40_054, [0xff_ff, 0]);
  await using world = await discoverWorld();
  await using opened = await openPage(
    browser,
    { snapshot: () => statusWith(), control: world.control },
    { path: "/discover" },
  );
  const { page } = opened;
  await giveToken(page);
  await page.getByLabel("Address", { exact: true }).fill(`${device.url}?unit=1&from=0&to=1`);
  await page.getByRole("button", { name: "Connect", exact: true }).click();
  const power = page.locator(".node", { has: page.getByText("W", { exact: true }) });
  await power.getByText("234.5 W").waitFor();
  unit.set("hr", 40_016, [2_346]);
  await power.getByText("234.6 W").waitFor();
  await page.getByLabel("W", { exact: true }).check();
  await page.locator("#change-text", { hasText: "scaleFactor: hr:40017" }).waitFor();
});

test("a search finds nodes in the branches below, and says what was searched", async () => {
  await using world = await discoverWorld();
  await using opened = await openPage(
    browser,
    { snapshot: () => statusWith(), control: world.control },
    { path: "/discover" },
  );
  const { page } = opened;
  await giveToken(page);
  await page.getByLabel("Address", { exact: true }).fill(server.url);
  await page.getByRole("button", { name: "Connect", exact: true }).click();
  await page.getByRole("button", { name: "It is the same: trust it" }).click();
  await page.getByRole("button", { name: "Line ▸" }).waitFor();
  await page.getByLabel("Search name and address").fill("line temp");
  await page.getByLabel("Line / Temp", { exact: true }).check();
  await page.getByText(/^all \d+ nodes below this branch were searched$/).waitFor();
  await page.locator("#change-text", { hasText: "input: Line.Temp" }).waitFor();
});

test("a branch that cannot be opened is not part of the path", async () => {
  await using world = await discoverWorld();
  await using opened = await openPage(
    browser,
    { snapshot: () => statusWith(), control: world.control },
    { path: "/discover" },
  );
  const { page } = opened;
  await giveToken(page);
  await page.getByLabel("Address", { exact: true }).fill(server.url);
  await page.getByRole("button", { name: "Connect", exact: true }).click();
  await page.getByRole("button", { name: "It is the same: trust it" }).click();
  const line = page.getByRole("button", { name: "Line ▸" });
  await line.waitFor();
  await page.route("**/api/discover/list", (route) => route.abort());
  await line.click();
  await page.getByText("No answer from the agent.").waitFor();
  await page.unroute("**/api/discover/list");
  await line.click();
  await page.getByLabel("Temp", { exact: true }).waitFor();
  expect(await page.locator("#nodes-path button").allTextContents()).toEqual(["Top", "Line"]);
});

test("a tab of the browser asks for the token once, keeps it out of addresses, and asks again where it is wrong", async () => {
  await using world = await discoverWorld();
  await using opened = await openPage(
    browser,
    { snapshot: () => statusWith(), control: world.control },
    { path: "/discover" },
  );
  const { page } = opened;
  const answered = () => page.locator("#device-addresses option").first().waitFor({ state: "attached" });
  await giveToken(page);
  await answered();
  await page.getByRole("link", { name: "Overview" }).click();
  await page.getByRole("link", { name: "Add tags" }).click();
  await answered();
  expect(await page.getByRole("dialog").count()).toBe(0);
  expect(page.url()).not.toContain(discoverToken);
  expect(await page.evaluate("localStorage.length")).toBe(0);
  await page.evaluate("Object.keys(sessionStorage).forEach((key) => sessionStorage.setItem(key, 'wrong'))");
  await page.reload();
  await giveToken(page);
  await answered();
});

test("all tags below a branch are ticked at once, and a removed obstacle disappears", async () => {
  await using world = await discoverWorld({ configuration: "" });
  await using opened = await openPage(
    browser,
    { snapshot: () => statusWith(), control: world.control },
    { path: "/discover" },
  );
  const { page } = opened;
  await giveToken(page);
  const obstacle = page.getByText("Nothing can be written yet");
  await obstacle.waitFor();
  await page.getByLabel("Address", { exact: true }).fill(server.url);
  await page.getByRole("button", { name: "Connect", exact: true }).click();
  await page.getByRole("button", { name: "It is the same: trust it" }).click();
  await page.getByRole("button", { name: "tick all below Line" }).click();
  const change = page.locator("#change-text");
  await change.getByText("input: Line.Temp").waitFor();
  await change.getByText("input: Line.Count").waitFor();
  expect(await change.getByText("Line.Mode").count()).toBe(0);
  await page.getByRole("button", { name: "Tick none" }).click();
  await change.waitFor({ state: "hidden" });
  await page.getByRole("button", { name: "Tick all here and below" }).click();
  await change.getByText("input: Line.Temp").waitFor();
  const write = page.getByRole("button", { name: "Write it and reload" });
  expect(await write.isDisabled()).toBe(true);
  writeFileSync(world.file, `${readFileSync(world.file, "utf8")}include: conf.d/*.yaml\n`);
  await page.evaluate('dispatchEvent(new Event("focus"))');
  await obstacle.waitFor({ state: "hidden" });
  await page.locator("#write:enabled").waitFor();
  expect(await onScreen(write)).toBe(true);
  await write.click();
  await page.getByText(/and taken up: \d+ tags/).waitFor();
});
