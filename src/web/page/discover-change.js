// Names for the ticked tags, the difference of the file that would be written, and writing it.
import { byId, cells, copyButton, element, keyed, plain, setHidden, setLines, setText } from "./element.js";
import * as format from "./format.js";
import { words } from "./words.js";

const settleMs = 400;
/** Errors and warnings that are shown. Many tags may have the same one. */
const mostIssues = 3;

export class Change {
  /** What was written last: the source and its Input IDs. Undefined: nothing, or the person has chosen others since. */
  written;
  #ask;
  #look;
  #wrote;
  #chosen = new Map();
  /** Input IDs that the person has typed, by key. */
  #typed = new Map();
  #proposal;
  #wish;
  #timer;
  #turn = 0;

  /** `wrote` is called after a successful write. */
  constructor(ask, look, wrote) {
    this.#ask = ask;
    this.#look = look;
    this.#wrote = wrote;
    const text = byId("change-text");
    text.after(copyButton(() => this.#proposal?.yaml ?? "", "Copy YAML"));
    for (const id of ["naming-source", "naming-template"])
      byId(id).addEventListener("input", () => {
        if (id === "naming-template") this.#typed.clear();
        this.#later();
      });
    byId("write").addEventListener("click", () => void this.#write());
  }

  begin({ source, type }) {
    for (const node of document.querySelectorAll("#naming [data-new]")) setHidden(node, source !== undefined);
    if (source === undefined && byId("naming-source").value === "") byId("naming-source").value = `${type}1`;
  }

  help(names) {
    const parts = Object.entries(names).map(([name, meaning]) => `{${name}}: ${meaning}`);
    setText(byId("naming-help"), parts.join("; "));
  }

  /** `chosen`: the ticked nodes by key. */
  show(chosen) {
    this.#chosen = chosen;
    setHidden(byId("naming"), chosen.size === 0);
    if (chosen.size === 0) setHidden(byId("change"), byId("write-state").textContent === "");
    setText(byId("naming-count"), chosen.size === 1 ? "1 tag" : `${format.count(chosen.size)} tags`);
    if (chosen.size > 0) this.#later();
  }

  #later() {
    clearTimeout(this.#timer);
    byId("write").disabled = true;
    this.#timer = setTimeout(() => void this.#propose(), settleMs);
  }

  async #propose() {
    const look = this.#look();
    if (!look || this.#chosen.size === 0) return;
    const turn = ++this.#turn;
    const nodes = [...this.#chosen.values()].map(({ address, name, depth, path, value, signal, tag, key }) => {
      const input = this.#typed.get(key);
      const own = value !== undefined && { value };
      return { address, name, depth, path, signal, tag, ...own, ...(input && { input }) };
    });
    const name = byId("naming-source").value.trim();
    const template = byId("naming-template").value.trim() || "{path}";
    const whose = look.source === undefined ? { name } : { source: look.source };
    this.#wish = { look: look.look, template, nodes, ...whose };
    setHidden(byId("change"), false);
    this.#showWritten(undefined);
    this.#say("");
    const answer = await this.#ask("propose", this.#wish, byId("change-error"));
    if (turn !== this.#turn) return;
    if (answer) this.#showProposal(answer);
    else this.#showLines("");
  }

  #showProposal(proposal) {
    this.#proposal = proposal;
    const { file, isNew, difference, yaml, inputs, errors, warnings, obstacle, otherChanges, secretFile } = proposal;
    setText(byId("change-file"), isNew ? `${file} (a new file)` : file);
    this.#showInputs(inputs);
    // Without a difference nothing can be added to the file, and the person copies the YAML.
    if (difference === "") byId("change-text").textContent = yaml.split("\n").map(plain).join("\n");
    else this.#showLines(difference);
    const notes = [
      ...(secretFile ? [`The password goes into ${secretFile}, which only the agent may read.`] : []),
      ...(otherChanges
        ? ["The configuration has been edited since the agent loaded it. The reload takes up those changes, too."]
        : []),
      ...firstOf(warnings),
    ];
    setLines(byId("change-note"), notes);
    const stopped = obstacle ? [`${obstacle.reason}. To write from here:`, ...obstacle.steps] : firstOf(errors);
    setLines(byId("change-error"), stopped);
    setHidden(byId("change-error"), stopped.length === 0);
    byId("write").disabled = stopped.length > 0;
  }

  #showLines(difference) {
    const kinds = { "+": "added", "-": "removed" };
    byId("change-text").replaceChildren(
      ...difference.split("\n").map((line, i) => {
        const kind = i < 2 ? "quiet" : line.startsWith("@@") ? "quiet" : (kinds[line[0]] ?? "");
        return element("span", { className: `diff ${kind}`, text: `${plain(line)}\n` });
      }),
    );
  }

  /** A field for each Input ID. */
  #showInputs(inputs) {
    const most = 200;
    const nodes = [...this.#chosen.values()];
    byId("chosen").replaceChildren(
      ...nodes.slice(0, most).map((node, i) => {
        const attributes = { "aria-label": `Input ID of ${plain(node.name)}`, maxlength: "128", spellcheck: "false" };
        const field = element("input", { attributes });
        field.value = inputs[i];
        field.addEventListener("change", () => {
          this.#typed.set(node.key, field.value.trim());
          this.#later();
        });
        const from = element("bdi", { className: "quiet address", text: plain(node.path.join(" / ")) });
        return element("li", { className: "chosen" }, field, from);
      }),
      ...(nodes.length > most ? [element("li", { className: "quiet", text: `and ${nodes.length - most} more` })] : []),
    );
  }

  /** The values of the tags that were written last, among the rows of the agent. */
  showRecorded(rows) {
    if (!this.written) return;
    const inputs = new Set(this.written.inputs);
    const own = rows.filter(({ source, input }) => source === this.written.source && inputs.has(input));
    setHidden(byId("recorded"), own.length === 0);
    keyed(
      byId("recorded"),
      own,
      ({ input }) => input,
      () => {
        const row = cells({ input: "bdi", value: "span.value", state: "span.quiet" });
        return { ...row, node: element("li", { className: "node" }, row.input, row.value, row.state) };
      },
      (row, { input, value, text, unit, quality, reason }) => {
        const { word, level } = words.quality[quality ?? "none"];
        setText(row.input, input);
        setText(row.value, value === undefined ? "" : `${text ?? format.value(value)}${unit ? ` ${unit}` : ""}`);
        setText(row.state, level === "good" || reason === undefined ? word : `${word}: ${reason}`);
      },
    );
  }

  /** What becomes of the write, as texts and elements. */
  #say(...parts) {
    byId("write-state").replaceChildren(...parts);
  }

