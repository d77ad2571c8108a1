// Sources with their state, and what arrives at them that no tag wants. Details of healthy sources are folded.
import { byId, cells, element, keyed, plain, setHidden, setText } from "./element.js";
import { listRow, pill, ShortList, showTrouble } from "./figures.js";
import * as format from "./format.js";
import { words } from "./words.js";

export function showSources(sources, now) {
  const online = sources.filter((source) => source.state === "online").length;
  setText(byId("sources-count"), `${online} of ${sources.length} ${words.source.online.word}`);
  keyed(
    byId("sources"),
    sources,
    ({ name }) => name,
    createSource,
    (row, source) => {
      const { word, level } = words.source[source.state];
      pill(row.state, word, level);
      setText(row.name, source.name);
      const { reader } = source.details;
      const facts = [source.type, source.url, reader && `read by ${reader}`].filter((fact) => fact !== undefined);
      setText(row.where, facts.join(" · "));
      setText(row.rate, `${format.rate(source.readingsPerSecond)} readings/s`);
      setText(row.tags, source.tags === 1 ? "1 tag" : `${format.count(source.tags)} tags`);
      setText(row.since, `for ${format.since(Math.max(0, now - source.since / 1_000))}`);
      showTrouble(row.error, source.error, source.remedy);
      // Folded or not by the person from then on.
      const isWell = ["online", "standby"].includes(source.state) && source.error === undefined;
      if (row.isWell !== isWell) row.node.open = !isWell;
      row.isWell = isWell;
      const details = Object.entries(source.details).filter(([key]) => key !== "url");
      if (source.reconnects > 0) details.unshift(["reconnects", source.reconnects]);
      details.unshift(["points", source.points]);
      showDetails(row.details, details);
    },
  );
}

/** Units in the names of a driver's details. */
const units = { Seconds: " s", Ms: " ms", Bytes: " B" };

/** `keepaliveSeconds: 60` → `keep-alive`, `60 s`; `lifetime: 1800000 ms` → `lifetime`, `30 min`. */
function labelled(key, value) {
  const unit = Object.keys(units).find((name) => key.endsWith(name));
  const name = unit === undefined ? key : key.slice(0, -unit.length);
  const label = name
    .replace(/([a-z])([A-Z])/g, (_all, a, b) => `${a} ${b.toLowerCase()}`)
    .replace(/^keep ?alive$/i, "keep-alive")
    .replace(/^broker\./, "broker: ");
  const text =
    typeof value === "number"
      ? format.value(value)
      : value.replace(/\b(\d+) ms\b/g, (_all, ms) => format.duration(Number(ms)));
  return [label, unit === undefined ? text : `${text}${units[unit]}`];
}

function showDetails(parent, details) {
  keyed(
    parent,
    details,
    ([key]) => key,
    ([key]) => {
      const value = element("bdi", { className: ["warning", "weakness"].includes(key) ? "trouble" : "detail" });
      return { node: element("span", { className: "quiet" }, `${plain(labelled(key, "")[0])} `, value), value };
    },
    (row, [key, value]) => setText(row.value, labelled(key, value)[1]),
  );
}

function createSource() {
  const row = cells({ state: "span.pill", name: "bdi.strong", where: "bdi.quiet", since: "span.quiet.since" });
  const numbers = cells({ rate: "span.number", tags: "span.number.quiet" });
  const below = cells({ error: "p.trouble", details: "p.details" });
  const who = element("span", { className: "who" }, row.name, row.where);
  const state = element("span", { className: "state" }, row.state, row.since);
  const summary = element("summary", {}, who, state, numbers.rate, numbers.tags);
  const node = element("details", { className: "source" }, summary, below.error, below.details);
  return { ...row, ...numbers, ...below, node };
}

const unknown = new ShortList(byId("unknown"), 5);

/** Addresses without a tag, with what came last: what is needed to write one. */
export function showUnknown(sources) {
  const found = sources
    .flatMap(({ name, unknown: addresses = [] }) => addresses.map((address) => ({ source: name, ...address })))
    .toSorted((a, b) => b.count - a.count);
  setHidden(byId("unmapped"), found.length === 0);
  setText(byId("unknown-count"), found.length === 0 ? "" : format.count(found.length));
  unknown.show(
    found,
    ({ source, address }) => `${source} ${address}`,
    () => {
      const row = cells({ address: "bdi.strong", source: "bdi.quiet", count: "span.number", sample: "code.sample" });
      const who = element("div", { className: "who" }, row.address, row.source);
      return { ...row, node: listRow("unmapped row", [who, row.count, row.sample]) };
    },
    (row, { source, address, count, sample }) => {
      setText(row.address, address);
      setText(row.source, source);
      setText(row.count, `${format.count(count)} ×`);
      setText(row.sample, sample);
    },
  );
}
