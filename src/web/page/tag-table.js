// The table of tags: search, filters, order and pages. Only the rows of the page exist and are asked for, so that ten
// thousand tags cost the same as ten.
import { byId, cells, element, keyed, setAttribute, setClass, setText, setTitle } from "./element.js";
import { showChoices, showRange } from "./figures.js";
import * as format from "./format.js";
import { words } from "./words.js";

/** Characters of a value that is written smaller, so that it leaves room for its name. */
const longValue = 17;
const stateFilters = {
  problem: "Not good",
  ...Object.fromEntries(Object.entries(words.quality).map(([k, { word }]) => [k, word])),
};
const defaults = { search: "", source: "", state: "", sort: "order" };

export class TagTable {
  #body;
  #fields = { search: byId("search"), source: byId("source-filter"), state: byId("state-filter"), sort: byId("sort") };
  #first = 0;
  #rows = matchMedia("(max-width: 760px)").matches ? 12 : 25;

  /** `onQuery` is called with a delay in milliseconds when other rows are wanted. */
  constructor(root, onQuery) {
    this.#body = root.tBodies[0];
    for (const [value, text] of Object.entries(stateFilters))
      this.#fields.state.append(element("option", { attributes: { value }, text }));
    this.#restore();
    for (const field of Object.values(this.#fields))
      field.addEventListener("input", () => {
        this.#first = 0;
        this.#remember();
        onQuery(field.type === "search" ? 150 : 0);
      });
    const turn = (pages) => {
      this.#first = Math.max(0, this.#first + pages * this.#rows);
      onQuery(0);
    };
    byId("before").addEventListener("click", () => turn(-1));
    byId("after").addEventListener("click", () => turn(1));
  }

  get query() {
    const { search, source, state, sort } = this.#fields;
    return {
      search: search.value,
      // The list of sources comes with the first view.
      source: source.value || (source.names === undefined ? (source.dataset.wanted ?? "") : ""),
      state: state.value,
      sort: sort.value,
      first: this.#first,
      count: this.#rows,
    };
  }

  show({ rows, first, matching, total }, sources, nowMs) {
    const names = sources.map(({ name }) => name);
    showChoices(this.#fields.source, names, this.query.source);
    this.#first = first;
    keyed(
      this.#body,
      rows,
      ({ source, tag, input }) => `${source} ${tag} ${input}`,
      createRow,
      (row, tag) => update(row, tag, nowMs),
    );
    showRange({ first, rows, matching, total }, "tag");
  }

  /** The filters are part of the address, so that a link leads to the same rows. */
  #remember() {
    const set = Object.entries(this.query).filter(
      ([key, value]) => defaults[key] !== undefined && value !== defaults[key],
    );
    const text = new URLSearchParams(set).toString();
    history.replaceState(undefined, "", text === "" ? location.pathname : `?${text}`);
  }

  #restore() {
    const given = new URLSearchParams(location.search);
    for (const [key, field] of Object.entries(this.#fields)) {
      const value = given.get(key) ?? defaults[key];
      if (key === "source") field.dataset.wanted = value;
      else field.value = value;
    }
    if (this.#fields.sort.value === "") this.#fields.sort.value = defaults.sort;
  }
}

function createRow() {
  const row = cells({
    input: "a.input",
    value: "td.value.number",
    age: "td.age.number.quiet",
    address: "td.address.quiet",
  });
  row.quality = element("span", { className: "dot note" });
  row.state = element("span");
  const name = element("th", { className: "name", attributes: { scope: "row", role: "rowheader" } }, row.input);
  const state = element("td", { className: "quality" }, row.quality, row.state);
  for (const cell of [row.value, row.age, state, row.address]) cell.setAttribute("role", "cell");
  const node = element(
    "tr",
    { className: "tag", attributes: { role: "row" } },
    name,
    row.value,
    row.age,
    state,
    row.address,
  );
  const made = { ...row, node };
  // Formatted for who looks at it, and not each second.
  for (const cell of [row.age, row.value])
    cell.addEventListener("pointerenter", () => {
      const { time, value } = made.tag;
      setTitle(row.age, time === undefined ? "" : format.time(time / 1_000));
      setTitle(row.value, value === undefined ? "" : String(value));
    });
  return made;
}

function update(row, tag, nowMs) {
  row.tag = tag;
  const { word, level } = words.quality[tag.quality ?? "none"];
  setClass(row.quality, `dot ${level}`);
  setText(row.state, word);
  setText(row.input, tag.input);
  setAttribute(row.input, "href", `tag?${new URLSearchParams({ source: tag.source, tag: tag.tag, input: tag.input })}`);
  const trouble = tag.reason !== undefined && tag.quality !== "good";
  const where = `${tag.source}  ${tag.address}`;
  setText(row.address, trouble ? tag.reason : where);
  setTitle(row.address, trouble ? `${where}: ${tag.reason}` : where);
  setClass(row.address, trouble ? "address trouble" : "address quiet");
  const unit = tag.unit ? ` ${tag.unit}` : "";
  const value = tag.value === undefined ? "–" : `${tag.text ?? format.value(tag.value)}${unit}`;
  setText(row.value, value);
  setClass(row.value, value.length > longValue ? "value number long" : "value number");
  setText(row.age, tag.time === undefined ? "" : format.age(Math.max(0, nowMs - tag.time / 1_000)));
}
