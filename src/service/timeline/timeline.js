// The page: who is signed in, which signals are listed and plotted, and over which window.
import { Chart } from "./chart.js";
import { csvOf, download } from "./csv.js";
import { showLegend } from "./legend.js";
import { Rpc } from "./rpc.js";
import { bucketSeconds, isDrawn, maxItems, readSeries } from "./series.js";
import { SignalList } from "./signal-list.js";
import { whenText } from "./texts.js";

const byId = (id) => document.getElementById(id);
const colors = ["#1f77b4", "#d95f02", "#2ca02c", "#d62728", "#8c6bb1", "#8c564b", "#e377c2", "#17a2b8"];
const refreshMs = 5_000;
const maxSpanMs = 400 * 86_400_000;
const minSpanMs = 1_000;
/** So long a person must have stopped zooming or dragging before the values are read again. */
const restMs = 150;

let rpc;
let window_ = { from: Date.now() - 900_000, to: Date.now() };
let drawing = false;
let again = false;
/** Item ID → colour, in the order of the legend. */
const plotted = new Map();
/** What the chart shows. */
let shown = [];
const list = new SignalList(byId("signals"), byId("none"), { toggle, guard, isPlotted: (item) => plotted.has(item) });
const chart = new Chart(byId("plot"), byId("tip"), { move });

let complainant;

/** Shows what went wrong; who complained last is who can take it back. */
function problem(who, error) {
  if (!error && who !== complainant) return;
  complainant = who;
  byId("problem").textContent = error?.message ?? "";
  byId("problem").hidden = !error;
  if (error?.status === 401) signOut();
}

/** Runs something that may be refused, and says so on the page. */
async function guard(who, work) {
  try {
    await work();
    problem(who);
  } catch (error) {
    problem(who, error);
  }
}

async function signIn(integration, password) {
  const settings = await (await fetch("timeline/settings.json")).json();
  const candidate = new Rpc(integration, password, settings.namespace);
  await candidate.call("admin.selectSignals", { integration, signals: { limit: 0 } });
  rpc = candidate;
  sessionStorage.setItem("credentials", JSON.stringify([integration, password]));
  byId("who").textContent = integration;
  showSignedIn(true);
  list.open(rpc, byId("search").value);
  await refresh();
}

function signOut() {
  sessionStorage.removeItem("credentials");
  rpc = undefined;
  byId("who").textContent = "";
  showSignedIn(false);
}

function showSignedIn(yes) {
  byId("sign-in").hidden = yes;
  byId("main").hidden = !yes;
  byId("sign-out").hidden = !yes;
}

function toggle(item, on) {
  const tooMany = on && plotted.size >= maxItems;
  problem("toggle", tooMany && new Error(`At most ${maxItems} signals can be plotted.`));
  if (tooMany) return list.update();
  const used = new Set(plotted.values());
  const color = colors.find((each) => !used.has(each)) ?? colors[plotted.size % colors.length];
  if (on) plotted.set(item, color);
  else plotted.delete(item);
  list.update();
  void guard("plot", refresh);
}

/** Asks for what is plotted and draws it; while it is at it, once more is enough. */
async function refresh() {
  if (drawing) {
    again = true;
    return;
  }
  drawing = true;
  try {
    do {
      again = false;
      await read();
    } while (again);
  } finally {
    drawing = false;
  }
}

async function read() {
  if (byId("live").checked) {
    const span = window_.to - window_.from;
    window_ = { from: Date.now() - span, to: Date.now() };
  }
  const { from, to } = window_;
  writeAddress();
  const seconds = bucketSeconds(from, to, Math.max(200, byId("plot").clientWidth));
  const series = await readSeries(rpc, [...plotted.keys()], from, to, seconds);
  shown = series.map((each) => ({ ...each, color: plotted.get(each.id) ?? colors[0] }));
  // What was read for a window that was left meanwhile is drawn all the same, in the window of now.
  chart.show(shown, window_.from, window_.to);
  showLegend(byId("legend"), shown, from, to, (id) => toggle(id, false));
  byId("empty").textContent = plotted.size > 0 ? "No data in this window." : "Check signals in the list to plot them.";
  byId("empty").hidden = shown.some((each) => isDrawn(each, from, to));
  byId("resolution").textContent = seconds === undefined ? "every point" : `one value for ${spanText(seconds * 1_000)}`;
  byId("band").hidden = seconds === undefined || shown.every(({ kind }) => kind === "state");
  showRange();
}

const units = [
  [86_400_000, "day"],
  [3_600_000, "hour"],
  [60_000, "minute"],
  [1_000, "second"],
];

