// Lists whose elements say which signal they are of, `[{"channel":"temperature","value":22.4}, …]`, and blocks of samples of
// one signal, `{"t0":1767225600000,"dt_us":2500,"x":[12,-7, …]}`. Pure.
import type { EpochMicros } from "../../../core/point.ts";
import { isTime, timeName } from "./guess-format.ts";

/** What names and values of the elements are called. */
export interface NamedList {
  /** The member that tells the elements apart. */
  readonly key: string;
  /** The member with the time of each. */
  readonly time: string | undefined;
  /** Members that are values, with that of the first element. */
  readonly values: readonly (readonly [name: string, value: number | boolean])[];
}

const keys = /^(?:name|channel|id|key|tag|sensor|type|n)$/i;
const simple = /^[A-Za-z_]\w*$/;

/** Undefined: the elements are told apart by their place alone. */
export function namedList(elements: readonly unknown[], now: EpochMicros): NamedList | undefined {
  const maps = elements.filter(
    (element): element is Readonly<Record<string, unknown>> =>
      typeof element === "object" && element !== null && !Array.isArray(element),
  );
  const [first] = maps;
  if (!first || maps.length < elements.length) return undefined;
  const members = Object.entries(first).filter(([name]) => simple.test(name));
  const key = members.find(([name]) => {
    const texts = maps.map((element) => element[name]);
    return keys.test(name) && texts.every((text) => typeof text === "string") && new Set(texts).size === texts.length;
  })?.[0];
  const time = members.find(([name, value]) => timeName.test(name) && isTime(value, now))?.[0];
  const values = members.flatMap(([name, value]) =>
    name !== time && (typeof value === "number" || typeof value === "boolean") ? [[name, value] as const] : [],
  );
  return key === undefined || values.length === 0 ? undefined : { key, time, values };
}

/** Where a block has the time of its first sample, and that between two. */
export interface SampleBlock {
  readonly start: string;
  readonly step: string;
  readonly unit: string;
}

/** Shorter lists of numbers are rather signals of their own. */
const leastSamples = 16;
const startName = /^(?:t0|start)$/i;
const stepName = /^(?:dt|step|interval|period)(?:_(s|ms|us|ns))?$/i;

/** How the numbers in `found`, a member of `parent`, lie in time; undefined: they are no block, or it is not said. */
export function sampleBlock(found: unknown, parent: object, now: EpochMicros): SampleBlock | undefined {
  if (!Array.isArray(found) || found.length < leastSamples || !found.every((each) => typeof each === "number"))
    return undefined;
  const members = Object.entries(parent).filter(([name]) => simple.test(name));
  const start = members.find(
    ([name, value]) => (timeName.test(name) || startName.test(name)) && isTime(value, now),
  )?.[0];
  const step = members.find(([name, value]) => stepName.test(name) && typeof value === "number")?.[0];
  if (start === undefined || step === undefined) return undefined;
  return { start, step, unit: stepName.exec(step)?.[1]?.toLowerCase() ?? "ms" };
}
