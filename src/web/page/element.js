// Building and changing the page. Text only ever goes in as text, so whatever a device calls its tags stays inert.

// Characters that change how the others are shown: controls, and those that turn the direction of writing.
const deceptive = /\p{Cc}|[\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/gu;

/** `text` with deceptive characters written out, so that a name reads as what it is. */
export function plain(text) {
  return text.replace(deceptive, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** An element with a class, children and attributes. Strings become text nodes. */
export function element(name, { className, attributes = {}, text } = {}, ...children) {
  const node = document.createElement(name);
  if (className) node.className = className;
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  node.append(...children);
  return node;
}

/** A button that calls `act` at each click. */
export function button(text, act, { className, attributes } = {}) {
  const node = element("button", { className, attributes: { type: "button", ...attributes }, text });
  node.addEventListener("click", act);
  return node;
}

/** Elements by name, each written as `tag` or `tag.class.class`. */
export function cells(written) {
  return Object.fromEntries(
    Object.entries(written).map(([key, text]) => {
      const [name, ...classes] = text.split(".");
      return [key, element(name, { className: classes.join(" ") })];
    }),
  );
}

/** The one text of `node`. Touches the page only when it is another one, and then the text that is there, which costs less than a new one. */
export function setText(node, text) {
  if (node.shown === text) return;
  node.shown = text;
  if (node.firstChild) node.firstChild.data = plain(text);
  else node.textContent = plain(text);
}

/** Lines of text, each of which may have several. The node shows line breaks. */
export function setLines(node, lines) {
  node.shown = undefined;
  const text = lines
    .flatMap((each) => each.split("\n"))
    .map(plain)
    .join("\n");
  // A selection stays where nothing changes.
  if (node.textContent !== text) node.textContent = text;
}

export function setClass(node, className) {
  if (node.className !== className) node.className = className;
}

/** What shows when the mouse rests on it. */
export function setTitle(node, text) {
  if (node.titled === text) return;
  node.titled = text;
  node.title = plain(text);
}

export function setAttribute(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

export function setStyle(node, name, value) {
  if (node.style[name] !== value) node.style[name] = value;
}

export function setHidden(node, hidden) {
  if (node.hidden !== hidden) node.hidden = hidden;
}

export function byId(id) {
  return document.getElementById(id);
}

/** One child of `parent` per item, in order, kept by key and changed in place. */
export function keyed(parent, items, keyOf, create, update) {
  parent.keyedRows ??= new Map();
  const seen = new Set();
  let before = null;
  for (const item of items) {
    const key = keyOf(item);
    seen.add(key);
    let row = parent.keyedRows.get(key);
    if (!row) {
      row = create(item);
      parent.keyedRows.set(key, row);
    }
    update(row, item);
    const place = before ? before.nextSibling : parent.firstChild;
    if (row.node !== place) parent.insertBefore(row.node, place);
    before = row.node;
  }
  for (const [key, row] of parent.keyedRows) {
    if (seen.has(key)) continue;
    row.node.remove();
    parent.keyedRows.delete(key);
  }
}

/** A button that copies the text of `textOf`. Outside of a secure context a browser has no clipboard, so it marks the text. */
export function copyButton(textOf, name = "Copy") {
  const copy = async () => {
    const copied = await Promise.resolve(navigator.clipboard?.writeText(textOf()).then(() => true)).catch(() => false);
    if (!copied) getSelection()?.selectAllChildren(node.previousElementSibling ?? node);
    node.textContent = copied ? "Copied" : "Marked: press Ctrl+C";
    setTimeout(() => (node.textContent = name), 2_000);
  };
  const node = button(name, copy, { className: "copy" });
  return node;
}
