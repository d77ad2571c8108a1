// The status page of an agent with many tags in a real Chromium: how soon it paints and shows values, and what it costs
// browser and agent while it is open. For comparison, in turn: a blank page, and an agent whose page is not open,
// because the cost of an agent with this many tags varies from minute to minute.
// `npm run build && node test/bench/operations/page.bench.ts [loads] [seconds] [tags] [rounds]`; `CHROMIUM` names
// another browser
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { resolve } from "node:path";
import { type Browser, chromium } from "playwright-core";
import { startAgent } from "../../support/agent-process.ts";
import { eventually } from "../../support/eventually.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { cpuSeconds, median } from "../agent/process-usage.ts";

const [loads = 7, seconds = 15, tags = 10_000, rounds = 5] = process.argv.slice(2).map(Number);
const entry = resolve(import.meta.dirname, "../../../dist/main.js");
if (!existsSync(entry)) throw new Error("run `npm run build` first");

using folder = temporaryFolder();
const inputs = Array.from({ length: tags }, (_, i) => `hall${i % 7}.machine${i % 100}.value${i}`);
writeFileSync(folder.file("tags.csv"), ["input", ...inputs].join("\n"));
await using agent = await startAgent({
  folder: folder.path,
  entry,
  configuration: `version: 1
agent: { name: bench, dataDir: ${JSON.stringify(folder.file("data"))} }
service: { url: "http://127.0.0.1:1/v1", integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: x } } }
http: { listen: "127.0.0.1:0" }
sources:
  plant: { type: simulator, every: 1s, tagsFrom: tags.csv }
`,
});
await using server = await chromium.launchServer({
  executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"],
});
const browser = await chromium.connect(server.wsEndpoint());
const browserPid = server.process().pid ?? 0;
console.log(
  `${cpus()[0]?.model}, ${cpus().length} cores, Node ${process.version}, Chromium ${browser.version()}, ` +
    `load ${loadavg()[0]?.toFixed(1)}, ${tags} tags of 1 s, medians of ${loads}`,
);

const opened: Opened[] = [];
for (let i = 0; i < loads; i++) {
  await using page = await open(browser);
  opened.push(page);
}
const shown = (pick: (page: Opened) => number) => {
  const times = opened.map(pick);
  return `${median(times).toFixed(0)} ms (${Math.min(...times).toFixed(0)} to ${Math.max(...times).toFixed(0)})`;
};
console.log(`first paint ${shown((page) => page.paintMs)}, values ${shown((page) => page.valuesMs)}`);

interface Round {
  readonly blank: Share;
  readonly opened: Share;
  readonly atTags: Share;
}
const inTurn: Round[] = [];
for (let i = 0; i < rounds; i++) {
  const blank = await browser.newPage();
  const without = await share();
  await blank.close();
  await using page = await open(browser);
  const opened = await share();
  await page.toTags();
  inTurn.push({ blank: without, opened, atTags: await share() });
}
const spread = (pick: (round: Round) => number) => {
  const shares = inTurn.map((round) => pick(round) * 100);
  return `${median(shares).toFixed(2)} % (${Math.min(...shares).toFixed(2)} to ${Math.max(...shares).toFixed(2)})`;
};
const more = (state: "opened" | "atTags") =>
  `browser ${spread((round) => round[state].browser - round.blank.browser)}, ` +
  `agent ${spread((round) => round[state].agent - round.blank.agent)}`;
console.log(
  `of a core more than without it, medians of ${rounds} rounds of ${seconds} s: while it is open ${more("opened")}; ` +
    `with the tags on the screen ${more("atTags")}; blank page ${spread(({ blank }) => blank.browser)}, ` +
    `agent that nobody looks at ${spread(({ blank }) => blank.agent)}, load ${loadavg()[0]?.toFixed(1)}`,
);
await browser.close();
await agent.stop();

interface Opened extends AsyncDisposable {
  /** From the start of the navigation, as the browser reports it. */
  readonly paintMs: number;
  /** Until the first row of the table has its value. */
  readonly valuesMs: number;
  /** Scrolls until the table fills the screen. */
  toTags(): Promise<void>;
}

/** Shares of one core. */
interface Share {
  readonly browser: number;
  readonly agent: number;
}

/** Opens a browser that has never loaded the page. */
async function open(by: Browser): Promise<Opened> {
  const context = await by.newContext({ viewport: { width: 1_200, height: 900 } });
  const page = await context.newPage();
  // The page itself records the times, because messages to this process take time.
  await page.addInitScript(`addEventListener("DOMContentLoaded", () => {
    const watch = new MutationObserver(() => {
      if (!document.querySelector(".tag .value")?.textContent) return;
      watch.disconnect();
      requestAnimationFrame(() => requestAnimationFrame(() => { window.valuesAt = performance.now(); }));
    });
    watch.observe(document.getElementById("tags"), { subtree: true, childList: true, characterData: true });
  });`);
  await page.goto(agent.page);
  const at = (expression: string) => eventually(async () => Number(await page.evaluate(expression)) || undefined);
  return {
    valuesMs: await at("window.valuesAt"),
    paintMs: await at("performance.getEntriesByName('first-contentful-paint')[0]?.startTime"),
    toTags: () => page.locator("#tags-title").evaluate("(title) => title.scrollIntoView()"),
    [Symbol.asyncDispose]: () => context.close(),
  };
}

/** Shares of one core that the agent and all processes of the browser use at rest, after a settling time. */
async function share(): Promise<Share> {
  const rest = (s: number) => new Promise((done) => setTimeout(done, s * 1_000));
  await rest(5);
  const used = () => ({
    browser: [browserPid, ...descendants(browserPid)].reduce((sum, pid) => sum + cpuSeconds(pid), 0),
    agent: cpuSeconds(agent.pid),
  });
  const before = used();
  const began = performance.now();
  await rest(seconds);
  const after = used();
  const s = (performance.now() - began) / 1_000;
  return { browser: (after.browser - before.browser) / s, agent: (after.agent - before.agent) / s };
}

function descendants(pid: number): readonly number[] {
  const parents = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const parent = readFileSync(`/proc/${name}/stat`, "utf8").split(") ")[1]?.split(" ")[1];
        return [{ pid: Number(name), parent: Number(parent) }];
      } catch {
        // The process has ended in the meantime.
        return [];
      }
    });
  const of = (one: number): readonly number[] =>
    parents.filter(({ parent }) => parent === one).flatMap((child) => [child.pid, ...of(child.pid)]);
  return of(pid);
}
