// Times and numbers as people read them, and the elements that show them. Names stand in a <bdi>.

export function whenText(ms) {
  const date = new Date(ms);
  const year = date.getFullYear() === new Date().getFullYear() ? undefined : "numeric";
  const day = date.toLocaleDateString(undefined, { weekday: "short", day: "numeric", month: "short", year });
  return `${day} ${clock(date, true)}`;
}

/** The time alone where it is on the same day as `near`. */
export function timeText(ms, near) {
  const date = new Date(ms);
  return date.toDateString() === new Date(near).toDateString() ? clock(date, true) : whenText(ms);
}

/** An element with these properties and children. Strings become text nodes. */
export function element(name, properties = {}, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}

/** The mark of a series in its colour. */
export function dotOf({ color }) {
  const dot = element("span", { className: "dot" });
  dot.style.background = color;
  return dot;
}

/** Seven digits, and all those before the decimal point; very small and very large numbers with an exponent. */
export function numberText(value) {
  const size = Math.abs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-6)) return Number(value.toPrecision(7)).toExponential();
  const digits = { maximumSignificantDigits: 7, maximumFractionDigits: 0, roundingPriority: "morePrecision" };
  return (value + 0).toLocaleString(undefined, digits);
}

const two = (number) => String(number).padStart(2, "0");
function clock(date, seconds) {
  return `${two(date.getHours())}:${two(date.getMinutes())}${seconds ? `:${two(date.getSeconds())}` : ""}`;
}

/** Texts of the time axis; the first one and those of midnight have the date. */
export function timeTexts(_u, splits, _axis, _space, step) {
  let before;
  return splits.map((ms) => {
    const date = new Date(ms);
    const day = date.toLocaleDateString(undefined, { day: "numeric", month: "short" });
    const dated = day !== before;
    before = day;
    if (step >= 28 * 86_400_000) return date.toLocaleDateString(undefined, { month: "short", year: "numeric" });
    if (step >= 86_400_000) return day;
    const fraction = step < 1_000 ? `.${String(date.getMilliseconds()).padStart(3, "0")}` : "";
    return `${clock(date, step < 60_000)}${fraction}${dated ? `\n${day}` : ""}`;
  });
}

/** Texts of an axis of numbers, with as many decimals as tell its ticks apart. */
export function numberTexts(splits) {
  const step = Math.abs(splits[1] - splits[0]) || 1;
  const decimals = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9) + 1);
  const largest = Math.max(...splits.map(Math.abs));
  if (decimals > 6 || largest >= 1e9) {
    const digits = Math.max(1, Math.ceil(Math.log10(largest / step) - 1e-9));
    return splits.map((value) => (value === 0 ? "0" : value.toExponential(Math.min(digits, 15))));
  }
  return splits.map((value) => (value + 0).toLocaleString(undefined, { maximumFractionDigits: decimals }));
}
