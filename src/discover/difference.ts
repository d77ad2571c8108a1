// The unified difference of a configuration file, without the secrets of the lines that are there already. Pure.
import { shownLine } from "../config/nodes/excerpt.ts";

/** Lines of the file around a change. */
const context = 3;

/** Empty: nothing changes. `before` undefined: there is no such file yet. */
export function difference(file: string, before: string | undefined, after: string): string {
  const old = linesOf(before ?? "");
  const next = linesOf(after);
  let same = 0;
  while (same < old.length && same < next.length && old[same] === next[same]) same++;
  let sameEnd = 0;
  while (sameEnd < Math.min(old.length, next.length) - same && old.at(-1 - sameEnd) === next.at(-1 - sameEnd))
    sameEnd++;
  if (before !== undefined && same === old.length && same === next.length) return "";
  const from = Math.max(0, same - context);
  const to = Math.min(sameEnd, context);
  const removed = range(same, old.length - sameEnd);
  // A changed line still has the secrets of the former one. An added one has a reference to a password at most.
  const isAddition = removed.every((i) => shownLine(old, i) === old[i]);
  const lines = [
    ...range(from, same).map((i) => ` ${shownLine(old, i)}`),
    ...removed.map((i) => `-${shownLine(old, i)}`),
    ...range(same, next.length - sameEnd).map((i) => `+${isAddition ? next[i] : shownLine(next, i)}`),
    ...range(old.length - sameEnd, old.length - sameEnd + to).map((i) => ` ${shownLine(old, i)}`),
  ];
  const oldCount = old.length - sameEnd + to - from;
  const newCount = next.length - sameEnd + to - from;
  const place = (count: number) => `${count === 0 ? 0 : from + 1},${count}`;
  return [
    `--- ${before === undefined ? "/dev/null" : file}`,
    `+++ ${file}`,
    `@@ -${place(oldCount)} +${place(newCount)} @@`,
    ...lines,
  ].join("\n");
}

function linesOf(text: string): readonly string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}

function range(from: number, to: number): readonly number[] {
  return Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);
}
