// A request as the uploader follows it: where its points came from, so that it knows what to do with the answer.
import type { Frame } from "../../core/sink.ts";
import type { Part } from "../packing/packed-column.ts";
import type { Portion, PortionColumn } from "./portion.ts";

export type Shipment =
  | {
      readonly kind: "fresh";
      readonly frame: Frame;
      /** What to take from the window when it is accepted. */
      readonly parts: readonly Part[];
      /** When the oldest of its fresh points was taken, on the monotonic clock in milliseconds; undefined: all are backlog. */
      readonly since: number | undefined;
    }
  /** A part of a frame that was refused. */
  | { readonly kind: "suspect"; readonly frame: Frame; readonly portion: Portion }
  /** Points of parked inputs. `rest`: what was taken from the buffer with them and is not sent. */
  | {
      readonly kind: "probe";
      readonly frame: Frame;
      readonly portion: Portion;
      readonly rest: readonly PortionColumn[];
    };
