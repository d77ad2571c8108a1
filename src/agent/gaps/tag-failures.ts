// Groups failing tags of a source. Tags that fail and recover together share a row.
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import type { Clock } from "../../core/runtime.ts";
import { named } from "./gap.ts";
import type { GapRecord } from "./gap-record.ts";
import { kindOf } from "./gap-rows.ts";

/** Failures that begin or end within this time of each other belong together. The row spans all of them. */
export const togetherMs = 5_000;
/** Most failure reasons of a source that have rows of their own at a time. */
const mostKinds = 200;

/** The reason of a tag that a polled source has not read yet. */
const unread = "not read since the source was connected";

export type FailureCause = "bad" | "refused";

interface Group {
  /** Of the row. Undefined: `flush` adds it, since a row without names would mean the whole source. */
  id: number | undefined;
  readonly key: string;
  readonly cause: FailureCause;
  readonly reason: string;
  from: EpochMicros;
  readonly failing: Set<string>;
  /** Recovered tags, with the time of their first value. */
  readonly back: Map<string, EpochMicros>;
  /** Monotonic time of the first recovery. */
  backAtMs: number;
  changed: boolean;
}

export type TagFailures = ReturnType<typeof tagFailures>;

export function tagFailures(record: GapRecord, source: string, clock: Clock) {
  const groups = new Map<string, Group[]>();
  const byInput = new Map<string, Group>();
  /** Inputs that fail because they were not read yet. */
  const waiting = new Set<string>();

  function update(group: Group): void {
    const { id, failing, back, from, cause, reason } = group;
    group.changed = false;
    const to = epochMicros(Math.max(from, ...back.values()));
    if (failing.size === 0) {
      const ended = { from, to, ...named(back.size, back.keys()) };
      if (id === undefined) record.add("ends", { source, cause, reason, ...ended });
      else record.advance(id, "ends", ended);
      const rest = (groups.get(group.key) ?? []).filter((other) => other !== group);
      if (rest.length > 0) groups.set(group.key, rest);
      else groups.delete(group.key);
      return;
    }
    if (back.size > 0 && clock.monotonic() - group.backAtMs >= togetherMs) {
      record.add("ends", { source, cause, reason, from, to, ...named(back.size, back.keys()) });
      back.clear();
    }
    const all = [...failing, ...back.keys()];
    const current = { from, ...named(all.length, all) };
    if (id === undefined) group.id = record.add("begins", { source, cause, reason, ...current });
    else record.change(id, current);
  }

  return {
    /** If the first reading of the input is a failure, its row begins where that of the unread input ends. */
    failed(input: string, since: EpochMicros, cause: FailureCause, reason: string): void {
      const from = waiting.has(input) ? clock.now() : since;
      this.read(input, from);
      if (byInput.has(input)) return;
      const kind = `${cause} ${kindOf(reason)}`;
      const key = groups.has(kind) || groups.size < mostKinds ? kind : `${cause} other`;
      const alike = groups.get(key) ?? [];
      const fitting = alike.find((group) => Math.abs(group.from - from) <= togetherMs * 1_000 && group.back.size === 0);
      const group: Group = fitting ?? {
        id: undefined,
        key,
        cause,
        reason: key === kind ? reason : "various reasons",
        from,
        failing: new Set(),
        back: new Map(),
        backAtMs: 0,
        changed: true,
      };
      if (!fitting) groups.set(key, [...alike, group]);
      group.from = epochMicros(Math.min(group.from, from));
      group.failing.add(input);
      group.changed = true;
      byInput.set(input, group);
    },

    recovered(input: string, time: EpochMicros): void {
      const group = byInput.get(input);
      if (!group) return;
      byInput.delete(input);
      group.failing.delete(input);
      if (group.back.size === 0) group.backAtMs = clock.monotonic();
      group.back.set(input, time);
      group.changed = true;
    },

    /** Number of inputs that wait for their first reading. */
    get waiting(): number {
      return waiting.size;
    },

    /** The input has no reading since the source was connected, and no row since `from`. */
    waits(input: string, from: EpochMicros): void {
      if (byInput.has(input)) return;
      this.failed(input, from, "bad", unread);
      waiting.add(input);
    },

    /** The input has a reading of that time, good or bad. Ends only the wait for the first one. */
    read(input: string, time: EpochMicros): void {
      if (waiting.delete(input)) this.recovered(input, time);
    },

    /** Updates the rows. Cheap if nothing has changed. */
    flush(): void {
      for (const group of [...groups.values()].flat()) if (group.changed || group.back.size > 0) update(group);
    },

    /** The source stops, so current failures are no longer watched. */
    end(): void {
      const now = clock.now();
      for (const input of byInput.keys()) this.recovered(input, now);
      this.flush();
    },
  };
}
