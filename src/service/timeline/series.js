// What is plotted: the values of items over a window, and what is drawn between them.
//
// A line connects its points unless they are further apart than the item's `gapDetection`. An item that has neither a
// sample interval nor gap detection holds its value until the next point, as a setpoint does: it is drawn in steps. So are
// states (type enum). What held before the window is carried into it.

import { numberText } from "./texts.js";

/** Widths of buckets people know, in seconds. */
const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 604800];
/** As many as the service answers at once. */
export const maxItems = 50;

/** Seconds of a bucket so that there are about as many as pixels; undefined where the points themselves are few enough. */
export function bucketSeconds(fromMs, toMs, pixels) {
  const wanted = (toMs - fromMs) / 1000 / pixels;
  if (wanted < 0.5) return undefined;
  return steps.find((step) => step >= wanted) ?? steps.at(-1);
}

/** Milliseconds of an RFC 3339 duration as the service answers it: hours, minutes and seconds. */
function durationMs(text) {
  const [, hours = 0, minutes = 0, seconds = 0] = /^PT(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?$/.exec(text ?? "") ?? [];
  return text === null || text === undefined ? Infinity : hours * 3_600_000 + minutes * 60_000 + seconds * 1_000;
}

/**
 * Resolves with a series for each item that is there: `points` by time, with the nearest ones on either side of the
 * window, each { time, value } and with a rollup { count, sum, min, max }; `width` of their buckets in ms.
 */
export async function readSeries(rpc, ids, from, to, seconds) {
  if (ids.length === 0) return [];
  const filter = { id: { $in: ids } };
  const notBefore = new Date(from).toISOString();
  const before = new Date(to).toISOString();
  const rollup = seconds === undefined ? null : `PT${seconds}S`;
  const data = { include: true, notBefore, before, rollup, outsidePoints: true };
  const { items, data: frame } = await rpc.call("platform.selectItems", {
    items: { include: true, filter, limit: maxItems },
    data,
  });
  const found = ids.flatMap((id) => (items[id] ? [{ id, ...items[id] }] : []));
  const states = seconds === undefined ? [] : found.filter(({ type }) => type === "enum");
  const [lasts, held, stateFrame] = await Promise.all([
    seconds === undefined ? undefined : readLast(rpc, filter, to),
    states.length === 0 ? undefined : readLast(rpc, { id: { $in: states.map(({ id }) => id) } }, from),
    states.length === 0 ? undefined : readStates(rpc, states, { notBefore, before, rollup }),
  ]);
  return found.map((item) => {
    const width = (seconds ?? 0) * 1_000;
    const kind =
      item.type === "enum" ? "state" : item.gapDetection === null && item.sampleInterval === null ? "step" : "line";
    const points =
      kind === "state" && stateFrame
        ? [
            ...lastOf(held, item.id, true).map((point) => ({ ...point, held: true })),
            ...pointsOf(stateFrame, item.id, true, true),
          ]
        : pointsOf(frame, item.id, width > 0, kind === "state");
    const known = lasts ? lastOf(lasts, item.id) : points;
    const last = known.findLast(({ time }) => inside(time, from, to));
    return { ...item, kind, width, gap: durationMs(item.gapDetection), points, last };
  });
}

/** The last point of each item before a time, however long before: what lies outside of a window of a millisecond. */
async function readLast(rpc, filter, time) {
  const [notBefore, before] = [time - 1, time].map((ms) => new Date(ms).toISOString());
  const data = { include: true, notBefore, before, outsidePoints: true };
  const answer = await rpc.call("platform.selectItems", { items: { filter, limit: maxItems }, data });
  return { ...answer.data, before: time };
}

/** What `readLast` found of an item. */
function lastOf(frame, id, isState) {
  return pointsOf(frame, id, false, isState)
    .filter(({ time }) => time < frame.before)
    .slice(-1);
}

/** The last state of each bucket, with the least and the greatest so that buckets with several are known as such. */
async function readStates(rpc, items, { notBefore, before, rollup }) {
  const aliases = new Map();
  const list = items.flatMap(({ id }, i) =>
    ["last", "min", "max"].map((aggregation) => {
      const alias = `${aggregation}${i}`;
      aliases.set(alias, `${id}_${aggregation === "last" ? "avg" : aggregation}`);
      return { id, alias, aggregation };
    }),
  );
  const { data } = await rpc.call(
    "platform.evaluate",
    {
      items: list,
      data: { filter: { times: { $gte: notBefore, $lt: before } }, rollup },
      format: { dataAsArray: false },
    },
    "1.1",
  );
  const series = Object.entries(data.series).map(([alias, values]) => [aliases.get(alias), values]);
  return { times: data.times, series: Object.fromEntries(series) };
}

function pointsOf({ times, series }, id, rolled, states) {
  const values = series[rolled ? `${id}_avg` : id] ?? [];
  const column = (name) => (rolled ? (series[`${id}_${name}`] ?? []) : []);
  const [counts, sums, least, greatest] = ["count", "sum", "min", "max"].map(column);
  return values.flatMap((value, i) => {
    if (value === null) return [];
    const point = { time: Date.parse(times[i]), value: states ? Math.round(value) : value };
    return [rolled ? { ...point, count: counts[i], sum: sums[i], min: least[i], max: greatest[i] } : point];
  });
}

function inside(time, from, to) {
  return time >= from && time < to;
}

/** Points of the window itself; a bucket that begins before it belongs to it. */
export function pointsInside({ points, width }, from, to) {
  return points.filter(({ time, held }) => !held && time < to && (width > 0 ? time + width > from : time >= from));
}

/** Until when what a point says is known: to the next point, at most as long as gap detection allows, not beyond now. */
function holdsUntil({ gap, width }, point, next) {
  return Math.min(next?.time ?? Infinity, point.time + width + gap, Math.max(Date.now(), point.time + width));
}

function isGap({ gap, width }, a, b) {
  return b.time - a.time - width > gap;
}

/**
 * What is drawn of a numeric series: [times, values, least, greatest] in the window, cut and continued at its edges. A
 * null is a gap.
 */
export function drawnColumns(series, from, to) {
  const rows = [];
  const put = (time, { value, min = value, max = value }) => rows.push([time, value, min, max]);
  for (const [i, point] of series.points.entries()) {
    const next = series.points[i + 1];
    if (inside(point.time, from, to)) put(point.time, point);
    if (series.kind === "step") {
      const end = holdsUntil(series, point, next);
      if (point.time < from && end > from) put(from, point);
      if (end !== next?.time || end > to) if (end > from) put(Math.min(end, to), point);
      if (next && end < next.time) rows.push([end + 1, null, null, null]);
    } else if (next && !isGap(series, point, next)) {
      if (point.time < from && next.time > from) put(from, between(point, next, from));
      if (point.time < to && next.time >= to) put(to, between(point, next, to));
    } else if (next) rows.push([point.time + 1, null, null, null]);
  }
  const kept = rows.filter(([time], i) => time >= from && time <= to && time !== rows[i - 1]?.[0]);
  return [0, 1, 2, 3].map((column) => kept.map((row) => row[column]));
}

function between(a, b, time) {
  const share = (time - a.time) / (b.time - a.time);
  const mixed = (name) => a[name] + (b[name] - a[name]) * share;
  return { value: mixed("value"), ...(a.min !== undefined && { min: mixed("min"), max: mixed("max") }) };
}

/** Whether anything of a series is drawn in the window. */
export function isDrawn(series, from, to) {
  return (series.kind === "state" ? stateBands(series, from, to) : drawnColumns(series, from, to)[0]).length > 0;
}

/** The states of a series in the window: { from, to, state, mixed } where `mixed` says that there were several. */
export function stateBands(series, from, to) {
  const bands = [];
  for (const [i, point] of series.points.entries()) {
    const next = series.points[i + 1];
    const mixed = point.min !== point.max;
    // A bucket with several states is one band, and its last state goes on behind it.
    const change = mixed ? point.time + series.width : point.time;
    if (mixed) bands.push({ from: point.time, to: change, state: point.value, mixed: true });
    bands.push({ from: change, to: holdsUntil(series, point, next), state: point.value, mixed: false });
  }
  const cut = bands
    .map((band) => ({ ...band, from: Math.max(band.from, from), to: Math.min(band.to, to) }))
    .filter((band) => band.to > band.from);
  const joined = [];
  for (const band of cut) {
    const before = joined.at(-1);
    if (before && before.to === band.from && before.state === band.state && before.mixed === band.mixed)
      before.to = band.to;
    else joined.push(band);
  }
  return joined;
}

/** The point that says what held at a time: in steps the last one before it, on lines the nearest one. */
export function pointAt(series, time, reachMs) {
  const { points } = series;
  let i = points.findLastIndex((point) => point.time <= time);
  if (series.kind === "line") {
    const [a, b] = [points[i], points[i + 1]];
    if (b && (!a || b.time - time < time - a.time)) i++;
    const near = points[i] && Math.max(0, Math.abs(points[i].time + series.width / 2 - time) - series.width / 2);
    const connected = a && b && !isGap(series, a, b);
    return near <= reachMs || connected ? points[i] : undefined;
  }
  const point = points[i];
  return point && time <= holdsUntil(series, point, points[i + 1]) ? point : undefined;
}

/** A value with its unit, or the text of a state. */
export function textOf(series, value) {
  if (series.kind === "state") return series.enumValues[Math.round(value)] ?? String(Math.round(value));
  return series.engUnit ? `${numberText(value)} ${series.engUnit}` : numberText(value);
}

/**
 * Least, greatest and mean in the window. The mean of a line is that of its points; of steps, which hold from point to
 * point, it is that over time, with what holds since before the window.
 */
export function summaryOf(series, from, to) {
  if (series.kind === "state") return undefined;
  const weighted = series.points.flatMap((point, i) => {
    if (series.kind === "line") return [];
    const weight = Math.min(holdsUntil(series, point, series.points[i + 1]), to) - Math.max(point.time, from);
    return weight > 0 ? [[point, point.value * weight, weight]] : [];
  });
  const counted = pointsInside(series, from, to).map((point) => [point, point.sum ?? point.value, point.count ?? 1]);
  const parts = series.kind === "step" ? weighted : counted;
  if (parts.length === 0) return undefined;
  let [min, max, sum, total] = [Infinity, -Infinity, 0, 0];
  for (const [point, amount, weight] of parts) {
    min = Math.min(min, point.min ?? point.value);
    max = Math.max(max, point.max ?? point.value);
    sum += amount;
    total += weight;
  }
  return { min, max, avg: sum / total };
}
