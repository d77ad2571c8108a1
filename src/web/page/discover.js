// Finds tags of a device and adds them to the configuration: connect, tick, name, see the difference, write it.
import { Change } from "./discover-change.js";
import { showDecision } from "./discover-decision.js";
import { Nodes } from "./discover-nodes.js";
import { showWaiting } from "./discover-trust.js";
import { byId, element, setClass, setHidden, setLines, setText } from "./element.js";
import { Stream, showAgent } from "./stream.js";
import { withToken } from "./token.js";

const source = byId("device-source");
const connect = byId("connect");
let places;
let look;
/** Decisions of the person about this address. */
let decided = {};

const change = new Change(ask, () => look, wrote);
const nodes = new Nodes(
  ask,
  () => look,
  () => change.show(nodes.chosen),
);

const stream = new Stream(
  // New tags are the last ones of their source.
  () => (change.written ? { source: change.written.source, first: Number.MAX_SAFE_INTEGER, count: 200 } : { count: 1 }),
  ({ status, tags }) => {
    showAgent(status, "Add tags");
    setText(byId("overall"), status.overall.text);
    setClass(byId("overall"), `headline ${status.overall.level}`);
    change.showRecorded(tags.rows);
  },
);

/** Resolves with the answer. Shows why there is none, and resolves with undefined. */
export async function ask(action, body, error) {
  const trouble = (text) => {
    setLines(error, [text ?? ""]);
    setHidden(error, text === undefined);
  };
  trouble(undefined);
  try {
    const answer = await withToken(`api/discover/${action}`, { body });
    if (answer?.ok && (action === "places" || action === "propose")) showObstacle(answer.obstacle);
    if (answer === undefined) trouble("This needs the token.");
    else if (answer.ok || answer.decision || answer.stale) return answer;
    else trouble([answer.reason, answer.remedy].filter(Boolean).join("\n"));
    if (answer?.waiting) showTrust(answer.waiting);
    // The agent has closed it, as after a restart.
    if (answer?.gone && look) void close();
  } catch {
    trouble("No answer from the agent.");
  }
  return undefined;
}

function isNew() {
  return source.value === "";
}

function showTrust(waiting) {
  showWaiting(waiting, async (sha256) => {
    const answer = await ask("trust", { sha256, decision: "accept" }, byId("device-error"));
    if (answer) showTrust(answer.waiting);
    if (answer) void open();
  });
}

async function showPlaces() {
  places = await ask("places", {}, byId("device-error"));
  if (!places) return;
  source.append(
    ...places.sources.map(({ name, protocol }) =>
      element("option", { attributes: { value: name }, text: `${name} (${protocol})` }),
    ),
  );
  byId("device-addresses").append(
    ...places.addresses.map((address) => element("option", { attributes: { value: address.replace(/ .*/, "") } })),
  );
  change.help(places.templateNames);
  showTrust(places.waiting);
  if (document.activeElement === document.body) byId("device-url").focus();
}

function showObstacle(obstacle) {
  const node = byId("obstacle");
  setHidden(node, obstacle === undefined);
  if (!obstacle) return;
  node.replaceChildren(
    element("strong", { text: "Nothing can be written yet: " }),
    element("span", { text: `${obstacle.reason}. Looking works all the same; the YAML can be copied.` }),
    element("ol", {}, ...obstacle.steps.map((step) => element("li", {}, element("code", { text: step })))),
  );
}

/** Whether the operator has removed the obstacle in the meantime, on another screen. */
function checkObstacle() {
  if (byId("obstacle").hidden) return;
  if (nodes.chosen.size > 0) change.show(nodes.chosen);
  else void ask("places", {}, byId("device-error"));
}

/** Connects with what the person has typed and decided. */
async function open() {
  await close();
  connect.disabled = true;
  setText(byId("device-state"), "connecting");
  byId("decision").replaceChildren();
  const typed = (id) => byId(id).value;
  const [username, password] = [typed("device-username"), typed("device-password")];
  const login = username && { username, ...(password && { password }) };
  const wish = isNew() ? { url: typed("device-url").trim(), ...login, ...decided } : { source: source.value };
  const answer = await ask("open", wish, byId("device-error"));
  connect.disabled = false;
  setText(byId("device-state"), "");
  if (answer?.decision)
    showDecision(answer.decision, (more) => {
      decided = { ...decided, ...more };
      void open();
    });
  if (!answer?.ok) return;
  look = answer;
  setText(byId("device-state"), `connected: ${answer.url}`);
  showForm();
  change.begin(look);
  nodes.begin(look);
}

async function close() {
  const before = look;
  look = undefined;
  showForm();
  setText(byId("device-state"), "");
  nodes.end();
  if (before) await withToken("api/discover/close", { body: { look: before.look } }).catch(() => {});
}

function wrote(name) {
  nodes.clear();
  stream.open();
  if (!look || look.source) return;
  // Further tags belong to the source that is there now.
  look.source = name;
  change.begin(look);
  source.append(element("option", { attributes: { value: name }, text: name }));
}

function showForm() {
  for (const node of document.querySelectorAll("[data-unconnected]")) setHidden(node, look !== undefined);
  for (const node of document.querySelectorAll("#device-form [data-new]")) setHidden(node, !isNew());
  setHidden(byId("disconnect"), look === undefined);
}

source.addEventListener("change", () => {
  decided = {};
  showForm();
});
for (const id of ["device-url", "device-username", "device-password"])
  byId(id).addEventListener("input", () => (decided = {}));
byId("device-form").addEventListener("submit", (event) => {
  event.preventDefault();
  void open();
});
addEventListener("focus", checkObstacle);
byId("disconnect").addEventListener("click", () => void close());
showForm();
void showPlaces();
