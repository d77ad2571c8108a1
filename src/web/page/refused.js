// Points that the service refused for good, by its reasons.
import { button, byId, cells, copyButton, element, plain, setHidden, setText } from "./element.js";
import { Lookup, listRow, pill, ShortList } from "./figures.js";
import * as format from "./format.js";
import { withToken } from "./token.js";

const asked = new Lookup("api/rejects", 2_000);
const list = new ShortList(byId("refused"), 4);
const command = element("code", { className: "command" });
const progress = element("span", { className: "quiet", attributes: { role: "status" } });
const or = element("span", { className: "quiet", text: "or" });
const copy = copyButton(() => command.textContent);
const again = button("Send again", async () => {
  again.disabled = true;
  try {
    const answer = await withToken("api/rejects/retry");
    if (answer?.ok === false) setText(progress, answer.reason);
    if (answer?.ok) asked.forget();
  } catch {
    setText(progress, "no answer from the agent");
  } finally {
    again.disabled = false;
  }
});
byId("refused-run").append(again, progress, or, command, copy);

export function showRefused(status) {
  const { upload, buffer } = status;
  // Commands change the files without the agent, so they are read once a minute in any case.
  const minute = Math.floor(status.time / 60e6);
  void asked.refresh(`${upload.refusedPoints} ${buffer.refusedPoints} ${minute}`, () => showRefused(status));
  const { points = 0, reasons = [], commands, retry } = asked.answer ?? {};
  if (retry?.running) asked.forget();
  if (retry) setText(progress, outcomeOf(retry));
  const ever = Math.max(buffer.refusedPoints, points);
  pill(byId("refused-state"), points === 0 ? "none" : format.count(points), points === 0 ? "good" : "bad");
  const past =
    ever > points ? ` ${format.count(ever)} ${ever === 1 ? "was" : "were"} refused since the buffer exists.` : "";
  setText(
    byId("refused-note"),
    points === 0
      ? ever === 0
        ? "The service has accepted every point."
        : `None is kept.${past}`
      : `Correct what the reasons name, then send them again.${past}`,
  );
  setText(command, commands?.retry ?? "");
  setHidden(byId("refused-run"), (points === 0 || commands === undefined) && retry === undefined);
  for (const node of byId("refused-run").children) setHidden(node, points === 0 && node !== progress);
  list.show(reasons, ({ code, reason }) => `${code} ${reason}`, create, update);
}

function outcomeOf({ running, points, accepted, refused, unsendable, held, heldReason }) {
  const decided = accepted + refused;
  if (running) return `${format.count(decided)} of ${format.count(points)} decided`;
  const parts = [`${format.count(accepted)} delivered`];
  if (refused > 0) parts.push(`${format.count(refused)} refused again`);
  if (held > 0)
    parts.push(
      `${format.count(held)} ${held === 1 ? "stays" : "stay"} refused: the service still refuses their inputs (${heldReason})`,
    );
  if (unsendable > 0) parts.push(`${format.count(unsendable)} cannot be sent at all`);
  if (decided + held < points) parts.push(`${format.count(points - decided - held)} not decided`);
  return parts.join(", ");
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
