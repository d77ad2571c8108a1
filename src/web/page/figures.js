// What panels are made of: pills, figures with bars, lists that begin short, and requests next to the stream.
import { button, byId, element, keyed, setClass, setHidden, setStyle, setText } from "./element.js";
import * as format from "./format.js";

export function pill(node, text, colour) {
  setText(node, text);
  setClass(node, `pill ${colour}`);
}

/** Name, value and, for shares, a bar. */
export function showFigures(parent, figures) {
  keyed(
    parent,
    figures,
    ([name]) => name,
    ([name, , share]) => {
      const value = element("span", { className: "figure" });
      const bar = share === undefined ? undefined : element("div", { className: "bar" }, element("div"));
      const title = element("span", { className: "quiet", text: name });
      return { node: element("div", {}, value, title, ...(bar ? [bar] : [])), value, bar };
    },
    (row, [, text, share]) => {
      setText(row.value, text);
      if (row.bar) setStyle(row.bar.firstChild, "width", `${Math.min(100, Math.max(0, share * 100)).toFixed(1)}%`);
    },
  );
}

/** Which rows of a table are on the page, and whether there are others before and after them. `what`: a row. */
export function showRange({ first, rows, matching, total }, what) {
  const last = first + rows.length;
  const all = format.count(matching);
  setText(byId(`${what}s-count`), matching === total ? all : `${all} of ${format.count(total)}`);
  const range = `${format.count(first + 1)} to ${format.count(last)} of ${all}`;
  setText(byId("range"), rows.length === 0 ? `no ${what} matches` : range);
  byId("before").disabled = first === 0;
  byId("after").disabled = last >= matching;
}

/** Offers `names` after the first choice of `select`. `wanted` is chosen if it is among them. */
export function showChoices(select, names, wanted = select.value) {
  const key = names.join("\n");
  if (select.names === key) return;
  select.names = key;
  select.length = 1;
  for (const name of names) select.append(element("option", { attributes: { value: name }, text: name }));
  select.value = names.includes(wanted) ? wanted : "";
}

/** An error and what to do about it; hidden while there is none. */
export function showTrouble(node, error, remedy) {
  setHidden(node, error === undefined);
  setText(node, error === undefined ? "" : remedy === undefined ? error : `${error}: ${remedy}`);
}

/** The first rows, and a button for the others. */
export class ShortList {
  #list;
  #button;
  #most;
  #all = false;
  #again = () => {};

  constructor(list, most) {
    this.#list = list;
    this.#most = most;
    const turn = () => {
      this.#all = !this.#all;
      this.#again();
    };
    this.#button = button("", turn, { className: "more" });
    this.#button.hidden = true;
    list.after(this.#button);
  }

  show(items, keyOf, create, update) {
    this.#again = () => this.show(items, keyOf, create, update);
    keyed(this.#list, this.#all ? items : items.slice(0, this.#most), keyOf, create, update);
    setHidden(this.#button, items.length <= this.#most);
    setText(this.#button, this.#all ? "Show fewer" : `Show all ${items.length}`);
  }
}

/** Cells of a list, one after the other. */
export function listRow(className, cells) {
  return element("div", { className, attributes: { role: "listitem" } }, ...cells);
}

/** Asks the agent for what is not in the stream, when the stream says that it has changed. */
export class Lookup {
  #path;
  #everyMs;
  #key;
  #at = Number.NEGATIVE_INFINITY;
  #busy = false;
  /** The latest answer; undefined: none yet. */
  answer;

  /** At most one request each `everyMs` milliseconds. */
  constructor(path, everyMs) {
    this.#path = path;
    this.#everyMs = everyMs;
  }

  /** Lets the next `refresh` ask, whatever its key. */
  forget() {
    this.#key = undefined;
  }

  /** Asks if `key` is another one than at the last answer, and calls `show` when there is a new one. What fails is tried again. */
  async refresh(key, show) {
    if (this.#busy || key === this.#key || performance.now() - this.#at < this.#everyMs) return;
    this.#busy = true;
    this.#at = performance.now();
    try {
      const response = await fetch(this.#path);
      if (!response.ok) return;
      this.answer = await response.json();
      this.#key = key;
      show();
    } catch {
      // The stream shows that the agent does not answer.
    } finally {
      this.#busy = false;
    }
  }
}
