// A request as the uploader follows it: where its points came from, so that it knows what to do with the answer.
import type { Lane } from "../core/buffer.ts";
import type { Frame } from "../core/sink.ts";
import type { PlannedColumn } from "./frame-plan.ts";
import type { Portion } from "./portion.ts";
import type { SeriesQueue } from "./series-queue.ts";

export type Shipment =
  | {
      readonly kind: "fresh";
      readonly frame: Frame;
      readonly lane: Lane;
      readonly columns: readonly PlannedColumn<SeriesQueue>[];
      /** When the oldest of its points was taken, on the monotonic clock in milliseconds. */
      readonly since: number;
    }
  /** A part of a frame that was refused. */
  | { readonly kind: "suspect"; readonly frame: Frame; readonly portion: Portion };
