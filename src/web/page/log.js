// The latest lines of the log, with filters. They are kept here as the agent keeps them, so that filters need no request.
import { button, byId, cells, element, keyed, setClass, setHidden, setText } from "./element.js";
import { listRow, showChoices } from "./figures.js";
import * as format from "./format.js";
import { Stream, showAgent } from "./stream.js";
import { withToken } from "./token.js";

const everyMs = 1_000;
const mostLines = 5_000;
/** Lines on screen. */
const mostShown = 300;
const levels = {
  10: ["trace", "note"],
  20: ["debug", "note"],
  30: ["info", "note"],
  40: ["warning", "warn"],
  50: ["error", "bad"],
};
/** Fields that have a place of their own, or are the same in all lines. */
const own = new Set(["level", "time", "msg", "agent", "pid", "hostname", "source", "part", "name"]);

const fields = { search: byId("search"), level: byId("level"), source: byId("source") };
const pause = byId("pause");
/** Newest last. */
let lines = [];
let after = 0;
let hasToken;
/** Why there is no answer, if not for want of a token. */
let problem;
let isBusy = false;
/** When the agent was started, and when the one was that the lines are from. Each start counts lines from the beginning. */
let startedAt;
let linesOf;

async function load() {
  if (isBusy || hasToken === false || document.hidden || pause.getAttribute("aria-pressed") === "true") return;
  isBusy = true;
  const run = startedAt;
  if (run !== linesOf) after = 0;
  try {
    const answer = await withToken(`api/log?after=${after}`, { method: "GET" });
    hasToken = answer?.lines !== undefined;
    problem = answer?.reason;
    if (hasToken) take(answer, run);
    show();
  } catch {
    // The stream says that the agent does not answer.
  } finally {
    isBusy = false;
  }
}

function take(answer, run) {
  if (run !== linesOf) lines = [];
  linesOf = run;
  const first = answer.next - answer.lines.length;
  for (const [index, text] of answer.lines.entries()) lines.push(read(text, first + index));
  after = answer.next;
  lines = lines.slice(-mostLines);
}

function read(text, number) {
  const line = JSON.parse(text);
  const rest = Object.entries(line).filter(([key]) => !own.has(key));
  const detail = rest.map(([key, value]) => (key === "err" ? (value?.message ?? "") : `${key}: ${shown(value)}`));
  return {
    // A line of another run has another time.
    key: `${number} ${line.time}`,
    time: Date.parse(line.time),
    level: line.level,
    source: line.source ?? "",
    from: line.source ?? line.part ?? "agent",
    message: line.msg ?? "",
    detail: detail.filter((each) => each !== "").join(", "),
    text: text.toLowerCase(),
  };
}

function shown(value) {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function show() {
  setHidden(again, hasToken !== false || problem !== undefined);
  const search = fields.search.value.toLowerCase();
  const level = Number(fields.level.value);
  const source = fields.source.value;
  const matching = lines.filter(
    (line) => line.level >= level && (source === "" || line.source === source) && line.text.includes(search),
  );
  const [worst, worstText] = headline();
  setText(byId("overall"), worstText);
  setClass(byId("overall"), `headline ${worst}`);
  const latest = matching.slice(-mostShown).reverse();
  const part = latest.length < matching.length ? `, the latest ${format.count(latest.length)} shown` : "";
  setText(byId("log-count"), `${format.count(matching.length)} of ${format.count(lines.length)} lines${part}`);
  keyed(
    byId("lines"),
    latest,
    ({ key }) => key,
    create,
    () => {},
  );
}

function headline() {
  if (!hasToken) return ["note", problem ?? "The log is shown with a token."];
  if (lines.length === 0) return ["note", "No line yet."];
  const since = `since ${format.moment(lines[0].time, Date.now())}`;
  const of = (level, word) => {
    const found = lines.filter((line) => line.level === level).length;
    return found === 0 ? [] : [`${format.count(found)} ${word}${found === 1 ? "" : "s"}`];
  };
  const words = [...of(50, "error"), ...of(40, "warning")];
  // What must be done now stands on the overview; a line of the log may be long settled.
  return words.length > 0 ? ["warn", `${words.join(" and ")} ${since}.`] : ["good", `No errors or warnings ${since}.`];
}

function create({ time, level, from, message, detail }) {
  const [word, colour] = levels[level] ?? [String(level), "note"];
  const row = cells({ time: "time.quiet", level: "span", from: "bdi.quiet", message: "bdi", detail: "bdi.quiet" });
  setText(row.time, format.moment(time, Date.now()));
  row.time.dateTime = new Date(time).toISOString();
  setText(row.level, word);
  setClass(row.level, `word ${colour}`);
  setText(row.from, from);
  setText(row.message, message);
  setText(row.detail, detail);
  const what = element("div", { className: "who" }, row.message, row.detail);
  return {
    node: listRow("row line", [row.time, row.level, row.from, what]),
  };
}

const again = button("Enter the token", () => {
  hasToken = undefined;
  void load();
});
byId("overall").after(again);
for (const field of Object.values(fields)) field.addEventListener("input", show);
pause.addEventListener("click", () => {
  const isPaused = pause.getAttribute("aria-pressed") !== "true";
  pause.setAttribute("aria-pressed", String(isPaused));
  setText(pause, isPaused ? "Paused" : "Pause");
  void load();
});

new Stream(
  () => ({ count: 0 }),
  ({ status }) => {
    showAgent(status, "Log");
    startedAt = status.agent.startedAt;
    showChoices(
      fields.source,
      status.sources.map(({ name }) => name),
    );
  },
);
show();
void load();
setInterval(load, everyMs);
