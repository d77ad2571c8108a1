// The values with which the service may end, whatever happened before.
import type { InputId, Point } from "../../src/core/point.ts";
import { keyOf } from "./scripted-sink.ts";

/** `input time`, the stored value, and the allowed values. */
export type Difference = [key: string, stored: number | undefined | string, allowed: (number | undefined | string)[]];

interface Refused {
  readonly input: InputId;
  readonly time: number;
  readonly value: number;
}

/** Shifted values of one time stay well within this distance. */
const secondMicros = 1e6;
const secondOf = (time: number) => Math.floor(time / secondMicros) * secondMicros;

/** `appended` is in the order of the appends, with times in whole seconds. `stored` maps `keyOf` to the value. */
export function differencesOf(
  appended: readonly Point[],
  refused: readonly Refused[],
  stored: ReadonlyMap<string, number>,
): Difference[] {
  const kept = appended.filter(({ sameTime }) => sameTime === "keep");
  const others = appended.filter(({ sameTime }) => sameTime !== "keep");
  return [...replacedWrongly(others, refused, stored), ...keptWrongly(kept, refused, stored)];
}

/** Only the value appended last may be stored, not counting values that the service refused permanently. */
function replacedWrongly(
  points: readonly Point[],
  rejects: readonly Refused[],
  stored: ReadonlyMap<string, number>,
): Difference[] {
  const appended = Map.groupBy(points, ({ input, time }) => keyOf(input, time));
  const refused = new Set(rejects.map(({ input, time, value }) => `${keyOf(input, time)} ${value}`));
  const differences: Difference[] = [];
  for (const [key, values] of appended) {
    // A permanently refused value may have been delivered again and then accepted.
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

/**
 * Every value must have its own time within the second, in the order of the appends. Redelivered values may be stored
 * twice.
 */
function keptWrongly(
  points: readonly Point[],
  rejects: readonly Refused[],
  stored: ReadonlyMap<string, number>,
): Difference[] {
  /** By `input second`: values that the service received or permanently refused, with their times. */
  const found = new Map<string, Refused[]>();
  const add = (one: Refused) => {
    const key = keyOf(one.input, secondOf(one.time));
    found.set(key, [...(found.get(key) ?? []), one]);
  };
  for (const [key, value] of stored) {
    const [input = "", time] = key.split(" ");
    add({ input: input as InputId, time: Number(time), value }); // one of the appended inputs
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
