// The plot: one line for each item, and with a rollup the band from its least to its greatest value. Each has a scale of its own.

const width = 800;
const height = 360;
const margin = 12;
const svgNamespace = "http://www.w3.org/2000/svg";
/** Widths of buckets people know, in seconds. */
const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 604800];

/** Seconds of a bucket so that there are about as many as pixels; undefined where the points themselves are few enough. */
export function bucketSeconds(fromMs, toMs) {
  const wanted = (toMs - fromMs) / 1000 / width;
  if (wanted < 0.5) return undefined;
  return steps.find((step) => step >= wanted) ?? steps.at(-1);
}

/** `series`: colour, and points as [ms, value, least, greatest]. */
export function draw(svg, fromMs, toMs, series) {
  svg.replaceChildren(...series.flatMap(({ color, points }) => lineOf(color, points, fromMs, toMs)));
}

function lineOf(color, points, fromMs, toMs) {
  if (points.length === 0) return [];
  const low = Math.min(...points.map(([, value, least]) => least ?? value));
  const high = Math.max(...points.map(([, value, , greatest]) => greatest ?? value));
  const x = (ms) => (((ms - fromMs) / (toMs - fromMs)) * width).toFixed(1);
  const y = (value) =>
    (high === low ? height / 2 : height - margin - ((value - low) / (high - low)) * (height - 2 * margin)).toFixed(1);
  const line = points.map(([ms, value], i) => `${i === 0 ? "M" : "L"}${x(ms)} ${y(value)}`).join("");
  // A point alone would not show.
  const paths = [path("line", color, points.length === 1 ? `${line}h1` : line)];
  if (points[0][2] !== undefined) {
    const upper = points.map(([ms, , , greatest], i) => `${i === 0 ? "M" : "L"}${x(ms)} ${y(greatest)}`).join("");
    const lower = points
      .toReversed()
      .map(([ms, , least]) => `L${x(ms)} ${y(least)}`)
      .join("");
    paths.unshift(path("band", color, `${upper}${lower}Z`));
  }
  return paths;
}

function path(className, color, d) {
  const node = document.createElementNS(svgNamespace, "path");
  node.setAttribute("class", className);
  node.style.color = color;
  node.setAttribute("d", d);
  return node;
}
