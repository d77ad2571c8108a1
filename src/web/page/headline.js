// The first screen: a headline, three answers, and the problems with their remedies, worst first.
import { byId, cells, copyButton, element, keyed, setClass, setHidden, setText } from "./element.js";
import { ShortList } from "./figures.js";
import * as format from "./format.js";

const problemList = new ShortList(byId("problems"), 4);
const levelWords = { bad: "Problem", warn: "Warning", note: "Note" };
/** Affected things that a problem names; the others are counted. */
const mostItems = matchMedia("(max-width: 760px)").matches ? 1 : 3;

export function showHeadline({ overall, time }, commands, certificates) {
  const now = time / 1_000;
  const { arriving, delivering } = overall;
  const trust = certificates === 1 ? "1 certificate to trust" : `${certificates} certificates to trust`;
  const problems = [
    ...overall.problems,
    ...(certificates > 0 ? [{ level: "warn", text: trust, count: 1, items: [{ detail: "see below" }] }] : []),
    ...clockDifference(now),
  ];
  const urgent = problems.filter(({ level }) => level !== "note");
  const notes = problems.filter(({ level }) => level === "note");
  const level = overall.level === "good" && certificates > 0 ? "warn" : overall.level;
  setText(byId("overall"), certificates > 0 ? `${overall.text} ${trust}.` : overall.text);
  setClass(byId("overall"), `headline ${level}`);
  showAnswer("arriving", arriving.level, sentence(arriving.text), arriving.detail);
  showAnswer("delivering", delivering.level, sentence(delivering.text), delivering.detail);
  showAnswer("doing", ...toDo(urgent));
  problemList.show(
    urgent,
    ({ text }) => text,
    createProblem,
    (row, problem) => updateProblem(row, problem, commands, now),
  );
  setHidden(byId("notes"), notes.length === 0);
  setText(byId("notes").firstElementChild, notes.length === 1 ? "1 note" : `${notes.length} notes`);
  keyed(
    byId("notes").lastElementChild,
    notes,
    ({ text }) => text,
    createProblem,
    (row, problem) => updateProblem(row, problem, commands, now),
  );
}

function showAnswer(id, level, text, detail) {
  const [, says, figures] = byId(id).children;
  setText(says, text);
  setClass(says, `says ${level}`);
  setText(figures, detail);
}

function toDo(urgent) {
  const acts = urgent.filter(({ level }) => level === "bad").length;
  const waits = urgent.length - acts;
  if (urgent.length === 0) return ["good", "Nothing", "no problem is known"];
  const late = waits === 1 ? "1 may recover by itself" : `${waits} may recover by themselves`;
  if (acts === 0) return ["warn", waits === 1 ? "See the warning below" : `See ${waits} warnings below`, late];
  return ["bad", acts === 1 ? "Act on 1 problem" : `Act on ${acts} problems`, waits === 0 ? "see below" : late];
}

function createProblem() {
  const row = cells({ level: "span.pill", text: "strong", command: "code.command" });
  const items = element("ul", { className: "plain items" });
  const more = element("p", { className: "quiet" });
  const run = element(
    "p",
    { className: "run" },
    row.command,
    copyButton(() => row.command.textContent),
  );
  const head = element("p", { className: "problem-head" }, row.level, row.text);
  return { ...row, items, more, run, node: element("li", {}, head, items, more, run) };
}

function updateProblem(row, { level, text, items, count }, commands, now) {
  setClass(row.node, `problem ${level}`);
  setClass(row.level, `pill ${level}`);
  setText(row.level, levelWords[level]);
  setText(row.text, sentence(text));
  const named = items.slice(0, mostItems).map(({ remedy, ...item }, index, all) => ({
    ...item,
    index,
    // Of several with the same remedy, the last one has it.
    remedy: all[index + 1]?.remedy === remedy ? undefined : remedy,
  }));
  keyed(
    row.items,
    named,
    ({ index }) => index,
    createItem,
    (item, problem) => updateItem(item, problem, now),
  );
  const rest = count - named.length;
  setHidden(row.more, rest <= 0 || named.length === 0);
  setText(row.more, `and ${format.count(rest)} more`);
  const command = commands[text];
  setHidden(row.run, command === undefined);
  setText(row.command, command ?? "");
}

function createItem() {
  const row = cells({ source: "bdi.strong", detail: "bdi", remedy: "bdi.remedy" });
  const when = element("a", { attributes: { href: "#gaps-title" } });
  return { ...row, when, node: element("li", {}, row.source, when, row.detail, row.remedy) };
}

function updateItem(row, { source, detail, remedy, gap }, now) {
  setHidden(row.when, gap === undefined);
  setText(row.when, gap === undefined ? "" : format.interval(gap, now));
  setHidden(row.source, source === undefined);
  setText(row.source, source === undefined ? "" : `${source}: `);
  setText(row.detail, `${gap === undefined ? "" : ", "}${detail ?? ""}`);
  setHidden(row.remedy, remedy === undefined);
  setText(row.remedy, remedy === undefined ? "" : remedy);
}

/** Compares the clocks of the browser and the agent. A difference of more than a minute is not a network delay. */
function clockDifference(now) {
  const ms = now - Date.now();
  if (Math.abs(ms) < 60_000) return [];
  const detail = `The clock of the agent is ${format.duration(Math.abs(ms))} ${ms > 0 ? "ahead of" : "behind"} the clock of this browser.`;
  const remedy = "If the agent's is wrong, correct its time synchronisation (timedatectl): points carry its time.";
  return [{ level: "warn", text: "clocks of agent and browser differ", count: 1, items: [{ detail, remedy }] }];
}

function sentence(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}
