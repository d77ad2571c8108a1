// A plot with axes, hover and zoom, by uPlot.
import { element, setText } from "./element.js";
import * as format from "./format.js";

const { uPlot } = globalThis;
const height = 190;

export class Chart {
  node;
  #options;
  #box = element("div", { className: "plot", attributes: { role: "img" } });
  #now = element("span", { className: "strong" });
  #plot;
  #data = [[], []];

  /**
   * `lines`: the name of each line, the first one drawn as an area. `text`: a value as text. `zero`: the axis begins at
   * 0; `top`: where it ends; `holds`: a value holds until the next one; `steps`: distances of the lines of the axis.
   */
  constructor(title, lines, text, { zero = false, top, holds = false, steps } = {}) {
    this.#options = { lines, text, zero, top, holds, steps };
    const head = element(
      "p",
      { className: "plot-head" },
      element("span", { className: "quiet", text: title }),
      this.#now,
    );
    this.node = element("div", { className: "chart" }, head, this.#box);
    this.title = title;
    new ResizeObserver(() => this.#plot?.setSize(this.#size())).observe(this.#box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#build());
  }

  /** `times` in milliseconds, ascending; `columns`: the values of each line, null where there is none. */
  show(times, ...columns) {
    this.#data = [times, ...columns];
    const known = (columns[0] ?? []).filter((value) => value !== null && value !== undefined);
    const { text } = this.#options;
    setText(this.#now, known.length === 0 ? "no value" : text(known.at(-1)));
    const range = known.length === 0 ? "no value" : `from ${text(min(known))} to ${text(max(known))}`;
    this.#box.setAttribute("aria-label", `${this.title}: ${range}`);
    // A zoom stays while values come.
    if (this.#plot) this.#plot.setData(this.#data, !this.#isZoomed());
    else this.#build();
  }

  #isZoomed() {
    const { min: from, max: to } = this.#plot.scales.x;
    const [times] = this.#plot.data;
    return times.length > 1 && (from > times[0] || to < times.at(-1));
  }

  #size() {
    return { width: Math.max(200, this.#box.clientWidth), height };
  }

  #build() {
    this.#plot?.destroy();
    const { lines, text, zero, top, holds, steps } = this.#options;
    const style = getComputedStyle(document.body);
    const colour = (name) => style.getPropertyValue(name).trim();
    const axis = {
      stroke: colour("--quiet"),
      font: "12px system-ui, sans-serif",
      grid: { stroke: colour("--edge"), width: 1 },
      ticks: { stroke: colour("--edge"), width: 1 },
    };
    const strokes = [colour("--accent"), colour("--quiet"), colour("--quiet")];
    const range = (_u, low, high) => {
      if (low === null) return [0, top ?? 1];
      const [from, to] = [zero ? Math.min(0, low) : low, Math.max(high, top ?? high)];
      // An axis needs two different numbers: 6e22 + 1 is 6e22.
      const margin = Math.max(1, Math.abs(to) * 1e-4);
      const isFlat = to - from <= Math.abs(to) * 1e-12;
      return isFlat ? [from - (zero ? 0 : margin), to + margin] : uPlot.rangeNum(from, to, 0.1, zero);
    };
    this.#plot = new uPlot(
      {
        ...this.#size(),
        ms: 1,
        cursor: { y: false, drag: { x: true, y: false } },
        legend: { live: true },
        scales: { x: { time: true }, y: { range } },
        axes: [
          {
            ...axis,
            space: 84,
            values: (_u, splits) => splits.map((ms, i) => clock(ms, splits[i - 1], splits[1] - splits[0])),
          },
          {
            ...axis,
            size: (_u, labels) => widthOf(labels),
            ...(steps && { incrs: steps }),
            values: (_u, splits) => splits.map((value) => text(value)),
          },
        ],
        series: [
          { label: "time", value: (_u, ms) => (ms === null ? "–" : format.time(ms)) },
          ...lines.map((label, i) => ({
            label,
            stroke: strokes[i],
            width: 1.5,
            ...(i === 0 && zero && { fill: `color-mix(in srgb, ${strokes[0]} 14%, transparent)` }),
            value: (_u, value) => (value === null || value === undefined ? "–" : text(value)),
            ...(holds && { paths: uPlot.paths.stepped({ align: 1 }) }),
            // A value between two gaps has no line.
            points: { show: false, size: 4, fill: strokes[i], filter: lonely },
          })),
        ],
      },
      this.#data,
      this.#box,
    );
  }
}

/** Indices of the values without a neighbour. */
function lonely(u, series) {
  const values = u.data[series];
  const isNone = (value) => value === null || value === undefined;
  return values.flatMap((value, i) => (!isNone(value) && isNone(values[i - 1]) && isNone(values[i + 1]) ? [i] : []));
}

/** Width of the axis of values: `1.5e+31 °C` needs more than `20 V`. */
function widthOf(labels) {
  const longest = (labels ?? []).reduce((most, label) => Math.max(most, label.length), 0);
  return Math.min(200, Math.max(74, 22 + longest * 7));
}

const times = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const seconds = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const days = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** A time on an axis with this step, as its day where that is another one than that of the time before. */
function clock(ms, before, step) {
  const date = new Date(ms);
  const isNewDay = before !== undefined && new Date(before).toDateString() !== date.toDateString();
  if (isNewDay || step >= 86_400_000) return days.format(date);
  return step < 60_000 ? seconds.format(date) : times.format(date);
}

function min(values) {
  return values.reduce((least, value) => Math.min(least, value), Number.POSITIVE_INFINITY);
}

function max(values) {
  return values.reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY);
}
