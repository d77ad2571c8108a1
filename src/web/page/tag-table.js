// The table of tags. Only rows on the screen and a few around them exist, and only those are asked for: the page costs
// the same with ten tags and with ten thousand.
import { cells, element, setAttribute, setClass, setStyle, setText, setTitle } from "./element.js";
import * as format from "./format.js";
import { draw, Line, plotNode } from "./plot.js";

/** Rows kept ready above and below the screen. */
const margin = 10;
/** How often rows beside the screen are brought up to date, for who searches the page or has it read out. */
const besideMs = 15_000;

/** Characters of a value that is written smaller, so that it leaves room for its name. */
const longValue = 17;

export class TagTable {
  #root;
  #rows = new Map();
  /** Plotted lines of the rows that are shown, by source, tag and input. */
  #lines = new Map();
  #onRange;
  #first = 0;
  #count = 0;
  #matching = 0;
  /** Of one row, in pixels; undefined: to be measured. */
  #height;
  /** Those that a person sees, and two more on either side. */
  #onScreen = { first: 0, last: 0 };

  /** `onRange` is called with the first row and the number of rows that are wanted, whenever those change. */
  constructor(root, onRange) {
    this.#root = root;
    this.#onRange = onRange;
    const check = () => this.#check();
    addEventListener("scroll", check, { passive: true });
    const resized = () => {
      this.#height = undefined;
      check();
    };
    addEventListener("resize", resized, { passive: true });
  }

  get range() {
    const first = Math.max(0, Math.floor(this.#look() / this.#rowHeight) - margin);
    return { first, count: Math.min(200, Math.ceil(innerHeight / this.#rowHeight) + 2 * margin) };
  }

  /** Notes which rows are on the screen. Gives how much of the table is above it, in pixels. */
  #look() {
    const height = this.#rowHeight;
    const { top } = this.#root.getBoundingClientRect();
    this.#onScreen = { first: Math.floor(-top / height) - 2, last: Math.ceil((innerHeight - top) / height) + 2 };
    return Math.max(0, -top);
  }

  get #rowHeight() {
    this.#height ??= Number.parseFloat(getComputedStyle(this.#root).getPropertyValue("--row")) || 48;
    return this.#height;
  }

  /** Asks for other rows once the screen comes near the end of what is there. */
  #check() {
    const { first, count } = this.range;
    const before = first < this.#first && this.#first > 0;
    const after = first + count > this.#first + this.#count && this.#first + this.#count < this.#matching;
    if (Math.abs(first - this.#first) > margin / 2 && (before || after)) this.#onRange();
    for (const row of this.#rows.values()) if (row.isBehind && this.#isOnScreen(row)) row.show();
  }

  #isOnScreen({ index }) {
    return index >= this.#onScreen.first && index <= this.#onScreen.last;
  }

  /** `view` is the server's; `history` goes with the first view of a stream. Measures, so it is the first to be called. */
  show(view, history, nowMs) {
    const { rows, first, matching } = view;
    this.#look();
    this.#first = first;
    this.#count = rows.length;
    this.#matching = matching;
    const height = this.#rowHeight;
    setStyle(this.#root, "height", `${matching * height}px`);
    setAttribute(this.#root, "aria-rowcount", String(matching));
    const shown = new Set();
    for (const [i, tag] of rows.entries()) {
      const key = `${tag.source} ${tag.tag} ${tag.input}`;
      shown.add(key);
      let row = this.#rows.get(key);
      if (!row) {
        row = createRow();
        this.#rows.set(key, row);
        this.#root.append(row.node);
      }
      let line = this.#lines.get(key);
      if (!line) {
        line = new Line();
        this.#lines.set(key, line);
        if (history) line.load(history.times, history.rows[i] ?? []);
      }
      line.push(nowMs, tag.value ?? null);
      place(row, first + i, height);
      row.show = () => {
        row.shownAt = nowMs;
        row.isBehind = false;
        update(row, tag, line, nowMs);
      };
      if (this.#isOnScreen(row) || nowMs - row.shownAt >= besideMs) row.show();
      else row.isBehind = true;
    }
    for (const [key, row] of this.#rows) {
      if (shown.has(key)) continue;
      row.node.remove();
      this.#rows.delete(key);
      this.#lines.delete(key);
    }
  }
}

function createRow() {
  const row = cells({ quality: "span.dot.none", input: "bdi.input", address: "bdi.address.quiet", value: "bdi.value" });
  row.age = element("span", { className: "age quiet" });
  for (const cell of Object.values(row)) cell.setAttribute("role", "cell");
  row.plot = plotNode();
  const node = element("div", { className: "tag", attributes: { role: "row" } }, ...Object.values(row));
  const made = { ...row, node, shownAt: Number.NEGATIVE_INFINITY, isBehind: false, show: () => {} };
  // Formatted for who looks at it, and not each second.
  for (const cell of [row.age, row.value])
    cell.addEventListener("pointerenter", () => {
      const { time, value } = made.tag;
      setTitle(row.age, time === undefined ? "" : format.time(time / 1_000));
      setTitle(row.value, value === undefined ? "" : String(value));
    });
  return made;
}

function place(row, index, height) {
  if (row.index === index && row.height === height) return;
  row.index = index;
  row.height = height;
  setStyle(row.node, "transform", `translateY(${index * height}px)`);
  setAttribute(row.node, "aria-rowindex", String(index + 1));
}

const colours = { good: "good", uncertain: "warn", bad: "bad" };

function update(row, tag, line, nowMs) {
  row.tag = tag;
  setClass(row.quality, `dot ${colours[tag.quality] ?? "none"}`);
  setAttribute(row.quality, "aria-label", tag.quality ?? "no reading yet");
  setTitle(row.quality, tag.reason ?? tag.quality ?? "no reading yet");
  setText(row.input, tag.input);
  setTitle(row.input, tag.input);
  const trouble = tag.reason !== undefined && tag.quality !== "good";
  setText(row.address, trouble ? tag.reason : `${tag.source}  ${tag.address}`);
  setTitle(row.address, row.address.shown);
  setClass(row.address, trouble ? "address quiet trouble" : "address quiet");
  const unit = tag.unit ? ` ${tag.unit}` : "";
  const value = tag.value === undefined ? "–" : `${tag.text ?? format.value(tag.value)}${unit}`;
  setText(row.value, value);
  setClass(row.value, value.length > longValue ? "value long" : "value");
  setText(row.age, tag.time === undefined ? "" : format.age(Math.max(0, nowMs - tag.time / 1_000)));
  draw(row.plot, line);
}
