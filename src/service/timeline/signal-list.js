// The list of signals: search, paging, publishing, and which of them are plotted.

const pageSize = 50;

export class SignalList {
  #root;
  #more;
  #none;
  #actions;
  #rpc;
  #search = "";
  #shown = 0;
  /** Names the newest search, so that an older one that answers late is not shown. */
  #turn = 0;

  constructor(root, more, none, actions) {
    this.#root = root;
    this.#more = more;
    this.#none = none;
    this.#actions = actions;
    more.addEventListener("click", () => this.#load());
  }

  /** Starts over with the signals whose name or Input ID contains `search`. */
  open(rpc, search) {
    this.#rpc = rpc;
    this.#search = search.trim();
    this.#shown = 0;
    this.#turn++;
    this.#load();
  }

  #load() {
    const turn = this.#turn;
    void this.#actions.guard("signals", async () => {
      const pattern = { $regex: `(?i)${this.#search.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")}` };
      const { signals } = await this.#rpc.call("admin.selectSignals", {
        integration: this.#rpc.integration,
        signals: {
          include: true,
          filter: this.#search === "" ? {} : { $or: [{ name: pattern }, { input: pattern }] },
          limit: pageSize,
          skip: this.#shown,
        },
      });
      if (turn !== this.#turn) return;
      const rows = Object.values(signals).map((signal) => this.#row(signal));
      if (this.#shown === 0) this.#root.replaceChildren(...rows);
      else this.#root.append(...rows);
      this.#shown += rows.length;
      this.#more.hidden = rows.length < pageSize;
      this.#none.hidden = this.#shown > 0;
    });
  }

  #row(signal) {
    const row = document.createElement("li");
    row.dataset.input = signal.inputId;
    const label = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    label.append(box, signal.name);
    const small = document.createElement("small");
    small.textContent = [signal.inputId, signal.engUnit, signal.description].filter(Boolean).join(" · ");
    row.append(label);
    let { item } = signal;
    box.disabled = item === null;
    box.addEventListener("change", () => this.#actions.toggle(item, signal.name, signal.engUnit, box.checked));
    if (item === null) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = "Publish";
      button.addEventListener("click", () =>
        this.#actions.guard("signals", async () => {
          item = await this.#publish(signal);
          box.disabled = false;
          button.remove();
        }),
      );
      row.append(button);
    }
    row.append(small);
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
