// The row of the time in which the points of a source cannot be stored. Its deliveries are not pulled meanwhile.
//
//   state     event                          next      the row
//   stores    the disk fails or hangs        fails     begins
//   fails     stored; polled                 waits     is filled: the driver queues readings, and reports dropped ones
//   fails     stored; nothing keeps values   stores    is lost
//   fails     stored; the device keeps them  waits     is being filled, since the connection may be gone unnoticed
//   waits     15 s later                     stores    is filled
//   waits     the connection is lost         stores    is being filled; the next connection decides, as of an outage
//   waits     the same; polled               stores    ends with the last reading: the connection was lost then
//   fails     the source or the agent ends   -         the same if the device keeps values, otherwise lost
import type { AgentError } from "../../core/errors.ts";
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import type { Clock } from "../../core/runtime.ts";
import type { Source } from "../../core/source.ts";
import { type GapRecord, hungAfterMs } from "./gap-record.ts";

/** After a connection, a source delivers its first values and reports the missing ones within this time. */
export const settledAfterMs = 15_000;

type Connection = Pick<Source, "retainedBy" | "polled">;

export interface BufferHoldParts {
  readonly source: string;
  readonly tags: number;
  /** Up to when everything was recorded. */
  readonly lastReceived: () => EpochMicros;
}

export function bufferHold(record: GapRecord, { source, tags, lastReceived }: BufferHoldParts, clock: Clock) {
  let row: number | undefined;
  let storingSinceMs: number | undefined;
  /** The last row, until the kept values must have come, and its end. `retainedBy` is undefined for the agent itself. */
  let waiting:
    | (Pick<Connection, "retainedBy"> & { readonly row: number; readonly to: EpochMicros; sinceMs: number })
    | undefined;

  function begin(reason: string): void {
    const gap = { source, cause: "buffer", reason, from: lastReceived(), tags } as const;
    row ??= record.add("begins", { ...gap, inputs: [] });
  }

  /** Ends the row. The source stops, or points can be stored again. */
  function end(connection: Connection | undefined): void {
    const event = connection?.retainedBy === undefined ? "ends" : "connected";
    if (row !== undefined) record.advance(row, event, { to: clock.now() });
  }

  return {
    get isOpen(): boolean {
      return row !== undefined;
    },
    /** Since when values may still be kept, or may not have been read. Undefined: they have come. */
    get waitsSince(): EpochMicros | undefined {
      return waiting && (waiting.retainedBy === undefined ? lastReceived() : waiting.to);
    },
    /** Points are being appended to the buffer. */
    storing(): void {
      storingSinceMs ??= clock.monotonic();
    },
    /** The process was suspended for this long, which is no fault of the disk. Nothing came meanwhile. */
    suspended(ms: number): void {
      if (storingSinceMs !== undefined) storingSinceMs += ms;
      if (waiting) waiting.sinceMs += ms;
    },
    /** Begins a row once the disk has not answered for 5 s. Ends the wait for values that the device kept. */
    check(): void {
      if (clock.monotonic() - (storingSinceMs ?? Number.POSITIVE_INFINITY) >= hungAfterMs)
        begin("the disk does not answer");
      if (!waiting || clock.monotonic() - waiting.sinceMs < settledAfterMs) return;
      // The row of a polled source is filled already.
      record.advance(waiting.row, "retained", { outcome: `${waiting.retainedBy} kept them` });
      waiting = undefined;
    },
    failed(error: AgentError): void {
      storingSinceMs = undefined;
      begin(error.message);
    },
    stored(connection: Connection | undefined): void {
      storingSinceMs = undefined;
      if (row === undefined) return;
      const { retainedBy, polled = [] } = connection ?? {};
      const to = clock.now();
      if (polled.length > 0) record.advance(row, "retained", { to, outcome: "the agent kept them in memory" });
      else end(connection);
      if (polled.length > 0 || retainedBy !== undefined) waiting = { row, to, retainedBy, sinceMs: clock.monotonic() };
      row = undefined;
      // What was read with the disk full is stored now, which the last sign does not cover.
      record.life.renew();
    },
    /** The connection is lost. Returns the row whose values the device still had to send. */
    lost(): number | undefined {
      const { row: ended, to = 0, retainedBy } = waiting ?? {};
      waiting = undefined;
      if (ended === undefined || retainedBy !== undefined) return ended;
      record.change(ended, { to: epochMicros(Math.min(to, lastReceived())) });
      return undefined;
    },
    end,
  };
}
