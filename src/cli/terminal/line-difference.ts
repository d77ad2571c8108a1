// What differs between two texts, line by line, as `diff -u` shows it. Pure.

/** Lines before and after a change that are shown with it. */
const around = 2;
/** Beyond it (lines times lines) what lies between the first and the last difference is taken for changed as a whole. */
const mostCompared = 4_000_000;

interface Line {
  readonly sign: " " | "-" | "+";
  readonly text: string;
}

/** Empty where they are the same. */
export function lineDifference(before: string, after: string): readonly string[] {
  const lines = compared(before.split(/\r?\n/), after.split(/\r?\n/));
  const shown = lines.map((_line, i) =>
    lines.slice(Math.max(0, i - around), i + around + 1).some(({ sign }) => sign !== " "),
  );
  const result: string[] = [];
  let number = 1;
  for (const [i, { sign, text }] of lines.entries()) {
    if (shown[i] === true) {
      if (shown[i - 1] !== true) result.push(`@@ line ${number} @@`);
      result.push(`${sign}${text}`);
    }
    if (sign !== "+") number++;
  }
  return result;
}

function compared(before: readonly string[], after: readonly string[]): readonly Line[] {
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < before.length - head && tail < after.length - head && before.at(-1 - tail) === after.at(-1 - tail))
    tail++;
  const same = (lines: readonly string[]) => lines.map((text): Line => ({ sign: " ", text }));
  return [
    ...same(before.slice(0, head)),
    ...changed(before.slice(head, before.length - tail), after.slice(head, after.length - tail)),
    ...same(before.slice(before.length - tail)),
  ];
}

/** By the longest common subsequence. */
function changed(before: readonly string[], after: readonly string[]): readonly Line[] {
  const gone = (text: string): Line => ({ sign: "-", text });
  const come = (text: string): Line => ({ sign: "+", text });
  if (before.length * after.length > mostCompared) return [...before.map(gone), ...after.map(come)];
  const width = after.length + 1;
  // Length of the longest common subsequence of what follows position (i, j).
  const longest = new Uint32Array((before.length + 1) * width);
  const at = (i: number, j: number) => longest[i * width + j] ?? 0;
  for (let i = before.length - 1; i >= 0; i--)
    for (let j = after.length - 1; j >= 0; j--)
      longest[i * width + j] = before[i] === after[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const lines: Line[] = [];
  let i = 0;
  let j = 0;
  while (i < before.length || j < after.length) {
    const [old, fresh] = [before[i], after[j]];
    if (old !== undefined && old === fresh) {
      lines.push({ sign: " ", text: old });
      i++;
      j++;
    } else if (old !== undefined && (fresh === undefined || at(i + 1, j) >= at(i, j + 1))) {
      lines.push(gone(old));
      i++;
    } else {
      lines.push(come(fresh ?? ""));
      j++;
    }
  }
  return lines;
}
