// What is shown as a file for spreadsheets: a row for each time, a column for each series, with a rollup three.
import { pointsInside } from "./series.js";

/** A cell; a text that a spreadsheet would take for a formula gets an apostrophe. */
function cell(text) {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function csvOf(shown, from, to) {
  const columns = shown.flatMap((series) => {
    const points = new Map(pointsInside(series, from, to).map((point) => [point.time, point]));
    const title = series.engUnit ? `${series.name} [${series.engUnit}]` : series.name;
    if (series.kind === "state") {
      const text = ({ value }) => cell(series.enumValues[value] ?? String(value));
      return [{ title, points, text }];
    }
    const of = (name) => (point) => String(point[name]);
    const plain = { title, points, text: of("value") };
    return series.width === 0
      ? [plain]
      : [
          { ...plain, title: `${title} avg` },
          { title: `${title} min`, points, text: of("min") },
          { title: `${title} max`, points, text: of("max") },
        ];
  });
  const times = [...new Set(columns.flatMap(({ points }) => [...points.keys()]))].sort((a, b) => a - b);
  const rows = times.map((time) => [
    new Date(time).toISOString(),
    ...columns.map(({ points, text }) => (points.has(time) ? text(points.get(time)) : "")),
  ]);
  return [["time", ...columns.map(({ title }) => cell(title))], ...rows].map((row) => `${row.join(",")}\r\n`).join("");
}

export function download(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
