// Groups failing tags of a source. Tags that fail and recover together share a row.
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import type { Clock } from "../../core/runtime.ts";
import { named } from "./gap.ts";
import type { GapRecord } from "./gap-record.ts";
import { kindOf } from "./gap-rows.ts";

/** Failures that begin or end within this time of each other belong together. The row spans all of them. */
const togetherMs = 5_000;
/** Most failure reasons of a source that have rows of their own at a time. */
const mostKinds = 200;

export type FailureCause = "bad" | "refused";

interface Group {
  readonly id: number;
  readonly key: string;
  from: EpochMicros;
  readonly failing: Set<string>;
  /** Recovered tags, with the time of their first value. */
  readonly back: Map<string, EpochMicros>;
  /** Monotonic time of the first recovery. */
  backAtMs: number;
  changed: boolean;
}

export function tagFailures(record: GapRecord, source: string, clock: Clock) {
  const groups = new Map<string, Group[]>();
  const byInput = new Map<string, Group>();

  function open(key: string, from: EpochMicros, cause: FailureCause, reason: string): Group {
    const id = record.add("begins", { source, cause, reason, from, tags: 0, inputs: [] });
    return { id, key, from, failing: new Set(), back: new Map(), backAtMs: 0, changed: true };
  }

  function update(group: Group): void {
    const { id, failing, back, from } = group;
    group.changed = false;
    const to = epochMicros(Math.max(from, ...back.values()));
    if (failing.size === 0) {
      record.advance(id, "ends", { ...named(back.size, back.keys()), from, to });
      const rest = (groups.get(group.key) ?? []).filter((other) => other !== group);
      if (rest.length > 0) groups.set(group.key, rest);
      else groups.delete(group.key);
      return;
    }
    if (back.size > 0 && clock.monotonic() - group.backAtMs >= togetherMs) {
      const { cause = "bad", reason = "" } = record.get(id) ?? {};
      record.add("ends", { source, cause, reason, from, to, ...named(back.size, back.keys()) });
      back.clear();
    }
    const all = [...failing, ...back.keys()];
    record.change(id, { ...named(all.length, all), from });
  }

  return {
    failed(input: string, from: EpochMicros, cause: FailureCause, reason: string): void {
      if (byInput.has(input)) return;
      const kind = `${cause} ${kindOf(reason)}`;
      const key = groups.has(kind) || groups.size < mostKinds ? kind : `${cause} other`;
      const alike = groups.get(key) ?? [];
      const fitting = alike.find((group) => Math.abs(group.from - from) <= togetherMs * 1_000 && group.back.size === 0);
      const group = fitting ?? open(key, from, cause, key === kind ? reason : "various reasons");
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
