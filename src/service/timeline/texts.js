// Times as people read them.

export function whenText(ms) {
  const date = new Date(ms);
  const year = date.getFullYear() === new Date().getFullYear() ? undefined : "numeric";
  const day = date.toLocaleDateString(undefined, { weekday: "short", day: "numeric", month: "short", year });
  return `${day} ${clock(date, true)}`;
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
  if (decimals > 6 || step > 1e9) return splits.map((value) => (value === 0 ? "0" : value.toExponential(1)));
  return splits.map((value) => (value + 0).toLocaleString(undefined, { maximumFractionDigits: decimals }));
}
