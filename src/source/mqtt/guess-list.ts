// Lists whose elements say which signal they are of: `[{"channel":"temperature","value":22.4}, …]`. Pure.
import type { EpochMicros } from "../../core/point.ts";
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
