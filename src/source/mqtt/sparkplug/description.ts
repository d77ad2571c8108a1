// Properties of a metric as what the service keeps of a signal. Pure.
import type { Description } from "../../../core/source.ts";
import type { SparkplugMetric } from "./payload.ts";

/** Names that edge nodes use for the same thing, in the order they are believed. */
const unitNames = ["engUnit", "EngUnit", "Engineering Units", "engineeringUnits", "unit", "units"];
const textNames = ["Documentation", "documentation", "description", "Description", "tooltip"];
const lowNames = ["engLow", "EngLow", "Low", "min"];
const highNames = ["engHigh", "EngHigh", "High", "max"];

/** Unit, description and range, as far as the properties say; undefined when they say nothing. */
export function describeMetric({ properties }: SparkplugMetric): Pick<Description, "signal" | "range"> | undefined {
  const find = (names: readonly string[]) =>
    names.map((name) => properties[name]).find((value) => value !== undefined && value !== "");
  const engUnit = find(unitNames);
  const description = find(textNames);
  const min = find(lowNames);
  const max = find(highNames);
  const range = typeof min === "number" && typeof max === "number" && min < max ? { min, max } : undefined;
  const signal = {
    ...(typeof engUnit === "string" && { engUnit }),
    ...(typeof description === "string" && { description }),
  };
  if (Object.keys(signal).length === 0 && !range) return undefined;
  return { signal, ...(range && { range }) };
}
