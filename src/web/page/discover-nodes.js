// What a device offers: one branch at a time, or everything found so far, with live values and a box for each tag.
import { button, byId, cells, element, keyed, plain, setAttribute, setHidden, setText } from "./element.js";
import * as format from "./format.js";

const everyMs = 2_000;
const page = 200;
/** Most tags and branches that one click ticks and opens. */
const mostBelow = 500;
const mostBranches = 200;

export class Nodes {
  /** Ticked nodes by key, in the order of ticking. */
  chosen = new Map();
  #ask;
  #look;
  #changed;
  /** Branches from the top down to the one that is shown. */
  #path = [];
  #shown = [];
  #timer;
  #device;
  /** Counts requests, so that a late answer does not replace a newer one. */
  #turn = 0;

  /** `look` gives the open connection; `changed` is called when other nodes are ticked. */
  constructor(ask, look, changed) {
    this.#ask = ask;
    this.#look = look;
    this.#changed = changed;
    let typing;
    byId("nodes-search").addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => void this.#list(), 300);
    });
    byId("nodes-more").addEventListener("click", () => void this.#list(this.#shown.length));
    byId("nodes-all").addEventListener("click", () => {
      for (const node of this.#shown) if (refusalOf(node) === undefined) this.chosen.set(node.key, node);
      this.#tick();
      if (this.#isBranch()) void this.#tickBelow(this.#shown.filter(({ branch }) => branch));
    });
    byId("nodes-none").addEventListener("click", () => this.clear());
  }

  /** Starts at the top. Ticks stay where the same device is connected again, as after a restart of the agent. */
  begin({ source, url }) {
    const device = source ?? url;
    if (device !== this.#device) this.chosen.clear();
    this.#device = device;
    this.#path = [];
    this.#shown = [];
    byId("nodes-search").value = "";
    setAttribute(byId("nodes-search"), "placeholder", this.#look()?.tree ? "Search here and below" : "Search");
    setHidden(byId("nodes"), false);
    this.#tick();
    void this.#list();
  }

  end() {
    clearTimeout(this.#timer);
    this.#turn++;
  }

  clear() {
    this.chosen.clear();
    this.#tick();
  }

  /** Resolves with whether the answer is shown. */
  async #list(first = 0) {
    const look = this.#look();
    if (!look) return false;
    clearTimeout(this.#timer);
    const turn = ++this.#turn;
    const wish = { look: look.look, search: byId("nodes-search").value.slice(0, 200), first, count: page };
    const under = this.#path.at(-1);
    setAttribute(byId("nodes-list"), "aria-busy", "true");
    const answer = await this.#ask("list", { ...wish, ...(under && { under: under.key }) }, byId("nodes-error"));
    if (turn !== this.#turn) return false;
    setAttribute(byId("nodes-list"), "aria-busy", "false");
    if (!answer) return false;
    this.#shown = first === 0 ? answer.nodes : [...this.#shown, ...answer.nodes];
    setHidden(byId("nodes-more"), this.#shown.length >= answer.total);
    byId("nodes-notes").replaceChildren(...answer.notes.map((text) => element("p", { text })));
    setText(
      byId("nodes-count"),
      `${format.count(this.#shown.length)} of ${format.count(answer.total)}${answer.busy ? ", still looking" : ""}`,
    );
    this.#showPath();
    this.#show();
    this.#later(answer.busy);
    return true;
  }

  #later(busy) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void (busy ? this.#list() : this.#refresh()), everyMs);
  }

  /** New values of the nodes that are shown. */
  async #refresh() {
    const look = this.#look();
    if (!look) return;
    // A device without a tree may have nodes whose values were not read yet.
    const keys = this.#shown.filter(({ value }) => value !== undefined || !look.tree).map(({ key }) => key);
    // A dialog asks for the token, or nobody looks.
    if (document.hidden || document.querySelector("dialog") || keys.length === 0) return this.#later(false);
    const turn = this.#turn;
    const answer = await this.#ask("values", { look: look.look, keys: keys.slice(0, 500) }, byId("nodes-error"));
    if (turn !== this.#turn || !answer) return;
    for (const node of this.#shown) if (node.key in answer.values) node.value = answer.values[node.key];
    this.#show();
    this.#later(false);
  }

  /** Ticks the tags of branches and of all branches below them. */
  async #tickBelow(branches) {
    const look = this.#look();
    const opened = new Set();
    const waiting = [...branches];
    const found = new Map();
    const where = branches.length === 1 ? plain(branches[0].name) : `${branches.length} branches`;
    setText(byId("nodes-count"), `looking below ${where}`);
    for (let branch = waiting.shift(); branch; branch = waiting.shift()) {
      if (opened.has(branch.key)) continue;
      if (opened.size >= mostBranches || found.size >= mostBelow) break;
      opened.add(branch.key);
      for (let first = 0, total = 1; first < total && found.size < mostBelow; first += page) {
        const wish = { look: look.look, search: "", first, count: page, under: branch.key };
        const answer = await this.#ask("list", wish, byId("nodes-error"));
        if (!answer || this.#look() !== look) return;
        total = answer.total;
        for (const child of answer.nodes) {
          if (refusalOf(child) === undefined) found.set(child.key, child);
          if (child.branch) waiting.push(child);
        }
      }
    }
    for (const child of [...found.values()].slice(0, mostBelow)) this.chosen.set(child.key, child);
    const isCut = found.size >= mostBelow || opened.size >= mostBranches;
    const more = isCut ? "; there may be more: open the branch" : "";
    setText(byId("nodes-count"), `${format.count(found.size)} ticked below ${where}${more}`);
    this.#tick();
  }

  #showPath() {
    const steps = [{ name: "Top" }, ...this.#path];
    setHidden(byId("nodes-path"), this.#look()?.tree !== true);
    byId("nodes-path").replaceChildren(
      ...steps.map(({ name }, depth) => {
        const step = button(plain(name), () => void this.#open(this.#path.slice(0, depth)));
        if (depth === steps.length - 1) step.setAttribute("aria-current", "location");
        return step;
      }),
    );
  }

  async #open(path) {
    const before = this.#path;
    this.#path = path;
    byId("nodes-search").value = "";
    const isShown = await this.#list();
    if (!isShown && this.#path === path) this.#path = before;
    byId("nodes-path").lastElementChild?.focus();
  }

  /** Whether the nodes of one branch are shown. A search lists nodes of several branches. */
  #isBranch() {
    return this.#look()?.tree === true && byId("nodes-search").value.trim() === "";
  }

  #show() {
    const isTree = this.#look()?.tree === true;
    const isSearch = isTree && !this.#isBranch();
    setText(byId("nodes-all"), this.#isBranch() ? "Tick all here and below" : "Tick all shown");
    keyed(
      byId("nodes-list"),
      this.#shown,
      ({ key }) => key,
      (node) => this.#create(node),
      (row, node) => {
        row.of = node;
        setText(row.name, isSearch ? node.path.join(" / ") : node.name);
        setText(row.value, valueOf(node));
        // The line above what was found: a unit, or a range of addresses.
        const isTitle = !isTree && node.depth === 0 && node.value === undefined;
        const refusal = isTitle ? (node.type ?? "") : refusalOf(node);
        setHidden(row.box, isTitle);
        row.box.disabled = refusal !== undefined;
        setText(row.type, refusal ?? node.type ?? "");
        if (row.box.checked !== this.chosen.has(node.key)) row.box.checked = this.chosen.has(node.key);
      },
    );
  }

  #create(node) {
    const box = element("input", { attributes: { type: "checkbox" } });
    box.addEventListener("change", () => {
      if (box.checked) this.chosen.set(row.of.key, row.of);
      else this.chosen.delete(row.of.key);
      this.#changed();
    });
    const row = { of: node, box, ...cells({ name: "bdi", value: "span.value", type: "span.quiet" }) };
    const { name, value, type } = row;
    const address = element("bdi", { className: "quiet address", text: plain(node.address) });
    const isFolder = node.branch && node.value === undefined;
    const open = button("", () => void this.#open([...this.#path, node]), { className: "branch" });
    open.append(...(isFolder ? [name, " ▸"] : ["open ▸"]));
    if (!isFolder) setAttribute(open, "aria-label", `open ${plain(node.name)}`);
    const first = isFolder ? open : element("label", { className: "pick" }, box, name);
    const extra = isFolder ? [this.#belowButton(node)] : node.branch ? [open] : [];
    row.node = element("li", { className: "node" }, first, value, type, address, ...extra);
    return row;
  }

  #belowButton(node) {
    const attributes = { "aria-label": `tick all below ${plain(node.name)}` };
    return button("tick all below", () => void this.#tickBelow([node]), { className: "below", attributes });
  }

  #tick() {
    this.#show();
    this.#changed();
  }
}

function valueOf({ value, signal, perSecond }) {
  if (value === undefined) return "";
  const text = typeof value === "number" ? format.value(value) : String(value);
  const rate = perSecond === undefined ? "" : ` · ${format.rate(perSecond)}/s`;
  return `${text.length > 60 ? `${text.slice(0, 60)}…` : text}${signal?.engUnit ? ` ${signal.engUnit}` : ""}${rate}`;
}

/** Why a node cannot be ticked. Undefined: it can. */
function refusalOf({ value, tag, branch }) {
  if (typeof value === "string" && !/^-?\d{16,20}$/.test(value)) return "a text: write it by hand, with values";
  if (value === undefined && tag.input === undefined) return branch ? "" : "no value";
  return undefined;
}
