// The table below the chart: what each series is, and its last, least, greatest and mean value in the window.
import { summaryOf, textOf } from "./series.js";
import { nameElement, whenText } from "./texts.js";

/** `remove(id)` takes a series off the chart. */
export function showLegend(body, shown, from, to, remove) {
  body.replaceChildren(...shown.map((series) => rowOf(series, from, to, remove)));
}

function rowOf(series, from, to, remove) {
  const row = document.createElement("tr");
  const name = document.createElement("th");
  name.scope = "row";
  const dot = document.createElement("span");
  dot.className = "dot";
  dot.style.background = series.color;
  const off = document.createElement("button");
  off.type = "button";
  off.textContent = "×";
  off.setAttribute("aria-label", `Remove ${series.name}`);
  off.addEventListener("click", () => remove(series.id));
  name.append(off, dot, nameElement(series.name));
  if (series.kind === "step") name.append(small("steps"));
  const { last } = series;
  const summary = summaryOf(series, from, to);
  const held = series.points.findLast(({ time }) => time < from);
  const lastCell = cell("last", last ? textOf(series, last.value) : held ? textOf(series, held.value) : "no data");
  const at = last ?? held;
  if (at) lastCell.append(small(whenText(at.time)));
  const numbers = ["min", "max", "avg"].map((key) =>
    cell(key, Number.isFinite(summary?.[key]) ? textOf(series, summary[key]) : "–"),
  );
  row.append(name, lastCell, ...numbers);
  return row;
}

function cell(label, text) {
  const element = document.createElement("td");
  element.dataset.label = label;
  element.append(text);
  return element;
}

function small(text) {
  const element = document.createElement("small");
  element.textContent = text;
  return element;
}
