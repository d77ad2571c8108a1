// What must not be in the end of a soak: values that are missing without a word, values stored twice, errors in the log
// that nothing explains. Pure.
import type { Gap } from "../../src/agent/gaps/gap.ts";
import type { Stored } from "../../src/demo/comparison.ts";
import type { Held, SoakPlant } from "./soak-plant.ts";

export interface Findings {
  /** Acknowledged by the broker and not in the service. */
  readonly missing: readonly string[];
  /** Of MQTT, in the service under two times. */
  readonly twice: readonly string[];
  /** Read from a device, neither in the service nor in the gap record. */
  readonly unexplained: readonly string[];
  /** How many of them the gap record explains. */
  readonly explained: number;
  /** Lines of level 50 and more that no fault explains. */
  readonly errors: readonly string[];
}

/** What a fault here makes the agent log as an error. */
const expectedErrors: readonly RegExp[] = [
  // A full disk.
  /^points cannot be stored, reading is held back$/,
  /^refused points cannot be written down/,
];

export function unexplained(found: {
  readonly plant: Pick<SoakPlant, "acknowledged" | "polled">;
  readonly stored: Stored;
  readonly gaps: readonly Gap[];
  readonly errors: readonly Readonly<Record<string, unknown>>[];
}): Findings {
  const { plant, stored, gaps } = found;
  const isMissing = ({ input, value }: Held) => !stored.get(input)?.has(value);
  const lost = plant.polled.filter(isMissing);
  const open = lost.filter((held) => !gaps.some((gap) => covers(gap, held, between(held, stored))));
  return {
    missing: plant.acknowledged.filter(isMissing).map(told),
    twice: plant.acknowledged.filter(({ input, value }) => (stored.get(input)?.get(value)?.length ?? 0) > 1).map(told),
    unexplained: open.map(told),
    explained: lost.length - open.length,
    errors: found.errors
      .filter(({ msg }) => !expectedErrors.some((known) => known.test(String(msg))))
      .map((line) => JSON.stringify(line)),
  };
}

const told = ({ input, value, at }: Held) => `${input} ${value} at ${new Date(at / 1_000).toISOString()}`;

/**
 * The times of the nearest values before and after that are stored. A device counts a reply where it sends it, and the
 * agent where it asked: the moment of a value that is missing may lie a little outside of the row, its neighbours do not.
 */
function between({ input, value }: Held, stored: Stored): readonly [number, number] {
  let [before, after] = [
    [-1, 0],
    [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
  ] as [[number, number], [number, number]];
  for (const [other, times] of stored.get(input) ?? []) {
    const time = times[0] ?? 0;
    if (other < value && other > before[0]) before = [other, time];
    if (other > value && other < after[0]) after = [other, time];
  }
  return [before[1], after[1]];
}

/** Whether the record says that something of this input is missing between these times. */
function covers(
  { from, to, intervals, inputs, state, unfilled }: Gap,
  { input }: Held,
  [before, after]: readonly [number, number],
): boolean {
  if (state === "filled") return false;
  const times = intervals ?? [[from, to ?? Number.POSITIVE_INFINITY] as const];
  const concerned = state === "partly" ? (unfilled?.inputs ?? []) : inputs;
  return (
    (concerned.length === 0 || concerned.includes(input)) &&
    times.some(([begin, end]) => begin < after && end > before && end > begin)
  );
}
