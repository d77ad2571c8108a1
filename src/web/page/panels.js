// Everything above the tags: the agent in one line, what is wrong, upload, buffer and sources.
import { byId, element, keyed, plain, setClass, setText } from "./element.js";
import * as format from "./format.js";
import { draw, Line } from "./plot.js";

const lines = { backlogPoints: new Line(), sentPoints: new Line() };

/** What the agent remembers of the plotted figures. */
export function loadHistory({ times, figures }) {
  for (const [name, line] of Object.entries(lines)) line.load(times, figures[name] ?? []);
}

export function showStatus(status) {
  const now = status.time / 1_000;
  showAgent(status);
  showWarnings(status.warnings);
  lines.backlogPoints.push(now, status.upload.backlogPoints);
  lines.sentPoints.push(now, status.upload.points);
  showUpload(status.upload);
  showBuffer(status.buffer, now);
  showSources(status.sources, now);
}

function showAgent({ agent, sources, upload, buffer, warnings }) {
  document.title = agent.name;
  setText(byId("name"), agent.name);
  setText(byId("about"), `tagferry ${agent.version}, running for ${format.duration(agent.uptimeMs)}`);
  const waiting = sources.filter((source) => source.state === "waiting").length;
  const troubles = [];
  if (waiting > 0) troubles.push(waiting === 1 ? "1 source offline" : `${waiting} sources offline`);
  if (upload.state === "retrying") troubles.push("service unreachable");
  if (upload.state === "held") troubles.push("service refuses us");
  if (buffer.degraded !== undefined) troubles.push("buffer cannot write");
  if (troubles.length === 0 && warnings.some((warning) => warning.level === "error")) troubles.push("needs attention");
  const bad =
    upload.state === "held" || buffer.degraded !== undefined || warnings.some(({ level }) => level === "error");
  pill(
    byId("overall"),
    troubles.length === 0 ? "all well" : troubles.join(", "),
    troubles.length === 0 ? "good" : bad ? "bad" : "warn",
  );
}

function showWarnings(warnings) {
  keyed(
    byId("warnings"),
    warnings.map((warning, index) => ({ ...warning, index })),
    ({ index }) => index,
    () => {
      const message = element("span");
      const remedy = element("span", { className: "remedy" });
      return { node: element("li", {}, message, remedy), message, remedy };
    },
    (row, { level, message, remedy }) => {
      setClass(row.node, `notice ${level}`);
      setText(row.message, message);
      setText(row.remedy, remedy ?? "");
    },
  );
}

const uploadStates = {
  delivering: ["delivering", "good"],
  retrying: ["retrying", "warn"],
  held: ["refused", "bad"],
  stopped: ["stopped", "none"],
};

function showUpload(upload) {
  const [word, colour] = uploadStates[upload.state] ?? [upload.state, "none"];
  pill(byId("upload-state"), word, colour);
  setText(byId("upload-where"), `${upload.integration} at ${upload.url}`);
  showFigures(byId("upload-figures"), [
    ["lag", upload.lagMs === undefined ? "–" : format.duration(upload.lagMs)],
    ["request budget", format.percent(upload.budgetShare), upload.budgetShare],
    ["points / request", format.count(Math.round(upload.pointsPerRequest))],
    ["bytes / request", format.bytes(upload.bytesPerRequest)],
    ["requests", format.count(upload.requests)],
    ["delivered points", format.count(upload.points)],
    ...(upload.refusedPoints > 0 ? [["refused points", format.count(upload.refusedPoints)]] : []),
  ]);
  draw(byId("upload-plot"), lines.sentPoints.rates, { area: true, zero: true });
  showCaption("upload-caption", `points/s delivered, ${lines.sentPoints.span}`, upload);
}

