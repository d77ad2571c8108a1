// Small plots of the last 15 minutes, as one SVG path each.
import { duration } from "./format.js";

const spanMs = 15 * 60_000;
/** One point per step is kept, and the newest moves: 15 minutes are 180 points however often values come. */
const stepMs = 5_000;
const width = 300;
const height = 60;

/** Times and values of one line, the newest last. */
export class Line {
  times = [];
  values = [];
  /** Another one when the line has become another one for the eye: the newest point moves by less than a dot. */
  revision = 0;
  #rates;

  /** Starts over with what the agent remembers. */
  load(times, values) {
    this.times = [...times].slice(times.length - values.length);
    this.values = [...values];
    this.revision++;
  }

  push(time, value) {
    const { times, values } = this;
    const last = times.length - 1;
    if (last >= 0 && time <= times[last]) return;
    if (last > 0 && time - times[last - 1] < stepMs) {
      times[last] = time;
      values[last] = value;
    } else {
      times.push(time);
      values.push(value);
      this.revision++;
    }
    while (times.length > 0 && times[0] < time - spanMs) {
      times.shift();
      values.shift();
    }
  }

  /** For people: how far back it goes. */
  get span() {
    const ms = (this.times.at(-1) ?? 0) - (this.times[0] ?? 0);
    return ms < 60_000 ? "last minute" : `last ${duration(Math.round(ms / 60_000) * 60_000)}`;
  }

  /** The same line as differences a second, for counters. */
  get rates() {
    if (this.#rates?.revision === this.revision) return this.#rates;
    const line = new Line();
    for (let i = 1; i < this.times.length; i++) {
      const [a, b] = [this.values[i - 1], this.values[i]];
      line.times.push(this.times[i]);
      line.values.push(
        a === null || b === null || b < a ? null : ((b - a) / (this.times[i] - this.times[i - 1])) * 1e3,
      );
    }
    line.revision = this.revision;
    this.#rates = line;
    return line;
  }
}

/**
 * Draws `line` into `svg`, which holds one path for the line and one for the area below it, if it is to have one. What
 * stands there already is not drawn again: painting is what the page costs.
 */
export function draw(svg, line, { area = false, zero = false, top } = {}) {
  if (svg.revision === line.revision) return;
  svg.revision = line.revision;
  if (!svg.firstChild) svg.append(...(area ? [svgElement("path", "area")] : []), svgElement("path", "line"));
  const { times, values } = line;
  const known = values.filter((value) => value !== null && value !== undefined);
  const low = Math.min(...(zero ? [0] : []), ...known);
  const high = Math.max(...(top === undefined ? (zero ? [0] : []) : [top]), ...known);
  const first = times[0] ?? 0;
  const span = Math.max(1, (times.at(-1) ?? 0) - first);
  // A constant lies in the middle, or on the ground where zero is one.
  const range = high - low;
  const y = (value) =>
    range > 0 ? height - 3 - ((value - low) / range) * (height - 6) : zero ? height - 3 : height / 2;
  let text = "";
  let fill = "";
  let from = 0;
  let pen = "M";
  for (let i = 0; i < times.length; i++) {
    const value = values[i];
    if (value === null || value === undefined) {
      if (pen === "L") fill += `L${from} ${height}`;
      pen = "M";
      continue;
    }
    const x = (((times[i] - first) / span) * width).toFixed(1);
    const point = `${x} ${y(value).toFixed(1)}`;
    if (pen === "M") fill += `M${x} ${height}L${point}`;
    else fill += `L${point}`;
    text += pen + point;
    from = x;
    pen = "L";
  }
  if (pen === "L") fill += `L${from} ${height}Z`;
  if (area) svg.firstChild.setAttribute("d", fill);
  svg.lastChild.setAttribute("d", text);
}

/** What `draw` draws into. */
export function plotNode() {
  const node = svgElement("svg", "plot");
  node.setAttribute("aria-hidden", "true");
  node.setAttribute("viewBox", `0 0 ${width} ${height}`);
  node.setAttribute("preserveAspectRatio", "none");
  return node;
}

function svgElement(name, className) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  node.setAttribute("class", className);
  return node;
}
