// Certificates of servers that were refused, each with a button that trusts it.
import { certificateFacts, fact } from "./discover-decision.js";
import { byId, element, keyed, setHidden } from "./element.js";

/** `accept` is called with the SHA-256 of a certificate that the person has compared. */
export function showWaiting(waiting, accept) {
  setHidden(byId("trust"), waiting.length === 0);
  const create = (certificate) => {
    const button = element("button", { attributes: { type: "button" }, text: "It is the same: trust it" });
    button.addEventListener("click", () => accept(certificate.sha256));
    const facts = certificateFacts(certificate).flatMap(([name, value]) => fact(name, value));
    const node = element(
      "div",
      { className: "row", attributes: { role: "listitem" } },
      element("dl", { className: "facts" }, ...facts),
      element("p", { className: "run" }, button),
    );
    return { node };
  };
  keyed(
    byId("certificates"),
    waiting,
    ({ sha256 }) => sha256,
    create,
    () => {},
  );
}
