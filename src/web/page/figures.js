// What panels are made of: pills, figures with bars, lists that begin short, and requests next to the stream.
import { element, keyed, setClass, setHidden, setStyle, setText } from "./element.js";

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

/** An error and what to do about it; hidden while there is none. */
export function showTrouble(node, error, remedy) {
  setHidden(node, error === undefined);
  setText(node, error === undefined ? "" : remedy === undefined ? error : `${error}: ${remedy}`);
}

/** The first rows, and a button for the others. */
export class ShortList {
  #list;
  #button = element("button", { className: "more", attributes: { type: "button" } });
  #most;
  #all = false;
  #again = () => {};

  constructor(list, most) {
    this.#list = list;
    this.#most = most;
    list.after(this.#button);
    this.#button.hidden = true;
    this.#button.addEventListener("click", () => {
      this.#all = !this.#all;
      this.#again();
    });
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
