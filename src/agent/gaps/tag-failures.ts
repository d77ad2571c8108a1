// Groups the tags of a source that give nothing usable: what fails together and comes back together is one row.
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import type { Clock } from "../../core/runtime.ts";
import { named } from "./gap.ts";
import type { GapRecord } from "./gap-record.ts";
import { kindOf } from "./gap-rows.ts";

/** Tags whose failures begin or end within this time do so together; the row has the outermost edges. */
const togetherMs = 5_000;
/** Reasons of a source that have rows of their own at one time. */
const mostKinds = 200;

export type FailureCause = "bad" | "refused";

interface Group {
  readonly id: number;
  readonly key: string;
  from: EpochMicros;
  readonly failing: Set<string>;
  /** Those that are back, and the time of their first value. */
  readonly back: Map<string, EpochMicros>;
  /** Monotonic time of the first that came back. */
  backAtMs: number;
  changed: boolean;
}

export class TagFailures {
  readonly #record: GapRecord;
  readonly #source: string;
  readonly #clock: Clock;
  readonly #groups = new Map<string, Group[]>();
  readonly #byInput = new Map<string, Group>();

  constructor(record: GapRecord, source: string, clock: Clock) {
    this.#record = record;
    this.#source = source;
    this.#clock = clock;
  }

  /** How many tags fail now. */
  get size(): number {
    return this.#byInput.size;
  }

  failed(input: string, from: EpochMicros, cause: FailureCause, reason: string): void {
    if (this.#byInput.has(input)) return;
    const kind = `${cause} ${kindOf(reason)}`;
    const key = this.#groups.has(kind) || this.#groups.size < mostKinds ? kind : `${cause} other`;
    const alike = this.#groups.get(key) ?? [];
    const fitting = alike.find((group) => Math.abs(group.from - from) <= togetherMs * 1_000 && group.back.size === 0);
    const group = fitting ?? this.#open(key, from, cause, key === kind ? reason : "various reasons");
    if (!fitting) this.#groups.set(key, [...alike, group]);
    group.from = epochMicros(Math.min(group.from, from));
    group.failing.add(input);
    group.changed = true;
    this.#byInput.set(input, group);
  }

  recovered(input: string, time: EpochMicros): void {
    const group = this.#byInput.get(input);
    if (!group) return;
    this.#byInput.delete(input);
    group.failing.delete(input);
    if (group.back.size === 0) group.backAtMs = this.#clock.monotonic();
    group.back.set(input, time);
    group.changed = true;
  }

  /** Brings the rows up to date. Cheap where nothing has changed. */
  flush(): void {
    for (const groups of this.#groups.values())
      for (const group of groups) if (group.changed || group.back.size > 0) this.#update(group);
  }

  /** The source stops: what fails now is not watched any longer. */
  end(): void {
    const now = this.#clock.now();
    for (const input of this.#byInput.keys()) this.recovered(input, now);
    this.flush();
  }

  #open(key: string, from: EpochMicros, cause: FailureCause, reason: string): Group {
    const id = this.#record.add("begins", { source: this.#source, cause, reason, from, tags: 0, inputs: [] });
    return { id, key, from, failing: new Set(), back: new Map(), backAtMs: 0, changed: true };
  }

  #update(group: Group): void {
    const { id, failing, back, from } = group;
    group.changed = false;
    const to = epochMicros(Math.max(from, ...back.values()));
    if (failing.size === 0) {
      this.#record.advance(id, "ends", { ...named(back.size, back.keys()), from, to });
      const rest = (this.#groups.get(group.key) ?? []).filter((other) => other !== group);
      if (rest.length > 0) this.#groups.set(group.key, rest);
      else this.#groups.delete(group.key);
      return;
    }
    if (back.size > 0 && this.#clock.monotonic() - group.backAtMs >= togetherMs) {
      const { cause = "bad", reason = "" } = this.#record.get(id) ?? {};
      const source = this.#source;
      this.#record.add("ends", { source, cause, reason, from, to, ...named(back.size, back.keys()) });
      back.clear();
    }
    const all = [...failing, ...back.keys()];
    this.#record.change(id, { ...named(all.length, all), from });
  }
}
