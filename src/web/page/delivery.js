// Delivery and buffer: what waits, how late it is, when it is caught up or full, and what the service refuses.
import { Chart } from "./chart.js";
import { showCluster } from "./cluster.js";
import { byId, setClass, setText } from "./element.js";
import { Lookup, pill, showFigures, showTrouble } from "./figures.js";
import * as format from "./format.js";
import { showRefused } from "./refused.js";
import { Stream, showAgent } from "./stream.js";
import { words } from "./words.js";

/** The agent keeps a sample of the figures every five seconds. */
const sampleMs = 5_000;
const whole = (number) => format.count(Math.round(number));
/** Round numbers, lengths of time in milliseconds, and sizes in bytes, for lines of an axis whose labels are exact. */
const numbers = Array.from({ length: 15 }, (_, i) => [1, 2, 5].map((n) => n * 10 ** i)).flat();
const lengths = [1, 2, 5, 10, 20, 50, 100, 200, 500].concat(
  [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200].map((s) => s * 1_000),
  [1, 2, 5, 10, 20, 50].map((days) => days * 86_400_000),
);
const sizes = Array.from({ length: 50 }, (_, i) => 2 ** i);
const charts = {
  lagMs: new Chart("Lag", ["lag"], format.duration, { zero: true, steps: lengths }),
  backlogPoints: new Chart("Points waiting", ["points"], whole, { zero: true, steps: numbers }),
  sentPoints: new Chart("Points delivered a second", ["points/s"], format.rate, {
    zero: true,
    steps: [0.1, 0.2, 0.5, ...numbers],
  }),
  bufferBytes: new Chart("Buffer on disk", ["size"], format.bytes, { zero: true, steps: sizes }),
  budgetShare: new Chart("Permitted requests used", ["share"], format.percent, { zero: true, top: 1 }),
};
byId("plots").append(...Object.values(charts).map(({ node }) => node));

const past = new Lookup("api/history", sampleMs);

function showPlots(now) {
  void past.refresh(Math.floor(now / sampleMs), () => {
    const { times, figures } = past.answer;
    for (const [name, chart] of Object.entries(charts)) {
      const values = figures[name] ?? [];
      const own = times.slice(times.length - values.length);
      chart.show(own, name === "sentPoints" ? rates(own, values) : values);
    }
  });
}

/** A counter as differences a second. */
function rates(times, values) {
  return values.map((value, i) => {
    const before = values[i - 1];
    if (value === null || before === null || before === undefined || value < before) return null;
    return ((value - before) / (times[i] - times[i - 1])) * 1_000;
  });
}

function showUpload(upload) {
  const { word, level } = words.delivery[upload.state];
  pill(byId("upload-state"), word, level);
  setText(byId("upload-where"), `${upload.integration} at ${upload.url}`);
  showTrouble(byId("upload-error"), upload.error, upload.remedy);
  showFigures(byId("upload-figures"), [
    ["lag", upload.lagMs === undefined ? "–" : format.duration(upload.lagMs)],
    ["of the permitted requests used", format.percent(upload.budgetShare), upload.budgetShare],
    ["points a request", whole(upload.pointsPerRequest)],
    ["a request", format.bytes(upload.bytesPerRequest)],
    ["requests since the start", format.count(upload.requests)],
    ["points delivered since the start", format.count(upload.points)],
  ]);
}

function showBuffer(buffer, upload, now) {
  const { degraded, oldest, losses } = buffer;
  const isDurable = degraded === undefined;
  pill(byId("buffer-state"), isDurable ? "points are stored" : "points cannot be stored", isDurable ? "good" : "bad");
  const waits =
    oldest === undefined ? "Nothing waits" : `The oldest point waits for ${format.since(now - oldest / 1_000)}`;
  setText(byId("buffer-where"), `${waits}${forecast(upload.backlog, now)}.`);
  showTrouble(
    byId("buffer-error"),
    degraded,
    "free disk space or repair the disk; nothing more is acknowledged until then",
  );
  const lost = losses.reduce((sum, { points }) => sum + points, 0);
  const share = buffer.maxBytes > 0 ? buffer.bytes / buffer.maxBytes : 0;
  showFigures(byId("buffer-figures"), [
    ["points waiting", format.count(buffer.unsettledPoints)],
    // The line above has the forecast.
    ["backlog", upload.backlog.text.split(";")[0]],
    [`on disk, of ${format.bytes(buffer.maxBytes)}`, format.bytes(buffer.bytes), share],
    ["points stored", format.count(buffer.appendedPoints)],
    ["points that replaced another of their time", format.count(buffer.collidedPoints)],
    ["points lost", format.count(lost)],
  ]);
}

/** From the rates of the last minute. */
function forecast({ drainMs, fullMs }, now) {
  if (drainMs !== undefined && drainMs >= 60_000) return `; caught up at ${format.minute(now + drainMs, now)}`;
  return fullMs === undefined
    ? ""
    : `; the buffer is full in ${format.since(fullMs)}, at ${format.minute(now + fullMs, now)}`;
}

new Stream(
  () => ({ count: 0 }),
  ({ status }) => {
    const now = status.time / 1_000;
    const { level, text, detail } = status.overall.delivering;
    showAgent(status, "Delivery");
    setText(byId("overall"), `${text.charAt(0).toUpperCase()}${text.slice(1)}, ${detail}.`);
    setClass(byId("overall"), `headline ${level}`);
    showUpload(status.upload);
    showBuffer(status.buffer, status.upload, now);
    showCluster(status.cluster);
    showRefused(status);
    showPlots(now);
  },
);
