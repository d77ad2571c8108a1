// The list of signals: search, paging, publishing, and which of them are plotted. Signals of the process come first; those
// that an agent has of itself are behind them, folded.
import { element } from "./texts.js";

const pageSize = 50;
/** Input IDs of what an agent measures of itself: `<agent>/tagferry/delivery/lag`. */
const ownInput = { input: { $regex: "/tagferry/(source|delivery|buffer|process)/" } };

export class SignalList {
  #process;
  #own;
  #none;
  #actions;
  #rpc;
  #search = "";
  /** Names the newest search, so that an older one that answers late is not shown. */
  #turn = 0;

  /** `root` has a list and a button for each of the two kinds. */
  constructor(root, none, actions) {
    const part = (name) => ({
      box: root.querySelector(`[data-kind="${name}"]`),
      list: root.querySelector(`[data-kind="${name}"] ul`),
      more: root.querySelector(`[data-kind="${name}"] .more`),
      shown: 0,
      filter: {},
    });
    this.#process = part("process");
    this.#own = part("own");
    this.#none = none;
    this.#actions = actions;
    for (const each of [this.#process, this.#own]) each.more.addEventListener("click", () => this.#load([each]));
  }

  /** Starts over with the signals whose name or Input ID contains `search`. */
  open(rpc, search) {
    this.#rpc = rpc;
    this.#search = search.trim();
    this.#turn++;
    for (const part of [this.#process, this.#own]) part.shown = 0;
    this.#load([this.#own, this.#process]);
  }

  /** Checks the boxes of what is plotted, and no others. */
  update() {
    for (const { list } of [this.#process, this.#own])
      for (const box of list.querySelectorAll("input")) box.checked = this.#actions.isPlotted(box.value);
  }

  #load(parts) {
    const turn = this.#turn;
    void this.#actions.guard("signals", async () => {
      if (parts.includes(this.#process) && this.#process.shown === 0) {
        const own = Object.keys(await this.#select(ownInput, 1_000, 0));
        this.#process.filter = own.length > 0 ? { id: { $nin: own } } : {};
        this.#own.filter = ownInput;
      }
      for (const part of parts) {
        const signals = Object.entries(await this.#select(part.filter, pageSize, part.shown));
        if (turn !== this.#turn) return;
        const rows = signals.map(([id, signal]) => this.#row({ id, ...signal }));
        if (part.shown === 0) part.list.replaceChildren(...rows);
        else part.list.append(...rows);
        part.shown += rows.length;
        part.more.hidden = rows.length < pageSize;
      }
      this.#own.box.hidden = this.#own.shown === 0;
      if (this.#process.shown === 0) this.#own.box.open = true;
      this.#none.hidden = this.#process.shown + this.#own.shown > 0;
      this.update();
    });
  }

  async #select(filter, limit, skip) {
    const pattern = { $regex: `(?i)${this.#search.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")}` };
    const found = this.#search === "" ? filter : { $and: [filter, { $or: [{ name: pattern }, { input: pattern }] }] };
    const { signals } = await this.#rpc.call("admin.selectSignals", {
      integration: this.#rpc.integration,
      signals: { include: true, filter: found, limit, skip },
    });
    return signals;
  }

  #row(signal) {
    const box = element("input", { type: "checkbox" });
    const row = element("li", {}, element("label", {}, box, signal.name));
    row.dataset.input = signal.inputId;
    const published = (item) => {
      box.value = item ?? "";
      box.disabled = item === null;
    };
    published(signal.item);
    box.addEventListener("change", () => this.#actions.toggle(box.value, box.checked));
    if (signal.item === null) {
      const button = element("button", { type: "button" }, "Publish");
      button.addEventListener("click", () =>
        this.#actions.guard("signals", async () => {
          published(await this.#publish(signal));
          button.remove();
        }),
      );
      row.append(button);
    }
    row.append(element("small", {}, [signal.inputId, signal.engUnit, signal.description].filter(Boolean).join(" · ")));
    return row;
  }

  /** Makes an item with the attributes of the signal. Resolves with its ID. */
  async #publish({ id, inputId: _input, item: _item, meta: _meta, ...attributes }) {
    const { itemsBySignal } = await this.#rpc.call("admin.publishSignals", {
      integration: this.#rpc.integration,
      itemsBySignal: { [id]: { ...attributes, visible: true } },
    });
    return itemsBySignal[id].id;
  }
}
