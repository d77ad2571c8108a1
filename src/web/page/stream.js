// The stream of views: opened with the query of the page, again when that changes, and closed while the page is hidden.
import { byId, setHidden, setText } from "./element.js";
import * as format from "./format.js";

/** Longer than the longest interval between two views, in milliseconds. */
const silentMs = 6_000;

export class Stream {
  #query;
  #show;
  #source;
  #timer;
  #seenAt;

  /** `query` gives the parameters of `/api/events`; `show` is called with each view. */
  constructor(query, show) {
    this.#query = query;
    this.#show = show;
    document.addEventListener("visibilitychange", () => this.open());
    setInterval(() => this.#watch(), 1_000);
    this.open();
  }

  open() {
    this.#source?.close();
    if (document.hidden) return;
    this.#source = new EventSource(`api/events?${new URLSearchParams(this.#query())}`);
    this.#source.onmessage = ({ data }) => this.#take(JSON.parse(data));
  }

  /** Opens the stream again after `ms`, unless it is asked for again before. */
  later(ms) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.open(), ms);
  }

  #take(view) {
    this.#seenAt = Date.now();
    setHidden(byId("lost"), true);
    document.body.classList.remove("stale");
    this.#show(view);
  }

  /** The stream opens itself again. Until it has, the page says how old it is. */
  #watch() {
    const silent = Date.now() - (this.#seenAt ?? performance.timeOrigin);
    if (document.hidden || silent < silentMs) return;
    setText(byId("lost"), `No answer from the agent for ${format.age(silent)}. What you see is old.`);
    setHidden(byId("lost"), false);
    document.body.classList.add("stale");
    if (this.#source?.readyState === EventSource.CLOSED) this.later(0);
  }
}

/** Name and version of the agent, on every page. */
export function showAgent({ agent }, title = "") {
  const text = title === "" ? agent.name : `${title} · ${agent.name}`;
  if (document.title !== text) document.title = text;
  setText(byId("name"), agent.name);
  setText(byId("about"), `tagferry ${agent.version}, running for ${format.since(agent.uptimeMs)}`);
}
