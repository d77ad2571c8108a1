// Sources with their state, and what arrives at them that no tag wants.
import { byId, cells, element, keyed, plain, setHidden, setText } from "./element.js";
import { listRow, pill, ShortList, showTrouble } from "./figures.js";
import * as format from "./format.js";

const sourceStates = {
  online: ["online", "good"],
  opening: ["connecting", "none"],
  waiting: ["offline", "warn"],
  stopped: ["stopped", "none"],
};

export function showSources(sources, now) {
  const online = sources.filter((source) => source.state === "online").length;
  setText(byId("sources-count"), `${online} of ${sources.length} online`);
  keyed(
    byId("sources"),
    sources,
    ({ name }) => name,
    createSource,
    (row, source) => {
      const [word, colour] = sourceStates[source.state] ?? [source.state, "none"];
      pill(row.state, word, colour);
      setText(row.name, source.name);
      setText(row.where, source.url === undefined ? source.type : `${source.type} · ${source.url}`);
      setText(row.rate, `${format.rate(source.readingsPerSecond)} /s`);
      setText(row.points, `${format.count(source.points)} points`);
      setText(row.tags, source.tags === 1 ? "1 tag" : `${format.count(source.tags)} tags`);
      setText(row.since, `for ${format.since(Math.max(0, now - source.since / 1_000))}`);
      showTrouble(row.error, source.error, source.remedy);
      const details = Object.entries(source.details);
      if (source.reconnects > 0) details.unshift(["reconnects", format.count(source.reconnects)]);
      showDetails(row.details, details);
    },
  );
}

function showDetails(parent, details) {
  setHidden(parent, details.length === 0);
  keyed(
    parent,
    details,
    ([key]) => key,
    ([key]) => {
      const value = element("bdi", { className: key === "warning" ? "trouble" : "detail" });
      return { node: element("span", { className: "quiet" }, `${plain(key)} `, value), value };
    },
    (row, [, value]) => setText(row.value, typeof value === "number" ? format.value(value) : value),
  );
}

function createSource() {
  const row = cells({ state: "span.pill", name: "bdi.strong", where: "bdi.quiet", since: "span.quiet.since" });
  const numbers = cells({ rate: "span.number.strong", points: "span.number.quiet", tags: "span.number.quiet" });
  const below = cells({ error: "p.trouble", details: "p.details" });
  const who = element("div", { className: "who" }, row.name, row.where);
  const state = element("div", { className: "state" }, row.state, row.since);
  const node = listRow("source", [state, who, ...Object.values(numbers), ...Object.values(below)]);
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
