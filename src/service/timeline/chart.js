// The chart: uPlot for axes, grid and lines, an axis for each unit; above the lines a lane for each series of states.
import { drawLanes, lanesHeight } from "./lanes.js";
import { drawnColumns, pointAt, textOf } from "./series.js";
import { dotOf, element, numberText, numberTexts, timeText, timeTexts, whenText } from "./texts.js";

const reachPixels = 30;
const uPlot = globalThis.uPlot;

export class Chart {
  #root;
  #tip;
  #actions;
  #plot;
  #shape = "";
  #shown = [];
  #from = 0;
  #to = 0;
  #pointers = new Map();

  /** `actions.move(from, to)` is called when a person zooms or drags. */
  constructor(root, tip, actions) {
    this.#root = root;
    this.#tip = tip;
    this.#actions = actions;
    new ResizeObserver(() => this.#plot?.setSize(this.#size())).observe(root);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#rebuild());
    root.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    root.addEventListener("pointerdown", (event) => this.#down(event));
    root.addEventListener("pointermove", (event) => this.#moved(event));
    for (const end of ["pointerup", "pointercancel"]) root.addEventListener(end, (event) => this.#up(event));
    root.addEventListener("pointerleave", () => this.#hideTip());
  }

  /** `shown`: series with a `color` each. */
  show(shown, from, to) {
    this.#shown = shown;
    this.#from = from;
    this.#to = to;
    const shape = JSON.stringify(
      shown.map(({ id, kind, engUnit, width, color }) => [id, kind, engUnit, width > 0, color]),
    );
    if (shape !== this.#shape) {
      this.#shape = shape;
      this.#rebuild();
    } else this.#plot.setData(this.#data());
    this.#root.dataset.shown = String(shown.length);
  }

  #lines() {
    return this.#shown.filter(({ kind }) => kind !== "state");
  }

  #states = () => this.#shown.filter(({ kind }) => kind === "state");

  #data() {
    const tables = this.#lines().map((series) => {
      const [times, values, least, greatest] = drawnColumns(series, this.#from, this.#to);
      return series.width > 0 ? [times, values, greatest, least] : [times, values];
    });
    // uPlot takes nothing for a place without a value, and null for a gap.
    return tables.length > 0 ? uPlot.join(tables).map(wholeGaps) : [[this.#from, this.#to]];
  }

  #size() {
    return { width: this.#root.clientWidth, height: this.#root.clientHeight };
  }

  #rebuild() {
    this.#plot?.destroy();
    this.#plot = new uPlot(this.#options(), this.#data(), this.#root);
  }

  #options() {
    const { color: text, outlineColor: grid } = getComputedStyle(this.#root);
    const lines = this.#lines();
    const units = [...new Set(lines.map(({ engUnit }) => engUnit))];
    const series = [{}];
    const bands = [];
    for (const { engUnit, kind, width, color } of lines) {
      const paths = kind === "step" ? uPlot.paths.stepped({ align: 1 }) : uPlot.paths.linear();
      const line = {
        scale: `y ${engUnit}`,
        stroke: color,
        width: 1.5,
        paths,
        points: { filter: shownPoints, size: 4, ...(kind === "step" && { show: false }) },
      };
      series.push(line);
      if (width > 0) {
        const edge = { ...line, stroke: "transparent", width: 0, points: { show: false } };
        series.push(edge, { ...edge });
        bands.push({ series: [series.length - 2, series.length - 1], fill: `${color}33` });
      }
    }
    const small = this.#root.clientWidth < 500;
    const font = `${small ? 11 : 12}px system-ui, sans-serif`;
    const axis = {
      stroke: text,
      font,
      labelFont: font,
      grid: { stroke: grid, width: 1 },
      ticks: { stroke: grid, width: 1 },
    };
    // The values of the others are in the tip and the legend.
    const most = Math.max(2, Math.floor(this.#root.clientWidth / 160));
    const axisOf = (unit, i) => {
      const own = lines.filter(({ engUnit }) => engUnit === unit);
      return {
        ...axis,
        scale: `y ${unit}`,
        side: i % 2 === 0 ? 3 : 1,
        label: unit || undefined,
        labelSize: 18,
        show: i < most,
        values: (_u, splits) => numberTexts(splits),
        size: (_u, values) => 20 + (small ? 6.5 : 7.5) * Math.max(2, ...(values ?? []).map((value) => value.length)),
        stroke: own.length === 1 ? own[0].color : text,
        grid: { ...axis.grid, show: i === 0 },
      };
    };
    const flat = (_u, low, high) =>
      low === null
        ? [0, 1]
        : low === high
          ? [low - (Math.abs(low) || 1) * 0.1, high + (Math.abs(high) || 1) * 0.1]
          : uPlot.rangeNum(low, high, 0.1, false);
    return {
      ...this.#size(),
      ms: 1,
      legend: { show: false },
      padding: [lanesHeight(this.#states()) + 8, small ? 16 : 24, 0, units.length === 0 ? 16 : 0],
      cursor: {
        drag: { x: false, y: false },
        y: false,
        points: { show: (_u, i) => series[i].stroke !== "transparent" },
      },
      scales: {
        x: { time: true, range: () => [this.#from, this.#to] },
        ...Object.fromEntries(units.map((unit) => [`y ${unit}`, { range: flat }])),
      },
      axes: [{ ...axis, values: timeTexts, space: small ? 60 : 80 }, ...units.map(axisOf)],
      series,
      bands,
      hooks: {
        draw: [(u) => drawLanes(u, this.#states(), this.#from, this.#to, text)],
        setCursor: [(u) => this.#showTip(u)],
      },
    };
  }

  #showTip(u) {
    const { left, top } = u.cursor;
    if (left === undefined || left < 0 || this.#shown.length === 0 || this.#pointers.size > 1) return this.#hideTip();
    const time = u.posToVal(left, "x");
    const reach = (reachPixels / u.over.clientWidth) * (this.#to - this.#from);
    const rows = this.#shown.map((series) => tipRow(series, pointAt(series, time, reach), time));
    this.#tip.replaceChildren(element("strong", {}, whenText(time)), ...rows);
    this.#tip.hidden = false;
    const box = this.#root.getBoundingClientRect();
    const within = u.over.getBoundingClientRect();
    const x = within.left - box.left + left;
    const toLeft = x + this.#tip.offsetWidth + 24 > box.width;
    this.#tip.style.left = `${Math.max(0, toLeft ? x - this.#tip.offsetWidth - 12 : x + 12)}px`;
    // On a phone it would cover the plot, so it stands below.
    const below = this.#tip.offsetWidth * 2 > box.width;
    const beside = Math.max(0, Math.min(top, box.height - this.#tip.offsetHeight - 8));
    const wanted = below ? box.height + 4 : beside;
    // Long ones reach up into the plot rather than out of the window, if they fit at all.
    const lowest = innerHeight - box.top - this.#tip.offsetHeight - 4;
    this.#tip.style.top = `${lowest < 0 ? wanted : Math.min(wanted, lowest)}px`;
  }

  #hideTip() {
    this.#tip.hidden = true;
  }

  #timeAt(clientX) {
    const { left, width } = this.#plot.over.getBoundingClientRect();
    return this.#from + ((clientX - left) / width) * (this.#to - this.#from);
  }

  #wheel(event) {
    if (!this.#plot) return;
    event.preventDefault();
    const at = this.#timeAt(event.clientX);
    const factor = event.deltaY > 0 ? 1.25 : 0.8;
    this.#move(at - (at - this.#from) * factor, at + (this.#to - at) * factor);
  }

  #down(event) {
    if (!this.#plot || event.button > 0) return;
    this.#root.setPointerCapture(event.pointerId);
    this.#pointers.set(event.pointerId, event.clientX);
  }

  /** One pointer drags, two zoom: what was under them stays under them. */
  #moved(event) {
    if (!this.#pointers.has(event.pointerId)) return;
    const held = [...this.#pointers].map(([id, x]) => [this.#timeAt(x), id === event.pointerId ? event.clientX : x]);
    this.#pointers.set(event.pointerId, event.clientX);
    const { left, width } = this.#plot.over.getBoundingClientRect();
    const [[timeA, xA], [timeB, xB] = []] = held;
    const span = this.#to - this.#from;
    const perPixel = timeB === undefined || Math.abs(xB - xA) < 8 ? span / width : (timeB - timeA) / (xB - xA);
    if (!(perPixel > 0)) return;
    const from = timeA - (xA - left) * perPixel;
    this.#move(from, from + perPixel * width);
  }

  #up(event) {
    this.#pointers.delete(event.pointerId);
  }

  #move(from, to) {
    [this.#from, this.#to] = this.#actions.move(from, to);
    this.#plot.setData(this.#data());
  }
}

/** A gap ends with the next value of its own series: times of others in it do not end it. */
function wholeGaps(values) {
  let gap = false;
  return values.map((value) => {
    if (value !== undefined) gap = value === null;
    return value === undefined && gap ? null : value;
  });
}

/** Where points are few all of them, without those that only continue a line to the edge; else those without a neighbour. */
function shownPoints(u, i, few) {
  const [times] = u.data;
  const values = u.data[i];
  const { min, max } = u.scales.x;
  const known = [...values.keys()].filter((index) => values[index] !== undefined);
  const missing = (index) => index === undefined || values[index] === null;
  return known.filter(
    (index, k) =>
      values[index] !== null &&
      (few ? times[index] > min && times[index] < max : missing(known[k - 1]) && missing(known[k + 1])),
  );
}

function tipRow(series, point, pointed) {
  const hasRange = series.kind !== "state" && point?.min !== undefined && point.min !== point.max;
  const range = hasRange ? ` (${numberText(point.min)} to ${textOf(series, point.max)})` : "";
  const value = element("b", {}, point ? `${textOf(series, point.value)}${range}` : "no data");
  const time = element("small", {}, point ? timeText(point.time, pointed) : "");
  return element("div", {}, dotOf(series), element("bdi", {}, series.name), " ", value, " ", time);
}
