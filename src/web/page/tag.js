// One tag: its value, where it comes from and what became of the latest readings; a plot of minutes from the agent, of
// hours and days from the service.
import { Chart } from "./chart.js";
import { byId, cells, copyButton, element, keyed, setHidden, setLines, setText } from "./element.js";
import { pill } from "./figures.js";
import * as format from "./format.js";
import { showTagGaps } from "./gaps.js";
import { interruptionsOf, isMissing, withGaps } from "./plot-gaps.js";
import { Stream, showAgent } from "./stream.js";
import { words } from "./words.js";

const given = new URLSearchParams(location.search);
const asked = { source: given.get("source") ?? "", tag: given.get("tag") ?? "0", input: given.get("input") ?? "" };
const everyMs = 2_000;
const mostFormats = 4;
/** Values from the service are asked for again after this long. */
const seriesMs = 30_000;

const text = byId("text");
text.after(copyButton(() => text.textContent, "Copy YAML"));
setText(byId("tag-title"), asked.input);
let detail;
let span = "";
let unit = "";
let chart;
let seriesAt = Number.NEGATIVE_INFINITY;
/** Gaps of the tag whose values are missing, and the values from the service that are shown. */
let missing = [];
let series;

for (const button of byId("spans").children)
  button.addEventListener("click", () => {
    span = button.dataset.span;
    for (const other of byId("spans").children) other.setAttribute("aria-pressed", String(other === button));
    chart?.node.remove();
    chart = undefined;
    seriesAt = Number.NEGATIVE_INFINITY;
    series = undefined;
    void showPlot();
  });

async function refresh() {
  if (document.hidden) return;
  const response = await fetch(`api/tag?${new URLSearchParams(asked)}`);
  const answer = await response.json();
  if (!answer.found) {
    pill(byId("overall"), "this agent has no such tag", "warn");
    return;
  }
  detail = answer;
  show(answer);
  void showPlot();
}

function show({ status, stored, filtered, rules, latest, otherFormats = [], source, place, text: written }) {
  const { word, level } = words.quality[status.quality ?? "none"];
  pill(byId("overall"), word, level);
  unit = status.unit ? ` ${status.unit}` : "";
  setText(
    byId("tag-value"),
    status.value === undefined ? "no value" : `${status.text ?? format.value(status.value)}${unit}`,
  );
  const now = Date.now();
  setText(byId("tag-age"), status.time === undefined ? "" : `${format.age(Math.max(0, now - status.time / 1_000))}`);
  const trouble = status.reason ?? (source.error === undefined ? undefined : `${source.name}: ${source.error}`);
  setHidden(byId("tag-reason"), trouble === undefined);
  setText(byId("tag-reason"), trouble ?? "");
  showFacts([
    [
      "source",
      `${source.name}, ${source.type}${source.url === undefined ? "" : ` at ${source.url}`}, ${words.source[source.state].word}`,
    ],
    ["address", status.address || "not known yet"],
    ["raw value", latest[0]?.raw ?? "shown with the next reading"],
    ...(otherFormats.length > 0 ? [["in other formats", formatsOf(otherFormats)]] : []),
    ["rules", rules.join(", ")],
    ["readings", `${format.count(status.readings)}, of which ${format.count(status.failures)} without a usable value`],
    [
      "points stored",
      `${format.count(stored)}${filtered > 0 ? `, ${format.count(filtered)} readings held back by report` : ""}`,
    ],
    ...(source.remedy === undefined ? [] : [["what to do", source.remedy]]),
  ]);
  setText(
    byId("readings-note"),
    latest.length === 0 ? "recorded from now on, while this page is open" : "newest first",
  );
  keyed(
    byId("readings"),
    latest.map((reading, index) => ({ ...reading, index })),
    ({ index }) => index,
    createReading,
    (row, reading) => {
      setText(row.time, format.moment(reading.time / 1_000, now));
      setText(row.clock, reading.clock === "device" ? "device" : "agent");
      setText(row.raw, reading.raw === undefined ? "none" : reading.raw);
      setText(row.value, reading.value === undefined ? "–" : `${format.value(reading.value)}${unit}`);
      setText(row.quality, words.quality[reading.quality].word);
      setText(row.why, `${reading.stored ? "stored" : "not stored"}: ${reading.why}`);
    },
  );
  setText(byId("text-place"), place === undefined ? "not in the present configuration" : `${place.file}:${place.line}`);
  setLines(text, [written ?? ""]);
}

/** A wrong type or order is seen by what another one gives. */
function formatsOf(others) {
  const shown = others.slice(0, mostFormats).map(({ format: other, value }) => `${format.value(value)} as ${other}`);
  return shown.join("; ");
}

function createReading() {
  const row = cells({ time: "td", clock: "td", raw: "td", value: "td", quality: "td", why: "td" });
  return { ...row, node: element("tr", {}, ...Object.values(row)) };
}

function showFacts(facts) {
  keyed(
    byId("tag-facts"),
    facts,
    ([name]) => name,
    ([name]) => {
      const value = element("dd");
      return { node: element("div", {}, element("dt", { text: name }), value), value };
    },
    (row, [, value]) => setText(row.value, value),
  );
}

function chartOf(lines, holds) {
  const key = `${lines} ${holds}`;
  if (chart?.key === key) return chart;
  chart?.node.remove();
  chart = new Chart(asked.input, lines, (value) => `${format.value(Number(value.toPrecision(7)))}${unit}`, { holds });
  chart.key = key;
  byId("plot").append(chart.node);
  return chart;
}

async function showPlot() {
  if (span === "") {
    const { times, values } = detail?.history ?? { times: [], values: [] };
    setText(byId("plot-note"), "from the agent, every 5 s; drag to zoom, double-click to see all");
    if (detail) chartOf(["value"], false).show(times, values);
    return;
  }
  if (performance.now() - seriesAt < seriesMs) return;
  seriesAt = performance.now();
  const wanted = span;
  setText(byId("plot-note"), "asking the service, within the rate that delivery shares");
  const answer = await fetch(`api/series?${new URLSearchParams({ input: asked.input, since: span })}`)
    .then((response) => response.json())
    .catch(() => ({ ok: false, reason: "no answer from the agent" }));
  if (wanted !== span) return;
  if (!answer.ok) {
    setText(byId("plot-note"), `${answer.reason}${answer.remedy ? `: ${answer.remedy}` : ""}`);
    return;
  }
  const { times, bucketMs } = answer;
  const buckets = bucketMs === undefined ? "every value" : `mean, least and greatest of ${format.duration(bucketMs)}`;
  setText(
    byId("plot-note"),
    times.length === 0 ? "the service has no values of this time" : `from the service, ${buckets}`,
  );
  series = answer;
  showSeries();
}

function showSeries() {
  if (!series) return;
  const { times, values, min, max, holds } = series;
  const columns = min ? [times, values, min, max] : [times, values];
  const lines = min ? ["mean", "least", "greatest"] : ["value"];
  chartOf(lines, holds).show(...withGaps(columns, series, interruptionsOf(missing, Date.now())));
}

new Stream(
  () => ({ count: 0 }),
  ({ status }) => {
    showAgent(status, asked.input);
    const gaps = showTagGaps(status, asked).filter((gap) => isMissing(gap, asked));
    if (JSON.stringify(gaps) === JSON.stringify(missing)) return;
    missing = gaps;
    showSeries();
  },
);
const again = () => refresh().catch(() => {}); // the stream says that the agent does not answer
void again();
setInterval(again, everyMs);
