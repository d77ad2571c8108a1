// What the log is asked for when points are taken from it, and what it answers.
import type { Lane } from "../../../core/buffer.ts";
import type { ShelfBlock } from "./block-layout.ts";

export interface TakeRequest {
  readonly lane: Lane;
  readonly maxPoints: number;
  /** As in `TakeOptions`. Undefined: `maxPoints`. */
  readonly enough?: number | undefined;
  /** Numbers of the series that are wanted. Undefined: all. */
  readonly inputs?: ReadonlySet<number> | undefined;
  /** Numbers of the series that are not wanted. */
  readonly except?: ReadonlySet<number> | undefined;
  /** Sequence number of the segment to begin with: `resumeAt` of the request before. */
  readonly from?: number | undefined;
}

export interface Taken {
  readonly block: ShelfBlock | undefined;
  /** There may be more from that segment on; looking there was left for another request, so that commits are not kept waiting. */
  readonly resumeAt: number | undefined;
}