/** A length of time in words: the two largest units of it. */
function spanText(ms) {
  let rest = Math.max(1_000, Math.round(ms / 1_000) * 1_000);
  const parts = units.flatMap(([unit, name]) => {
    const count = Math.floor(rest / unit);
    rest -= count * unit;
    return count === 0 ? [] : [`${count} ${name}${count === 1 ? "" : "s"}`];
  });
  return parts.slice(0, 2).join(" ");
}

function showRange() {
  const { from, to } = window_;
  const span = spanText(to - from);
  const words = byId("live").checked ? `the last ${span.replace(/^1 (?=\w+$)/, "")}` : span;
  byId("range").textContent = `${whenText(from)} – ${whenText(to)}, ${words}`;
  for (const [id, ms] of [
    ["from", from],
    ["to", to],
  ]) {
    if (document.activeElement === byId(id)) continue;
    byId(id).value = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
  }
}

let resting;

/** Moves the window, within what the service answers, and reads it once it rests. Gives what it has become. */
function move(from, to) {
  const span = Math.min(maxSpanMs, Math.max(minSpanMs, to - from));
  window_ = { from: Math.round(from), to: Math.round(from + span) };
  byId("live").checked = false;
  showRange();
  clearTimeout(resting);
  resting = setTimeout(() => void guard("plot", refresh), restMs);
  return [window_.from, window_.to];
}

/** The address names what is shown, so that it can be passed on: items, and the window or how long a live one is. */
function writeAddress() {
  const { from, to } = window_;
  const window = byId("live").checked
    ? `last=${Math.round((to - from) / 1_000)}`
    : `from=${new Date(from).toISOString()}&to=${new Date(to).toISOString()}`;
  const items = plotted.size > 0 ? `items=${[...plotted.keys()].join(",")}&` : "";
  history.replaceState(null, "", `${location.pathname}#${items}${window}`);
}

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const items = new Set((given.get("items") ?? "").split(",").filter((item) => /^[a-v0-9]{20}$/.test(item)));
  for (const item of [...items].slice(0, maxItems)) plotted.set(item, colors[plotted.size % colors.length]);
  const left = items.size - plotted.size;
  problem("toggle", left > 0 && new Error(`The link names ${items.size} signals; the first ${maxItems} are plotted.`));
  const [from, to] = [Date.parse(given.get("from")), Date.parse(given.get("to"))];
  if (from < to) {
    byId("live").checked = false;
    window_ = { from, to: Math.min(to, from + maxSpanMs) };
  } else if (Number(given.get("last")) >= 1) {
    byId("live").checked = true;
    window_ = { from: Date.now() - Math.min(maxSpanMs, given.get("last") * 1_000), to: Date.now() };
  }
}

// A link that is opened in the tab of the page does not load it again.
addEventListener("hashchange", () => {
  plotted.clear();
  readAddress();
  list.update();
  if (rpc) void guard("plot", refresh);
});

byId("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  void guard("sign-in", () => signIn(byId("integration").value, byId("password").value));
});
byId("sign-out").addEventListener("click", () => {
  problem(complainant);
  plotted.clear();
  signOut();
});
let typing;
byId("search").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => list.open(rpc, byId("search").value), 200);
});
for (const button of document.querySelectorAll("[data-span]"))
  button.addEventListener("click", () => {
    window_ = { from: Date.now() - Number(button.dataset.span) * 1000, to: Date.now() };
    byId("live").checked = true;
    void guard("plot", refresh);
  });
for (const id of ["from", "to"])
  byId(id).addEventListener("change", () => {
    const [from, to] = [Date.parse(byId("from").value), Date.parse(byId("to").value)];
    if (from < to) move(from, to);
  });
byId("live").addEventListener("change", () => void guard("plot", refresh));
byId("csv").addEventListener("click", () => {
  const { from, to } = window_;
  const name = `timeline ${new Date(from).toISOString()} to ${new Date(to).toISOString()}.csv`;
  download(name.replaceAll(":", "-"), csvOf(shown, from, to));
});
byId("link").addEventListener("click", () =>
  guard("link", async () => {
    await navigator.clipboard.writeText(location.href);
    byId("link").textContent = "Link copied";
    setTimeout(() => (byId("link").textContent = "Copy link"), 2_000);
  }),
);
setInterval(() => {
  if (rpc && byId("live").checked && !document.hidden) void guard("plot", refresh);
}, refreshMs);

/** What stood in an address; a password with a % of its own may have been written into it as it is. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// Credentials may follow the #, which browsers never send: `/#<integration>:<password>`.
const given = /^#([a-v0-9]{20}):(.+)$/.exec(location.hash);
if (given) history.replaceState(null, "", location.pathname);
else readAddress();
const stored = JSON.parse(sessionStorage.getItem("credentials") ?? "null");
const credentials = given ? [given[1], decoded(given[2])] : stored;
showSignedIn(false);
if (credentials) await guard("sign-in", () => signIn(...credentials));
