// Tags of a connected source without usable values: those that fail, and those that a polled source has not read yet.
// Tags that fail for the same reason and recover together share a row.
//
//   connected         first delivery                       all tags are read, or 5 s have passed
//      | nothing is read   | unit 1, unit 2 … are read          | unit 9 is not read yet
//      +-------------------+------------------------------------+-------------------------------+ its first reading
//      -- row of the outage, to the latest first reading --|---------- row of unit 9 ----------|
//
//   state      event                                   next       action
//   idle       connection                              unread     remember the tags that are polled
//   unread     first delivery                          reading
//   reading    all tags are read, or 5 s have passed   idle       end the outage; a row for tags without a reading
//   reading    loss, suspension or stop                idle       the same, with the readings so far
//   unread     loss                                    idle       the outage continues
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import type { Clock } from "../../core/runtime.ts";
import type { Reading } from "../../core/source.ts";
import { named } from "./gap.ts";
import type { GapRecord } from "./gap-record.ts";
import { kindOf } from "./gap-rows.ts";

/** Failures that begin or end within this time of each other belong together. The row spans all of them. */
const togetherMs = 5_000;
/** Most failure reasons of a source that have rows of their own at a time. */
const mostKinds = 200;

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

interface TagFailuresParts {
  readonly record: GapRecord;
  readonly source: string;
  readonly inputOf: (reading: Reading) => string | undefined;
  /** Ends the outage. Returns the time since which tags without a reading are in no row. */
  readonly endOutage: (to: EpochMicros) => EpochMicros;
}

export function tagFailures({ record, source, inputOf, endOutage }: TagFailuresParts, clock: Clock) {
  const groups = new Map<string, Group[]>();
  const byInput = new Map<string, Group>();
  /** Inputs whose first reading since the connection may end the outage, and those that had none then. */
  const unread = new Set<string>();
  const waiting = new Set<string>();
  /** Monotonic times of the first delivery and of the latest first reading of a tag. The wall clock may be set. */
  let came: { readonly atMs: number; latestMs: number } | undefined;

  function update(group: Group): void {
    const { id, failing, back, from, cause, reason } = group;
    group.changed = false;
    const to = epochMicros(Math.max(from, ...back.values()));
    const ended = { from, to, ...named(back.size, back.keys()) };
    if (failing.size === 0) {
      if (id === undefined) record.add("ends", { source, cause, reason, ...ended });
      else record.advance(id, "ends", ended);
      const rest = (groups.get(group.key) ?? []).filter((other) => other !== group);
      if (rest.length > 0) groups.set(group.key, rest);
      else groups.delete(group.key);
      return;
    }
    if (back.size > 0 && clock.monotonic() - group.backAtMs >= togetherMs) {
      record.add("ends", { source, cause, reason, ...ended });
      back.clear();
    }
    const all = [...failing, ...back.keys()];
    const current = { from, ...named(all.length, all) };
    if (id === undefined) group.id = record.add("begins", { source, cause, reason, ...current });
    else record.change(id, current);
  }

  /** Updates the rows. Cheap if nothing has changed. */
  function flush(): void {
    for (const group of [...groups.values()].flat()) if (group.changed || group.back.size > 0) update(group);
  }

  /** If the first reading of the input is a failure, its row begins where that of the unread input ends. */
  function failed(input: string, since: EpochMicros, cause: FailureCause, reason: string): void {
    const from = waiting.has(input) ? clock.now() : since;
    read(input, from);
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
  }

  function recovered(input: string, time: EpochMicros): void {
    const group = byInput.get(input);
    if (!group) return;
    byInput.delete(input);
    group.failing.delete(input);
    if (group.back.size === 0) group.backAtMs = clock.monotonic();
    group.back.set(input, time);
    group.changed = true;
  }

  /** The input has a reading of that time, good or bad. Ends only the wait for the first one. */
  function read(input: string, time: EpochMicros): void {
    if (waiting.delete(input)) recovered(input, time);
  }

  /** The connection polls these inputs; none: it is lost. */
  function begin(inputs: Iterable<string>): void {
    came = undefined;
    unread.clear();
    for (const input of inputs) unread.add(input);
  }

  /** Ends the outage, if there was a delivery since the connection. */
  function endFirsts(): void {
    if (!came) return;
    const sinceMs = clock.monotonic() - came.latestMs;
    const from = endOutage(epochMicros(Math.round(clock.now() - sinceMs * 1_000)));
    for (const input of unread)
      if (!byInput.has(input)) {
        failed(input, from, "bad", "not read since the source was connected");
        waiting.add(input);
      }
    flush();
    begin([]);
  }

  function endIfOver(): void {
    if (unread.size === 0 || (came && clock.monotonic() - came.atMs >= togetherMs)) endFirsts();
  }

  return {
    failed,
    recovered,
    flush,
    begin,
    endFirsts,
    tick(): void {
      endIfOver();
      flush();
    },
    /** The connection is lost, or the source stops. */
    lost(): void {
      endFirsts();
      begin([]);
    },
    /** Whether `take` needs the next readings, apart from an outage that they end. */
    get awaitReadings(): boolean {
      return unread.size > 0 || waiting.size > 0;
    },
    /** Takes the readings of a delivery. `at`: when a reading with this time counts as recorded. */
    take(readings: readonly Reading[], at: (time: number) => EpochMicros): void {
      let latest: number | undefined;
      for (const reading of readings) {
        const input = reading.historical ? undefined : inputOf(reading);
        if (input === undefined) continue;
        const time = at(reading.time);
        if (unread.delete(input)) latest = Math.max(latest ?? time, time);
        read(input, time);
      }
      const nowMs = clock.monotonic();
      const latestMs = latest === undefined ? nowMs : nowMs - (clock.now() - latest) / 1_000;
      if (!came) came = { atMs: nowMs, latestMs };
      else if (latest !== undefined) came.latestMs = Math.max(came.latestMs, latestMs);
      endIfOver();
    },
    /** The source stops, so current failures are no longer watched. */
    end(): void {
      const now = clock.now();
      for (const input of byInput.keys()) recovered(input, now);
      flush();
    },
  };
}
