// Points that the service refused for good, by its reasons.
import { byId, cells, element, plain, setHidden, setText } from "./element.js";
import { Lookup, listRow, pill, ShortList, showFigures } from "./figures.js";
import * as format from "./format.js";

const asked = new Lookup("api/rejects", 5_000);
const list = new ShortList(byId("refused"), 4);

export function showRefused(status) {
  const { upload, buffer } = status;
  // A command beside the agent drops them without a word to it: once a minute they are looked at anyway.
  const minute = Math.floor(status.time / 60e6);
  void asked.refresh(`${upload.refusedPoints} ${buffer.refusedPoints} ${minute}`, () => showRefused(status));
  const { points = 0, reasons = [], commands } = asked.answer ?? {};
  const ever = Math.max(buffer.refusedPoints, upload.refusedPoints, points);
  pill(byId("refused-state"), ever === 0 ? "none" : `${format.count(ever)} refused`, ever === 0 ? "good" : "warn");
  showFigures(byId("refused-figures"), [
    ["since the start", format.count(upload.refusedPoints)],
    ["ever", format.count(ever)],
  ]);
  setText(
    byId("refused-note"),
    asked.answer === undefined && ever > 0
      ? ""
      : points === 0
        ? ever === 0
          ? "The service has taken every point."
          : "None is kept any more: they were sent again or dropped."
        : `Reasons of the latest ${format.count(points)}. Correct what they name, then stop the agent and send them again: `,
  );
  setText(byId("refused-command"), points === 0 ? "" : (commands?.retry ?? ""));
  setHidden(byId("refused-command"), points === 0);
  list.show(reasons, ({ code, reason }) => `${code} ${reason}`, create, update);
}

function create() {
  const row = cells({ points: "span.strong", reason: "bdi", inputs: "bdi.quiet" });
  const node = listRow("reason row", [row.points, element("div", { className: "who" }, row.reason, row.inputs)]);
  return { ...row, node };
}

function update(row, { points, code, reason, inputs, moreInputs }) {
  setText(row.points, format.count(points));
  setText(row.reason, code === undefined ? `never sent: ${reason}` : reason);
  const named = Object.entries(inputs).map(([input, n]) => `${plain(input)} (${format.count(n)})`);
  if (moreInputs > 0) named.push(`${format.count(moreInputs)} more`);
  setText(row.inputs, named.join(", "));
}
