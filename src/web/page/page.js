// Opens the stream of views and hands each one to the panels and the table.
import { byId, setHidden, setText } from "./element.js";
import * as format from "./format.js";
import { loadHistory, showStatus } from "./panels.js";
import { TagTable } from "./tag-table.js";

const search = byId("search");
let stream;
let timer;
let seenAt;
let views = 0;
/** The panels change with every second view, the tags with each one: any change costs the browser most of its work. */
const panelsEvery = 2;

const table = new TagTable(byId("tags"), () => later(80));

/** Opens the stream again for the rows that are on the screen now. */
function open() {
  stream?.close();
  if (document.hidden) return;
  const { first, count } = table.range;
  stream = new EventSource(`api/events?${new URLSearchParams({ search: search.value, first, count })}`);
  stream.onmessage = ({ data }) => show(JSON.parse(data));
}

function later(ms) {
  clearTimeout(timer);
  timer = setTimeout(open, ms);
}

function show({ status, tags, history }) {
  if (history) views = 0;
  seenAt = Date.now();
  setHidden(byId("lost"), true);
  document.body.classList.remove("stale");
  table.show(tags, history, status.time / 1_000);
  if (history) loadHistory(history);
  if (views++ % panelsEvery === 0) showStatus(status);
  const { matching, total } = tags;
  setText(
    byId("tags-count"),
    matching === total ? format.count(total) : `${format.count(matching)} of ${format.count(total)}`,
  );
}

search.addEventListener("input", () => later(150));
document.addEventListener("visibilitychange", open);

// The stream opens itself again; until it has, the page says how old it is.
setInterval(() => {
  const silent = Date.now() - (seenAt ?? performance.timeOrigin);
  if (document.hidden || silent < 4_000) return;
  setText(byId("lost"), `No answer from the agent for ${format.age(silent)}. What you see is old.`);
  byId("lost").hidden = false;
  document.body.classList.add("stale");
  if (stream?.readyState === EventSource.CLOSED) later(0);
}, 1_000);

open();
