// What a driver knows of times of which values are missing, for the gap record of the agent.
import type { EpochMicros } from "./point.ts";
import type { Captures, TagId } from "./tag.ts";

/**
 * How values of the time since the connection before this one come after all. `kept`: the other side has kept all of
 * them and hands them over. `history`: they are looked for, and each tag that misses some is told in `Delivery.gaps`.
 */
export type Recovery =
  | {
      readonly how: "kept";
      /** As it is shown: `the broker had kept the session`. */
      readonly by: string;
    }
  | { readonly how: "history" };

/** A time of which values of one tag are missing. Told again when it becomes known what comes of it. */
export interface TagGap {
  readonly tag: TagId;
  readonly captures: Captures;
  /** As `Reading.address`: what a second address of an Input ID misses is not missing there. Undefined: the tag's only one. */
  readonly address?: string;
  /** The value before the gap and the one after it; both are there. */
  readonly from: EpochMicros;
  readonly to: EpochMicros;
  /**
   * `interruption`: nobody was connected, or the server had started again. `overflow`: the other side threw values away
   * although somebody was connected.
   */
  readonly cause: "interruption" | "overflow";
  /** `open`: the missing values are being looked for. Told `filled` behind the readings that fill it. */
  readonly state: "open" | "filled" | "lost";
  /** Why it is a gap; where `lost`, why it could not be filled: `BadHistoryOperationUnsupported`. */
  readonly reason: string;
}
