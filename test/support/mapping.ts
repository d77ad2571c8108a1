// A mapping for a test: rules as in a configuration, readings in one call, points as [input, value].
import type { z } from "zod";
import { epochMicros } from "../../src/core/point.ts";
import type { PartialSignalMetadata } from "../../src/core/signal.ts";
import type { Captures, Reading, TagId } from "../../src/core/source.ts";
import { InputOwners } from "../../src/mapping/input-owners.ts";
import type { Mapping } from "../../src/mapping/mapping.ts";
import { type TagRule, tagOptions } from "../../src/mapping/options.ts";
import { type MappingParts, openMapping } from "../../src/mapping/source-mapping.ts";
import { ManualClock, type TestRuntime, testRuntime } from "./runtime.ts";

export interface TriedMapping {
  readonly mapping: Mapping;
  readonly clock: ManualClock;
  readonly runtime: TestRuntime;
  /** The descriptions that the catalog received, in order. */
  readonly described: readonly (readonly [input: string, signal: PartialSignalMetadata])[];
  /** Maps one reading with the clock's current time. Returns the points as [input, value]. */
  readonly read: (value: Reading["value"], given?: Partial<Reading>) => readonly (readonly [string, number])[];
}

export const rule = (given: Partial<z.input<typeof tagOptions>>): TagRule => tagOptions.parse({ input: "a", ...given });

export function tryMapping(
  rules: readonly Partial<z.input<typeof tagOptions>>[],
  options: { source?: string } & Pick<MappingParts, "owners" | "addresses" | "ambiguities" | "watch"> = {},
): TriedMapping {
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  const described: [string, PartialSignalMetadata][] = [];
  const mapping = openMapping(
    {
      source: "bus1",
      rules: rules.map(rule),
      catalog: { describe: (input, signal) => described.push([input, signal]) },
      owners: new InputOwners(),
      ...options,
    },
    runtime,
  );
  return {
    mapping,
    clock,
    runtime,
    described,
    read: (value, given) =>
      mapping
        .map({ readings: [reading(value, { time: clock.now(), ...given })], descriptions: [] })
        .map(({ input, value: stored }) => [input, stored]),
  };
}

const nothing: Captures = {};

export function reading(value: Reading["value"], given: Partial<Reading> = {}): Reading {
  return {
    tag: tagId(0),
    captures: nothing,
    address: "hr:0",
    value,
    time: epochMicros(0),
    clock: "device",
    quality: "good",
    historical: false,
    ...given,
  };
}

/** The identity of a tag is its index in the list. */
export function tagId(index: number): TagId {
  return index as TagId;
}
