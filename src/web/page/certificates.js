// OPC UA servers that wait until a person trusts their certificate. A command does that, since a reader of this page
// need not be a person who may decide.
import { byId, cells, element, keyed, setHidden, setText } from "./element.js";
import { Lookup, listRow } from "./figures.js";
import * as format from "./format.js";

const asked = new Lookup("api/certificates", 5_000);

/** How many wait. */
export function showCertificates(sources, now) {
  const opcua = sources.filter(({ type }) => type === "opcua");
  // A new certificate comes with an attempt to connect; one that a person has trusted goes at any time.
  if (opcua.length > 0) void asked.refresh(Math.floor(now / 5_000), () => showCertificates(sources, now));
  const { waiting = [], more = 0 } = opcua.length > 0 ? (asked.answer ?? {}) : {};
  setHidden(byId("trust"), waiting.length === 0);
  setText(byId("trust-count"), waiting.length === 0 ? "" : format.count(waiting.length + more));
  const key = ({ sha256 }) => sha256;
  keyed(byId("certificates"), waiting, key, create, (row, certificate) => update(row, certificate, now));
  return waiting.length + more;
}

function create() {
  const row = cells({ subject: "bdi.strong", application: "bdi", thumbprint: "code", sha256: "code", valid: "span" });
  const command = element("code", { className: "command" });
  const line = (name, value) => [element("dt", { text: name }), element("dd", {}, value)];
  const list = element(
    "dl",
    {},
    ...line("application", row.application),
    ...line("thumbprint", row.thumbprint),
    ...line("SHA-256", row.sha256),
    ...line("valid", row.valid),
  );
  return { ...row, command, node: listRow("certificate", [row.subject, list, element("p", {}, command)]) };
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
