// A row of the gap record: an interval in which tags were not recorded, and what became of it. The schema is that of the
// file, of `/api/gaps` and of `tagferry gaps --json`.
import { z } from "zod";
import { epochMicros } from "../../core/point.ts";

/**
 * Why nothing was recorded. `agentDown`: the agent was not running. `disconnected`: the source could not be reached.
 * `stopped`: the source was not running, since its configuration was changed. `bad`: device or broker gave no usable
 * value. `refused`: no Input ID for it. `overflow`: the server discarded values. `buffer`: points could not be
 * stored, or were lost from the buffer.
 */
const gapCauses = ["agentDown", "disconnected", "stopped", "bad", "refused", "overflow", "buffer"] as const;
/**
 * `open`: it goes on. `filling`: it is over, and its values are being looked for. `filled`: they have come, or there were
 * none. `partly`: of some tags only. `lost`: they will not come.
 */
const gapStates = ["open", "filling", "filled", "partly", "lost"] as const;
type GapState = (typeof gapStates)[number];

const settled = (state: GapState) => ({ filling: state, filled: state, partly: state, lost: state });

/**
 * The life of a gap: from each event to the state that follows, by the state before (`none`: the row is new). An event does
 * not change a row in any other state. The README has the same table.
 */
export const gapLife = {
  begins: { none: "open" },
  reported: { none: "filling" },
  ends: { none: "lost", open: "lost" },
  connected: { open: "filling" },
  retained: { open: "filled", filling: "filled" },
  asked: settled("filling"),
  found: settled("filled"),
  partlyFound: settled("partly"),
  notFound: settled("lost"),
  abandoned: { open: "lost", filling: "lost" },
} as const satisfies Record<string, Partial<Record<GapState | "none", GapState>>>;
export type GapEvent = keyof typeof gapLife;

export function stateAfter(event: GapEvent, before: GapState): GapState | undefined {
  const states: Partial<Record<GapState | "none", GapState>> = gapLife[event];
  return states[before];
}

const micros = z.int().transform(epochMicros);
const namedTags = z.object({ tags: z.int(), inputs: z.array(z.string()) });

export const gapSchema = z.object({
  id: z.int(),
  /** Name of the source; left out: the buffer, whose points may be of any. */
  source: z.string().optional(),
  cause: z.enum(gapCauses),
  /** For people, in lower case: the error, or what the device said. */
  reason: z.string(),
  /** Microseconds since 1970. Nothing outside is missing; within, see `times`. */
  from: micros,
  /** Left out while it is open. */
  to: micros.optional(),
  state: z.enum(gapStates),
  /** How many tags; 0: not known. */
  tags: z.int(),
  /** Their Input IDs, at most 1,000; empty: all of the source. */
  inputs: z.array(z.string()),
  /** How many interruptions the row stands for: more than 1 where they followed each other closely. */
  times: z.int().default(1),
  /** Begin and end of each of them, where there are several; the oldest ones may have become one. */
  intervals: z.array(z.tuple([micros, micros])).optional(),
  /** Milliseconds that nothing was recorded, summed up over `times`. Left out while it is open. */
  missingMs: z.number().optional(),
  /** Points that are known to be lost. */
  points: z.int().optional(),
  /** What became of it: who had kept the values, why they could not be had. */
  outcome: z.string().optional(),
  /** Of a gap that is `partly` filled: the tags that were not. Of one that is `filling`: those that will not be. */
  unfilled: namedTags.optional(),
  /** Of a gap that is `filling`: the tags that are looked for. */
  asked: namedTags.optional(),
});
export type Gap = z.output<typeof gapSchema>;

/** Input IDs that a row names at most. */
const mostInputs = 1_000;

/** How many tags, and the first of them by name. */
export function named(tags: number, inputs: Iterable<string>): z.output<typeof namedTags> {
  return { tags, inputs: [...Iterator.from(inputs).take(mostInputs)].toSorted() };
}

/** What `/api/gaps` answers. Newest first. */
export const gapListSchema = z.object({
  time: micros,
  gaps: z.array(gapSchema),
  /** How many more there are within the time that was asked for. */
  more: z.int(),
  /** Since when the record goes back; left out where it is empty. */
  since: micros.optional(),
});
export type GapList = z.output<typeof gapListSchema>;

/** For the status: how many there are. */
export interface GapSummary {
  /** Gaps that go on. */
  readonly open: number;
  /** Gaps of the last 24 hours, and those of them that are `lost` or `partly`. */
  readonly day: number;
  readonly dayLost: number;
  /** Changes whenever a row does: time to ask `/api/gaps` again. */
  readonly revision: number;
}
