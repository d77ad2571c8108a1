// The configuration in effect: each value, and the lines of the file where it is written.
import {
  button,
  byId,
  cells,
  element,
  keyed,
  setAttribute,
  setClass,
  setHidden,
  setText,
  setTitle,
} from "./element.js";
import { showRange } from "./figures.js";
import * as format from "./format.js";
import { Stream, showAgent } from "./stream.js";
import { withToken } from "./token.js";

const search = byId("search");
const only = byId("only");
const body = byId("values").tBodies[0];
/** Index of the first row. */
let first = 0;
/** The status of the configuration, and what was loaded of it. */
let config;
let loaded;
let answer;
/** Why there is no answer, if not for want of a token. */
let problem;
let isBusy = false;
let isWanted = false;
let timer;

/** One request at a time. What is asked for meanwhile follows with the latest choice. */
async function load() {
  isWanted = true;
  if (isBusy) return;
  isBusy = true;
  try {
    while (isWanted) {
      isWanted = false;
      const repeated = answer === undefined ? {} : { repeated: "" };
      const query = new URLSearchParams({ search: search.value, only: only.value, first, ...repeated });
      const given = await withToken(`api/config?${query}`, { method: "GET" });
      answer = given?.rows ? given : undefined;
      problem = given?.reason;
    }
  } catch {
    // The stream says that the agent does not answer.
  } finally {
    isBusy = false;
    show();
  }
}

function show() {
  const { level, text } = headline();
  setText(byId("overall"), text);
  setClass(byId("overall"), `headline ${level}`);
  setHidden(again, answer !== undefined || problem !== undefined || isBusy);
  if (!answer) return;
  keyed(body, answer.rows, ({ path }) => path, createRow, update);
  showRange({ ...answer, first }, "value");
}

function headline() {
  if (!answer) return { level: "note", text: problem ?? "The configuration is shown with a token." };
  const at = format.moment(config.loadedAt / 1_000, Date.now());
  if (config.failedReload)
    return { level: "bad", text: `The changed file is invalid. What was loaded at ${at} is in effect.` };
  if (answer.changed)
    return { level: "warn", text: `The file was changed after it was loaded at ${at}. Reload it to take it up.` };
  if (config.needRestart.length > 0)
    return { level: "warn", text: `Changes of ${config.needRestart.join(", ")} need a restart of the agent.` };
  return { level: "good", text: `The file is in effect as it was loaded at ${at}.` };
}

function createRow() {
  const row = cells({ path: "code", value: "td.value" });
  const attributes = { "aria-expanded": "false" };
  const place = button("", () => void unfold(made), { className: "place", attributes });
  const where = element("td", { className: "where", attributes: { role: "cell" } }, place);
  const name = element("th", { className: "path", attributes: { scope: "row", role: "rowheader" } }, row.path);
  row.value.setAttribute("role", "cell");
  const node = element("tr", { className: "setting", attributes: { role: "row" } }, name, row.value, where);
  const made = { ...row, place, where, node };
  return made;
}

function update(row, { path, value, at, tag }) {
  row.at = at;
  setText(row.path, path);
  if (tag) {
    row.link ??= row.value.appendChild(element("a"));
    setText(row.link, value);
    setAttribute(row.link, "href", `tag?${new URLSearchParams(tag)}`);
  } else setText(row.value, value);
  setText(row.place, at ? `${at.file.split("/").at(-1)}:${at.line}` : "default");
  setTitle(row.place, at ? `${at.file}:${at.line}` : "");
  row.place.disabled = at === undefined;
}

/** Shows the lines around the place below its row, or hides them. */
async function unfold(row) {
  const isOpen = row.lines !== undefined;
  row.lines?.remove();
  row.lines = undefined;
  row.place.setAttribute("aria-expanded", String(!isOpen));
  if (isOpen) return;
  const list = element("ol", { className: "lines", attributes: { tabindex: "0", "aria-label": "Lines of the file" } });
  row.lines = element("td", { className: "file", attributes: { role: "cell" } }, list);
  row.node.append(row.lines);
  const given = await withToken(`api/config/lines?${new URLSearchParams(row.at)}`, { method: "GET" });
  if (!given?.ok) {
    list.append(element("li", { text: given?.reason ?? "not shown without a token" }));
    return;
  }
  list.start = given.first;
  for (const [index, line] of given.lines.entries()) {
    const item = element("li");
    setText(item, line);
    if (given.first + index === given.line) {
      item.className = "here";
      item.setAttribute("aria-current", "true");
    }
    list.append(item);
  }
  const here = list.querySelector(".here");
  if (here) list.scrollTop = here.offsetTop - list.offsetTop - list.clientHeight / 3;
}

const again = button("Enter the token", load);
byId("overall").after(again);
for (const field of [search, only])
  field.addEventListener("input", () => {
    first = 0;
    clearTimeout(timer);
    timer = setTimeout(load, field === search ? 150 : 0);
  });
const turn = (pages) => {
  first = Math.max(0, first + pages * (answer?.most ?? 0));
  void load();
};
byId("before").addEventListener("click", () => turn(-1));
byId("after").addEventListener("click", () => turn(1));

show();
new Stream(
  () => ({ count: 0 }),
  ({ status }) => {
    showAgent(status, "Configuration");
    config = status.agent.config;
    const shown = JSON.stringify(config);
    if (shown === loaded) return;
    loaded = shown;
    void load();
  },
);
