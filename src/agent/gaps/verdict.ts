// What becomes of a gap that is over: whether its values had been kept, are looked for in the device's history, or are lost.
import type { TagGap } from "../../core/gap.ts";
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import { type Gap, mostInputs } from "./gap.ts";
import type { GapRecord } from "./gap-record.ts";

/**
 * The last value before an interruption was measured up to this long before the interruption was noticed; a tag that
 * changes rarely may have had its last value days ago.
 */
const edgeUs = 60e6;

/** A wall clock that goes forward by more than this was set. */
const clockStepUs = 2e6;

/** Of one row whose values are being looked for. */
export class Verdict {
  readonly #record: GapRecord;
  readonly #id: number;
  /** Tags of the row, which is of the whole source; undefined: those that were told. */
  readonly #tags: number | undefined;
  readonly #told = new Set<string>();
  readonly #open = new Set<string>();
  readonly #found = new Set<string>();
  readonly #lost = new Map<string, string>();
  /** Those that an earlier run of the agent found to be lost. */
  readonly #lostBefore: number;

  constructor(record: GapRecord, id: number) {
    this.#record = record;
    this.#id = id;
    const gap = record.get(id);
    this.#tags = gap && gap.tags > 0 && gap.inputs.length === 0 ? gap.tags : undefined;
    for (const input of gap?.inputs ?? []) this.#told.add(input);
    for (const input of gap?.unfilled?.inputs ?? []) this.#lost.set(input, gap?.outcome ?? "");
    this.#lostBefore = Math.max(0, (gap?.unfilled?.tags ?? 0) - this.#lost.size);
  }

  get row(): Gap | undefined {
    return this.#record.get(this.#id);
  }

  /** How many tags are still looked for. */
  get open(): number {
    return this.#open.size;
  }

  /** Whether what is known of a tag concerns this row. */
  concerns({ from, to, cause }: TagGap): boolean {
    const { row } = this;
    if (!row || row.to === undefined) return false;
    if ((cause === "overflow") !== (row.cause === "overflow")) return false;
    return from <= row.to + edgeUs && to >= row.from;
  }

  /** `floor`: end of the row before; what is missing before that is its. */
  take(input: string, { state, reason, from }: TagGap, floor: number): void {
    const { row } = this;
    if (!row) return;
    this.#open.delete(input);
    if (state === "open") this.#open.add(input);
    else if (state === "lost") this.#lost.set(input, reason);
    else {
      this.#found.add(input);
      this.#lost.delete(input);
    }
    this.#told.add(input);
    const begin = Math.max(from, row.from - edgeUs, Math.min(floor, row.from));
    if (begin < row.from) this.#record.change(this.#id, { from: epochMicros(begin) });
  }

  /** Names the tags that were told where the row is of them alone. */
  flush(): void {
    if (this.#tags !== undefined || this.row?.tags === this.#told.size) return;
    const inputs = [...this.#told].slice(0, mostInputs).toSorted();
    this.#record.change(this.#id, { tags: this.#told.size, inputs });
  }

  /** Nothing more is expected to be told but what is still looked for. */
  settle(): void {
    if (this.#open.size > 0) return this.#become("filling", "the device's history is asked");
    const lost = this.#lost.size + this.#lostBefore;
    if (lost === 0)
      return this.#become(
        "filled",
        this.#found.size === 0 ? "no value was missing" : "filled from the device's history",
      );
    const reasons = [...new Set(this.#lost.values())].slice(0, 3).join("; ");
    const inputs = [...this.#lost.keys()].slice(0, mostInputs).toSorted();
    const some = this.#found.size > 0 || lost < (this.#tags ?? this.#told.size);
    this.#become(some ? "partly" : "lost", reasons, { tags: lost, inputs });
  }

  /** Nobody looks for it. */
  giveUp(reason: string): void {
    if (this.row?.state === "filling") this.#become("lost", reason);
  }

  kept(by: string): void {
    if (this.row?.state === "filling") this.#become("filled", by);
  }

  end(to: EpochMicros): void {
    const { row } = this;
    if (row) this.#record.change(this.#id, { to: epochMicros(Math.max(row.from, to)), state: "filling" });
  }

  /** It has turned out that the clock was behind when the gap ended. */
  notBefore(end: number): void {
    const { row } = this;
    if (row?.to !== undefined && end - row.to > clockStepUs) this.#record.change(this.#id, { to: epochMicros(end) });
  }

  #become(state: Gap["state"], outcome: string, unfilled?: Gap["unfilled"]): void {
    const { row } = this;
    if (!row || (row.state === state && row.outcome === outcome && row.unfilled?.tags === unfilled?.tags)) return;
    this.#record.change(this.#id, { state, outcome, unfilled });
  }
}
