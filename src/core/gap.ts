// What a driver reports about gaps, which are intervals with missing values. The agent enters them in its gap record.
import type { EpochMicros } from "./point.ts";
import type { Captures, TagId } from "./tag.ts";

/**
 * How values since the previous connection are recovered. `kept`: the broker or server kept all and delivers them.
 * `history`: the driver reads them from the device's history and reports incomplete tags in `Delivery.gaps`.
 */
export type Recovery =
  | {
      readonly how: "kept";
      /** The reason, for people: `the broker had kept the session`. */
      readonly by: string;
    }
  | { readonly how: "history" };

/** An interval in which one tag misses values. Reported again, with the same times, when its state changes. */
export interface TagGap {
  readonly tag: TagId;
  readonly captures: Captures;
  /** As `Reading.address`. Only gaps of the address that feeds an Input ID count. Undefined: the only address. */
  readonly address?: string;
  /** Times of the last value before and the first value after the gap. Both values are delivered. */
  readonly from: EpochMicros;
  readonly to: EpochMicros;
  /** `interruption`: connection lost or server restarted. `overflow`: broker or server discarded queued values. */
  readonly cause: "interruption" | "overflow";
  /** `open`: recovery is in progress. A gap is reported as `filled` after the readings that fill it. */
  readonly state: "open" | "filled" | "lost";
  /** Why it is a gap; where `lost`, why it could not be filled: `BadHistoryOperationUnsupported`. */
  readonly reason: string;
}
