// Certificates of servers that were refused, each with a button that trusts it.
import { certificateFacts, fact } from "./discover-decision.js";
import { button, byId, element, keyed, setHidden } from "./element.js";
import { listRow } from "./figures.js";

/** `accept` is called with the SHA-256 of a certificate that the person has compared. */
export function showWaiting(waiting, accept) {
  setHidden(byId("trust"), waiting.length === 0);
  const create = (certificate) => {
    const trust = button("It is the same: trust it", () => accept(certificate.sha256));
    const facts = certificateFacts(certificate).flatMap(([name, value]) => fact(name, value));
    const list = element("dl", { className: "facts" }, ...facts);
    return { node: listRow("row", [list, element("p", { className: "run" }, trust)]) };
  };
  keyed(
    byId("certificates"),
    waiting,
    ({ sha256 }) => sha256,
    create,
    () => {},
  );
}
