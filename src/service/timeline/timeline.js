// The page: who is signed in, which signals are listed and plotted, and over which window.
import { bucketSeconds, draw } from "./plot.js";
import { Rpc } from "./rpc.js";
import { SignalList } from "./signal-list.js";

const byId = (id) => document.getElementById(id);
const colors = ["#1f77b4", "#d95f02", "#2ca02c", "#d62728", "#8c6bb1", "#8c564b", "#e377c2", "#17a2b8"];
const refreshMs = 5_000;
const maxSpanMs = 400 * 86_400_000;
const minSpanMs = 1_000;

let rpc;
let window_ = { from: Date.now() - 900_000, to: Date.now() };
let drawing = false;
let again = false;
/** Item ID → { name, unit, color } */
const plotted = new Map();
const list = new SignalList(byId("signals"), byId("more"), byId("none"), { toggle, guard });

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
  plotted.clear();
  byId("who").textContent = "";
  showSignedIn(false);
}

function showSignedIn(yes) {
  byId("sign-in").hidden = yes;
  byId("main").hidden = !yes;
  byId("sign-out").hidden = !yes;
}

function toggle(item, name, unit, on) {
  const used = new Set([...plotted.values()].map(({ color }) => color));
  const color = colors.find((each) => !used.has(each)) ?? colors[plotted.size % colors.length];
  if (on) plotted.set(item, { name, unit, color });
  else plotted.delete(item);
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
  const seconds = bucketSeconds(from, to);
  const ids = [...plotted.keys()].slice(0, 50);
  const frame =
    ids.length === 0
      ? { times: [], series: {} }
      : (
          await rpc.call("platform.selectItems", {
            items: { filter: { id: { $in: ids } }, limit: 50 },
            data: {
              include: true,
              notBefore: new Date(from).toISOString(),
              before: new Date(to).toISOString(),
              rollup: seconds === undefined ? null : `PT${seconds}S`,
            },
          })
        ).data;
  const times = frame.times.map((time) => Date.parse(time));
  const pick = (key) => frame.series[key] ?? [];
  const series = ids.map((id) => {
    const value = pick(seconds === undefined ? id : `${id}_avg`);
    const [least, greatest] = [pick(`${id}_min`), pick(`${id}_max`)];
    const points = times.flatMap((time, i) =>
      value[i] === null || value[i] === undefined ? [] : [[time, value[i], least[i], greatest[i]]],
    );
    return { id, color: plotted.get(id)?.color ?? colors[0], points };
  });
  draw(byId("plot"), from, to, series);
  showAxis(from, to, seconds);
  byId("legend").replaceChildren(...series.map(legendOf));
}

function legendOf({ id, color, points }) {
  const { name, unit } = plotted.get(id) ?? { name: id, unit: "" };
  const row = document.createElement("li");
  row.style.color = color;
  const last = points.at(-1);
  const range = points.length === 0 ? "no data" : `${last[1].toLocaleString()} ${unit}`;
  row.textContent = `${name}: ${range}`;
  return row;
}

function showAxis(from, to, seconds) {
  byId("axis-from").textContent = new Date(from).toLocaleString();
  byId("axis-to").textContent = new Date(to).toLocaleString();
  byId("resolution").textContent = seconds === undefined ? "every point" : `one value for ${seconds} s`;
  for (const [id, ms] of [
    ["from", from],
    ["to", to],
  ]) {
    if (document.activeElement === byId(id)) continue;
    byId(id).value = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
  }
}

function move(from, to) {
  const span = Math.min(maxSpanMs, Math.max(minSpanMs, to - from));
  window_ = { from: Math.round(from), to: Math.round(from + span) };
  byId("live").checked = false;
  void guard("plot", refresh);
}

byId("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  void guard("sign-in", () => signIn(byId("integration").value, byId("password").value));
});
byId("sign-out").addEventListener("click", () => {
  problem(complainant);
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
byId("plot").addEventListener("wheel", (event) => {
  event.preventDefault();
  const { from, to } = window_;
  const box = byId("plot").getBoundingClientRect();
  const at = from + ((event.clientX - box.left) / box.width) * (to - from);
  const factor = event.deltaY > 0 ? 1.25 : 0.8;
  move(at - (at - from) * factor, at + (to - at) * factor);
});
byId("plot").addEventListener("pointerdown", (event) => {
  const { from, to } = window_;
  const { width } = byId("plot").getBoundingClientRect();
  byId("plot").setPointerCapture(event.pointerId);
  const drag = ({ clientX }) => {
    const by = ((event.clientX - clientX) / width) * (to - from);
    move(from + by, to + by);
  };
  byId("plot").addEventListener("pointermove", drag);
  byId("plot").addEventListener("pointerup", () => byId("plot").removeEventListener("pointermove", drag), {
    once: true,
  });
});
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

// Credentials may come behind the #, which browsers send to nobody: `/#<integration>:<password>`.
const given = /^#([a-v0-9]{20}):(.+)$/.exec(location.hash);
if (given) history.replaceState(null, "", location.pathname);
const stored = JSON.parse(sessionStorage.getItem("credentials") ?? "null");
const credentials = given ? [given[1], decoded(given[2])] : stored;
if (credentials) {
  showSignedIn(false);
  await guard("sign-in", () => signIn(...credentials));
} else showSignedIn(false);
