// What the service may end with, whatever happened on the way.
import type { InputId, Point } from "../../src/core/point.ts";
import { keyOf } from "./scripted-sink.ts";

/** `input time`, what the service has there, and what it may have. */
export type Difference = [key: string, stored: number | undefined | string, allowed: (number | undefined | string)[]];

interface Refused {
  readonly input: InputId;
  readonly time: number;
  readonly value: number;
}

/** Shifted values of one time stay far below this distance. */
const secondMicros = 1e6;
const secondOf = (time: number) => Math.floor(time / secondMicros) * secondMicros;

/** `appended` in the order of its appends; its times are whole seconds. `stored`: `keyOf` → value. */
export function differencesOf(
  appended: readonly Point[],
  refused: readonly Refused[],
  stored: ReadonlyMap<string, number>,
): Difference[] {
  const kept = appended.filter(({ sameTime }) => sameTime === "keep");
  const others = appended.filter(({ sameTime }) => sameTime !== "keep");
  return [...replacedWrongly(others, refused, stored), ...keptWrongly(kept, refused, stored)];
}

/** The value appended last, of those that the service did not refuse for good. */
function replacedWrongly(
  points: readonly Point[],
  rejects: readonly Refused[],
  stored: ReadonlyMap<string, number>,
): Difference[] {
  const appended = Map.groupBy(points, ({ input, time }) => keyOf(input, time));
  const refused = new Set(rejects.map(({ input, time, value }) => `${keyOf(input, time)} ${value}`));
  const differences: Difference[] = [];
  for (const [key, values] of appended) {
    // What the service refused for good may have been delivered again, and taken then.
    const allowed: (number | undefined)[] = [];
    for (const { value } of values.toReversed()) {
      allowed.push(value);
      if (!refused.has(`${key} ${value}`)) break;
    }
    if (refused.has(`${key} ${allowed.at(-1)}`)) allowed.push(undefined);
    if (!allowed.includes(stored.get(key))) differences.push([key, stored.get(key), allowed]);
  }
  return differences;
}

/** Every value at a time of its own within the second, in the order of their appends; delivered again they may be there twice. */
function keptWrongly(
  points: readonly Point[],
  rejects: readonly Refused[],
  stored: ReadonlyMap<string, number>,
): Difference[] {
  /** `input second` → what of it reached the service, or was refused for good, by time. */
  const found = new Map<string, Refused[]>();
  const add = (one: Refused) => {
    const key = keyOf(one.input, secondOf(one.time));
    found.set(key, [...(found.get(key) ?? []), one]);
  };
  for (const [key, value] of stored) {
    const [input = "", time] = key.split(" ");
    add({ input: input as InputId, time: Number(time), value }); // one of those that were appended
  }
  for (const one of rejects) if (stored.get(keyOf(one.input, one.time)) !== one.value) add(one);
  const differences: Difference[] = [];
  for (const [key, all] of Map.groupBy(points, ({ input, time }) => keyOf(input, time))) {
    const there = (found.get(key) ?? []).toSorted((a, b) => a.time - b.time).map(({ value }) => value);
    let at = 0;
    for (const { value } of all) {
      at = there.indexOf(value, at) + 1;
      if (at > 0) continue;
      differences.push([key, there.join(" "), [all.map((each) => each.value).join(" ")]]);
      break;
    }
  }
  return differences;
}
