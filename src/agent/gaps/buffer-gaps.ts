// Rows for points that were lost from the buffer: it says how many, why, and of which time; here that becomes intervals.
import type { BufferStats } from "../../core/buffer.ts";
import { epochMicros } from "../../core/point.ts";
import type { Clock } from "../../core/runtime.ts";
import type { GapRecord } from "./gap-record.ts";

/** Losses for the same reason that follow each other within this time are one row. */
const togetherMs = 600_000;

const reasons: Readonly<Record<string, string>> = {
  maxSize: "the buffer was full (buffer.maxSize), the oldest points were dropped",
  maxAge: "points were older than buffer.maxAge and were dropped",
  reserveFreeDisk: "the disk was nearly full (buffer.reserveFreeDisk), the oldest points were dropped",
  diskFull: "the disk was full, the oldest points were dropped",
  damaged: "the disk gave points back damaged",
  missing: "files of the buffer were removed",
  diskLied: "the disk did not keep what it had confirmed",
};

export class BufferGaps {
  readonly #record: GapRecord;
  readonly #clock: Clock;
  readonly #rows = new Map<string, { readonly id: number; atMs: number }>();

  constructor(record: GapRecord, clock: Clock) {
    this.#record = record;
    this.#clock = clock;
  }

  /** Takes up what has been lost since it was asked the last time, also by an agent before this one. */
  look({ losses }: Pick<BufferStats, "losses">): void {
    for (const { reason, points, from, to } of losses) {
      const before = this.#record.losses[reason];
      const lost = points - (before?.points ?? 0);
      if (lost <= 0) continue;
      const now = this.#clock.now();
      const end = to ?? now;
      // What is dropped is the oldest: what was lost before this was older.
      const begin = Math.min(end, Math.max(from ?? end, before?.to ?? 0));
      this.#add(reason, lost, begin, end);
      this.#record.losses = { ...this.#record.losses, [reason]: { points, ...(to !== undefined && { to }) } };
    }
  }

  #add(reason: string, points: number, from: number, to: number): void {
    const nowMs = this.#clock.monotonic();
    const known = this.#rows.get(reason);
    const row = known && nowMs - known.atMs < togetherMs ? this.#record.get(known.id) : undefined;
    if (known && row) {
      known.atMs = nowMs;
      this.#record.change(row.id, {
        points: (row.points ?? 0) + points,
        from: epochMicros(Math.min(row.from, from)),
        to: epochMicros(Math.max(row.to ?? 0, to)),
      });
      return;
    }
    const id = this.#record.add({
      cause: "buffer",
      reason: reasons[reason] ?? reason,
      from: epochMicros(from),
      to: epochMicros(to),
      state: "lost",
      tags: 0,
      inputs: [],
      points,
    });
    this.#rows.set(reason, { id, atMs: nowMs });
  }
}
