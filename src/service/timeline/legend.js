// The table below the chart: what each series is, and its last, least, greatest and mean value in the window.
import { summaryOf, textOf } from "./series.js";
import { dotOf, element, whenText } from "./texts.js";

/** `remove(id)` takes a series off the chart. */
export function showLegend(body, shown, from, to, remove) {
  body.replaceChildren(...shown.map((series) => rowOf(series, from, to, remove)));
}

function rowOf(series, from, to, remove) {
  const off = element("button", { type: "button", ariaLabel: `Remove ${series.name}` }, "×");
  off.addEventListener("click", () => remove(series.id));
  const steps = series.kind === "step" ? [element("small", {}, "steps")] : [];
  const name = element("th", { scope: "row" }, off, dotOf(series), element("bdi", {}, series.name), ...steps);
  const summary = summaryOf(series, from, to);
  // Without a value in the window, the one that holds since before it.
  const last = series.last ?? series.points.findLast(({ time }) => time < from);
  const lastCell = last
    ? cell("last", textOf(series, last.value), element("small", {}, whenText(last.time)))
    : cell("last", "no data");
  const numbers = ["min", "max", "avg"].map((key) =>
    cell(key, Number.isFinite(summary?.[key]) ? textOf(series, summary[key]) : "–"),
  );
  return element("tr", {}, name, lastCell, ...numbers);
}

function cell(label, ...content) {
  const node = element("td", {}, ...content);
  node.dataset.label = label;
  return node;
}