function showBuffer(buffer, now) {
  pill(
    byId("buffer-state"),
    buffer.degraded === undefined ? "durable" : "cannot write",
    buffer.degraded === undefined ? "good" : "bad",
  );
  setText(
    byId("buffer-where"),
    buffer.oldest === undefined
      ? "nothing waits"
      : `oldest point is ${format.duration(now - buffer.oldest / 1_000)} old`,
  );
  const lost = buffer.losses.reduce((sum, { points }) => sum + points, 0);
  showFigures(byId("buffer-figures"), [
    ["waiting points", format.count(buffer.unsettledPoints)],
    ["on disk", format.bytes(buffer.bytes), buffer.maxBytes > 0 ? buffer.bytes / buffer.maxBytes : 0],
    ["appended", format.count(buffer.appendedPoints)],
    ["segments", format.count(buffer.segments)],
    ["collided", format.count(buffer.collidedPoints)],
    ["lost", format.count(lost)],
  ]);
  draw(byId("buffer-plot"), lines.backlogPoints, { area: true, zero: true });
  showCaption(
    "buffer-caption",
    `points waiting, ${lines.backlogPoints.span}`,
    buffer.degraded === undefined ? {} : { error: buffer.degraded },
  );
}

function showCaption(id, plain, { error, remedy, drainMs }) {
  const drain = drainMs === undefined ? "" : `; backlog gone in ${format.duration(drainMs)}`;
  setText(byId(id), error === undefined ? plain + drain : remedy === undefined ? error : `${error}: ${remedy}`);
  byId(id).classList.toggle("trouble", error !== undefined);
}

/** Name, value and, for shares, a bar. */
function showFigures(parent, figures) {
  keyed(
    parent,
    figures,
    ([name]) => name,
    ([name, , share]) => {
      const value = element("span", { className: "figure" });
      const bar = share === undefined ? undefined : element("div", { className: "bar" }, element("div"));
      const node = element(
        "div",
        {},
        value,
        element("span", { className: "quiet", text: name }),
        ...(bar ? [bar] : []),
      );
      return { node, value, bar };
    },
    (row, [, text, share]) => {
      setText(row.value, text);
      if (row.bar) row.bar.firstChild.style.width = `${Math.min(100, Math.max(0, share * 100))}%`;
    },
  );
}

const sourceStates = {
  online: ["online", "good"],
  opening: ["connecting", "none"],
  waiting: ["offline", "warn"],
  stopped: ["stopped", "none"],
};

function showSources(sources, now) {
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
      setText(row.since, `for ${format.duration(Math.max(0, now - source.since / 1_000))}`);
      setText(
        row.error,
        source.error === undefined
          ? ""
          : source.remedy === undefined
            ? source.error
            : `${source.error}: ${source.remedy}`,
      );
      row.error.hidden = source.error === undefined;
      const details = Object.entries(source.details);
      if (source.reconnects > 0) details.unshift(["reconnects", format.count(source.reconnects)]);
      showDetails(row.details, details);
    },
  );
}

function showDetails(parent, details) {
  parent.hidden = details.length === 0;
  keyed(
    parent,
    details,
    ([key]) => key,
    ([key]) => {
      const value = element("bdi", { className: "detail" });
      return { node: element("span", { className: "quiet" }, `${plain(key)} `, value), value };
    },
    (row, [, value]) => setText(row.value, String(value)),
  );
}

function createSource() {
  const cell = (className) => element("span", { className });
  const row = {
    state: cell("pill"),
    name: element("bdi", { className: "strong" }),
    where: element("bdi", { className: "quiet" }),
    rate: cell("number strong"),
    points: cell("number quiet"),
    tags: cell("number quiet"),
    since: cell("quiet since"),
    error: element("p", { className: "trouble" }),
    details: element("p", { className: "details" }),
  };
  const who = element("div", { className: "who" }, row.name, row.where);
  const state = element("div", { className: "state" }, row.state, row.since);
  const node = element(
    "div",
    { className: "source", attributes: { role: "listitem" } },
    state,
    who,
    row.rate,
    row.points,
    row.tags,
    row.error,
    row.details,
  );
  return { ...row, node };
}

function pill(node, text, colour) {
  setText(node, text);
  setClass(node, `pill ${colour}`);
}
