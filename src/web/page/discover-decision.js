// What a person decides before the first connection to an address.
import { button, byId, element } from "./element.js";
import * as format from "./format.js";

/** `decide` is called with what to add to the request. */
export function showDecision(decision, decide) {
  const { text, facts = [], action, answer } = partsOf(decision);
  const act = button(action, () => {
    byId("decision").replaceChildren();
    decide(answer);
  });
  byId("decision").replaceChildren(
    element(
      "div",
      { className: "notice warn", attributes: { role: "alert" } },
      element("p", { text }),
      element("dl", { className: "facts" }, ...facts.flatMap(([name, value]) => fact(name, value))),
      element("p", { className: "run" }, act),
    ),
  );
  act.focus();
}

export function certificateFacts({ sha256, subject, validFrom, validTo }) {
  return [
    ["SHA-256", format.fingerprint(sha256)],
    ["Subject", subject],
    ["Valid", `${validFrom} to ${validTo}`],
  ];
}

export function fact(name, value) {
  return [element("dt", { text: name }), element("dd", {}, element("code", { text: value }))];
}

function partsOf(decision) {
  switch (decision.kind) {
    case "certificate":
      return {
        text: "The server shows this certificate, which the agent does not trust yet. Compare the SHA-256 with what the server itself displays.",
        facts: certificateFacts(decision.certificate),
        action: "It is the same: trust it",
        answer: { trust: decision.certificate.sha256 },
      };
    case "noSecurity":
      return {
        text: "The server offers no security: everything can be read and changed on the way.",
        action: "Connect without security",
        answer: { securityMode: "none" },
      };
    default:
      return {
        text: `The password is not protected on the way.${decision.secureUrl ? ` If the device offers TLS, use ${decision.secureUrl} instead.` : ""}`,
        action: "Send it all the same",
        answer: { allowInsecurePassword: true },
      };
  }
}
