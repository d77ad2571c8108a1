// The agent in one line, what is wrong, upload, buffer and the signals at the service.
import { showCertificates } from "./certificates.js";
import { byId, cells, element, setClass, setHidden, setText } from "./element.js";
import { pill, ShortList, showFigures, showPlots, showTrouble } from "./figures.js";
import * as format from "./format.js";
import { showGaps } from "./gaps.js";
import { Line } from "./plot.js";
import { showRefused } from "./refused.js";
import { showSources, showUnknown } from "./sources.js";

const [backlogPoints, bufferBytes, lagMs, sentPoints, budgetShare] = Array.from({ length: 5 }, () => new Line());
const lines = { backlogPoints, bufferBytes, lagMs, sentPoints, budgetShare };
const warningList = new ShortList(byId("warnings"), 6);

/** What the agent remembers of the plotted figures. */
export function loadHistory({ times, figures }) {
  for (const [name, line] of Object.entries(lines)) line.load(times, figures[name] ?? []);
}

export function showStatus(status) {
  const now = status.time / 1_000;
  const { upload, buffer, sources } = status;
  lines.backlogPoints.push(now, upload.backlogPoints);
  lines.bufferBytes.push(now, buffer.bytes);
  lines.lagMs.push(now, upload.lagMs ?? null);
  lines.sentPoints.push(now, upload.points);
  lines.budgetShare.push(now, upload.budgetShare);
  showWarnings([...status.warnings, ...clockDifference(now)]);
  showAgent(status, showCertificates(sources, now));
  showUpload(upload);
  showBuffer(buffer, upload, now);
  showSignals(upload, now);
  showRefused(status);
  showSources(sources, now);
  showUnknown(sources);
  showGaps(status.gaps, now);
}

function showAgent({ agent, overall }, certificates) {
  if (document.title !== agent.name) document.title = agent.name;
  setText(byId("name"), agent.name);
  setText(byId("about"), `tagferry ${agent.version}, running for ${format.since(agent.uptimeMs)}`);
  const { level, text } = overall;
  const trust = certificates === 1 ? "1 certificate to trust" : `${certificates} certificates to trust`;
  if (certificates === 0) pill(byId("overall"), text, level);
  else pill(byId("overall"), level === "good" ? trust : `${text}, ${trust}`, level === "good" ? "warn" : level);
}

function showWarnings(warnings) {
  warningList.show(
    warnings.map((warning, index) => ({ ...warning, index })),
    ({ index }) => index,
    () => {
      const row = cells({ message: "span", remedy: "span.remedy" });
      return { ...row, node: element("li", {}, ...Object.values(row)) };
    },
    (row, { level, message, remedy }) => {
      setClass(row.node, `notice ${level}`);
      setText(row.message, message);
      setText(row.remedy, remedy ?? "");
    },
  );
}

/** Compares the clocks of the browser and the agent. A difference of more than a minute is not a network delay. */
function clockDifference(now) {
  const ms = now - Date.now();
  if (Math.abs(ms) < 60_000) return [];
  const message = `The clock of the agent is ${format.duration(Math.abs(ms))} ${ms > 0 ? "ahead of" : "behind"} the clock of this browser.`;
  const remedy =
    "Where the agent's is the wrong one, see to its time synchronisation (timedatectl): points carry its time.";
  return [{ level: "warn", message, remedy }];
}

const uploadStates = {
  delivering: ["delivering", "good"],
  retrying: ["retrying", "warn"],
  held: ["held", "bad"],
  stopped: ["stopped", "none"],
  standby: ["standby", "none"],
};

function showUpload(upload) {
  const [word, colour] = uploadStates[upload.state] ?? [upload.state, "none"];
  pill(byId("upload-state"), word, colour);
  setText(byId("upload-where"), `${upload.integration} at ${upload.url}`);
  showTrouble(byId("upload-error"), upload.error, upload.remedy);
  showFigures(byId("upload-figures"), [
    ["lag", upload.lagMs === undefined ? "–" : format.duration(upload.lagMs)],
    ["of the request budget", format.percent(upload.budgetShare), upload.budgetShare],
    ["points a request", format.count(Math.round(upload.pointsPerRequest))],
    ["bytes a request", format.bytes(upload.bytesPerRequest)],
    ["requests", format.count(upload.requests)],
    ["points delivered", format.count(upload.points)],
  ]);
  showPlots(byId("upload-plots"), [
    { name: "points/s delivered", line: lines.sentPoints.rates, format: format.rate },
    { name: "request budget used", line: lines.budgetShare, format: format.percent, top: 1 },
    { name: "lag", line: lines.lagMs, format: format.duration },
  ]);
  setText(byId("upload-caption"), lines.sentPoints.span);
}

function showBuffer(buffer, upload, now) {
  const { degraded, oldest, losses } = buffer;
  pill(
    byId("buffer-state"),
    degraded === undefined ? "durable" : "cannot write",
    degraded === undefined ? "good" : "bad",
  );
  setText(
    byId("buffer-where"),
    oldest === undefined
      ? "nothing waits"
      : `oldest point is ${format.since(now - oldest / 1_000)} old${gone(upload, now)}`,
  );
  const remedy = "free disk space or repair the disk; nothing more is acknowledged until then";
  showTrouble(byId("buffer-error"), degraded, remedy);
  const lost = losses.reduce((sum, { points }) => sum + points, 0);
  showFigures(byId("buffer-figures"), [
    ["points waiting", format.count(buffer.unsettledPoints)],
    [
      `on disk, of ${format.bytes(buffer.maxBytes)}`,
      format.bytes(buffer.bytes),
      buffer.maxBytes > 0 ? buffer.bytes / buffer.maxBytes : 0,
    ],
    ["backlog", upload.backlog.text],
    ["points stored", format.count(buffer.appendedPoints)],
    ["time held another value", format.count(buffer.collidedPoints)],
    ["points lost", format.count(lost)],
  ]);
  showPlots(byId("buffer-plots"), [
    { name: "points waiting", line: lines.backlogPoints, format: (points) => format.count(Math.round(points)) },
    { name: "on disk", line: lines.bufferBytes, format: format.bytes },
  ]);
  setText(byId("buffer-caption"), lines.backlogPoints.span);
}

/** When that is, where a person would look at a clock. */
function gone({ backlog: { drainMs } }, now) {
  const soon = drainMs === undefined || drainMs < 300_000;
  return soon ? "" : `; the backlog is gone at ${format.minute(now + drainMs, now)}`;
}

function showSignals({ signals }, now) {
  setHidden(byId("signals"), signals === undefined);
  if (!signals) return;
  const { known, pending, saved, checkedAt, lost, changed, unconfigured, unconfiguredInputs = [], published } = signals;
  pill(
    byId("signals-state"),
    pending > 0 ? `${format.count(pending)} to save` : "saved",
    pending > 0 ? "warn" : "good",
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
