// A row of the gap record. The file, `/api/gaps` and `tagferry gaps --json` share its schema.
import { z } from "zod";
import { epochMicros } from "../../core/point.ts";

/**
 * Why nothing was recorded.
 * - `agentDown`: the agent was not running.
 * - `disconnected`: the source could not be reached.
 * - `stopped`: the source was restarted by a configuration change.
 * - `takeover`: another agent of the cluster read the source before, or none held its lease.
 * - `bad`: the device or broker gave no usable value.
 * - `refused`: the Input ID of the tag cannot be used.
 * - `overflow`: the server discarded values.
 * - `buffer`: points could not be stored, or were lost from the buffer.
 */
const gapCauses = ["agentDown", "disconnected", "stopped", "takeover", "bad", "refused", "overflow", "buffer"] as const;
/** `filling`: values are being recovered. `filled`: recovered, or none were missing. `partly`: of some tags only. */
const gapStates = ["open", "filling", "filled", "partly", "lost"] as const;
type GapState = (typeof gapStates)[number];

const settled = (state: GapState) => ({ filling: state, filled: state, partly: state, lost: state });

/**
 * The state machine of a gap: event → state before (`none`: new row) → next state. `docs/internals.md` has the same
 * table.
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
  /** Name of the source. Left out: the buffer, whose points may be from any source. */
  source: z.string().optional(),
  cause: z.enum(gapCauses),
  /** Text for the operator, in lower case: the error, or the device's message. */
  reason: z.string(),
  /** Microseconds since 1970. Nothing is missing outside the row; inside it, see `intervals`. */
  from: micros,
  /** Left out while the gap is open. */
  to: micros.optional(),
  state: z.enum(gapStates),
  /** Number of tags; 0: unknown. */
  tags: z.int(),
  /** Their Input IDs, at most 1,000. Empty: the whole source. */
  inputs: z.array(z.string()),
  /** How many interruptions the row stands for. Interruptions that follow each other closely share a row. */
  times: z.int().default(1),
  /** Begin and end of each interruption if there are several. The oldest may be merged. */
  intervals: z.array(z.tuple([micros, micros])).optional(),
  /** Total duration of the interruptions in milliseconds. Left out while the gap is open. */
  missingMs: z.number().optional(),
  /** Points that are known to be lost. */
  points: z.int().optional(),
  /** The outcome as text: what retained the values, or why they could not be recovered. */
  outcome: z.string().optional(),
  /** The tags that were not recovered (`partly`), or will not be (`filling`). */
  unfilled: namedTags.optional(),
  /** The tags being recovered (`filling`). */
  asked: namedTags.optional(),
});
export type Gap = z.output<typeof gapSchema>;

/** Most Input IDs that a row names. */
const mostInputs = 1_000;

/** The number of tags, and the names of at most `mostInputs` of them, sorted. */
export function named(tags: number, inputs: Iterable<string>): z.output<typeof namedTags> {
  return { tags, inputs: [...Iterator.from(inputs).take(mostInputs)].toSorted() };
}

/** The answer of `/api/gaps`, newest gap first. */
export const gapListSchema = z.object({
  time: micros,
  gaps: z.array(gapSchema),
  /** How many more gaps there are in the requested time. */
  more: z.int(),
  /** Oldest time in the record. Left out if it is empty. */
  since: micros.optional(),
});
export type GapList = z.output<typeof gapListSchema>;

export interface GapSummary {
  readonly open: number;
  /** Sources with an open gap. Left out if there are none. */
  readonly openIn?: readonly string[];
  /** Gaps of the last 24 hours, and those of them that are `lost` or `partly`. */
  readonly day: number;
  readonly dayLost: number;
  /** Those of `dayLost` that a reload caused, each a minute long at most. Left out if there are none. */
  readonly dayReloads?: number;
  /** Values lost in the others. Left out if the number is unknown for some of them. */
  readonly dayPoints?: number;
  /** The latest of the others. Left out if there is none. */
  readonly lastLost?: Pick<Gap, "source" | "from" | "to" | "cause" | "reason">;
  /** Changes with every change of a row, as a sign to fetch `/api/gaps` again. */
  readonly revision: number;
}
