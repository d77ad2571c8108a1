// OPC UA servers that wait until a person trusts their certificate. That is done by a command: whoever may look at this
// page is not thereby the one who may decide.
import { byId, element, keyed, setHidden, setText } from "./element.js";
import { listRow } from "./figures.js";
import * as format from "./format.js";
import { Lookup } from "./lookup.js";

const asked = new Lookup("api/certificates", 5_000);

/** How many wait. */
export function showCertificates(sources, now) {
  const opcua = sources.filter(({ type }) => type === "opcua");
  // A new certificate comes with an attempt to connect; one that a person has trusted goes at any time.
  if (opcua.length > 0) void asked.refresh(Math.floor(now / 5_000), () => showCertificates(sources, now));
  const { waiting = [], more = 0 } = opcua.length > 0 ? (asked.answer ?? {}) : {};
  setHidden(byId("trust"), waiting.length === 0);
  setText(byId("trust-count"), waiting.length === 0 ? "" : format.count(waiting.length + more));
  keyed(
    byId("certificates"),
    waiting,
    ({ sha256 }) => sha256,
    create,
    (row, certificate) => update(row, certificate, now),
  );
  return waiting.length + more;
}

function create() {
  const row = {
    subject: element("bdi", { className: "strong" }),
    application: element("bdi"),
    thumbprint: element("code"),
    sha256: element("code"),
    valid: element("span"),
    command: element("code", { className: "command" }),
  };
  const line = (name, value) => [element("dt", { text: name }), element("dd", {}, value)];
  const node = listRow("certificate", [
    row.subject,
    element(
      "dl",
      {},
      ...line("application", row.application),
      ...line("thumbprint", row.thumbprint),
      ...line("SHA-256", row.sha256),
      ...line("valid", row.valid),
    ),
    element("p", {}, row.command),
  ]);
  return { ...row, node };
}

function update(row, { subject, applicationUri, thumbprint, sha256, validFrom, validTo, command }, now) {
  setText(row.subject, subject);
  setText(row.application, applicationUri ?? "names none");
  setText(row.thumbprint, thumbprint);
  setText(row.sha256, sha256);
  const [from, to] = [Date.parse(validFrom), Date.parse(validTo)];
  const not = now < from ? ", not valid yet" : now > to ? ", expired: the server needs a new one" : "";
  setText(row.valid, `${format.day(from, validFrom)} to ${format.day(to, validTo)}${not}`);
  row.valid.classList.toggle("trouble", not !== "");
  setText(row.command, command);
}
