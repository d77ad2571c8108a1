// Signals at the service: how many it knows, and what differs there.
import { byId, setHidden, setText } from "./element.js";
import { pill, showFigures } from "./figures.js";
import * as format from "./format.js";

export function showSignals({ signals }, now) {
  setHidden(byId("signals"), signals === undefined);
  if (!signals) return;
  const { known, pending, saved, checkedAt, lost, changed, unconfigured, unconfiguredInputs = [], published } = signals;
  pill(
    byId("signals-state"),
    pending > 0 ? `${format.count(pending)} to save` : "saved",
    pending > 0 ? "note" : "good",
  );
  showFigures(byId("signals-figures"), [
    ["known", format.count(known)],
    ["saved since the start", format.count(saved)],
    ...(lost === undefined ? [] : [["lost there, saved again", format.count(lost)]]),
    ...(changed === undefined ? [] : [["changed there, saved again", format.count(changed)]]),
    ...(unconfigured === undefined ? [] : [["there, not configured", format.count(unconfigured)]]),
    ...(published === undefined ? [] : [["published", format.count(published)]]),
  ]);
  const compared =
    checkedAt === undefined
      ? "Not compared with the service yet."
      : `Compared with the service at ${format.moment(checkedAt / 1_000, now)}.`;
  const named = unconfiguredInputs.slice(0, 5).join(", ");
  const rest = (unconfigured ?? 0) > 5 ? " and more: tagferry signals diff" : "";
  setText(byId("signals-note"), named === "" ? compared : `${compared} Not configured: ${named}${rest}`);
}