  async #write() {
    const { base, result, source } = this.#proposal;
    byId("write").disabled = true;
    this.#say("writing");
    const answer = await this.#ask("write", { ...this.#wish, base, result }, byId("change-error"));
    this.#say("");
    if (answer?.stale) {
      this.#showProposal(answer.proposal);
      setText(byId("change-error"), "The file has changed since. Nothing was written; this is the new difference.");
      setHidden(byId("change-error"), false);
    }
    if (!answer?.ok) return;
    const { inputs, file } = answer;
    const tags = inputs.length === 1 ? "1 tag" : `${format.count(inputs.length)} tags`;
    this.#say(
      `Written to ${plain(file)}, and taken up: ${tags}. `,
      element("a", { attributes: { href: `./?source=${encodeURIComponent(source)}` }, text: "See the values" }),
    );
    this.#showWritten({ source, inputs });
    this.#wrote(source);
  }

  /** The difference gives way to the values of what was written. */
  #showWritten(written) {
    this.written = written;
    for (const id of ["change-shown", "write"]) setHidden(byId(id), written !== undefined);
    setHidden(byId("recorded"), true);
  }
}

function firstOf(issues) {
  const more = issues.length - mostIssues;
  return more > 0 ? [...issues.slice(0, mostIssues), `and ${format.count(more)} more`] : issues;
}
