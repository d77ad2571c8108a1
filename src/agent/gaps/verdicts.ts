// Which of the gaps of a source something is of that was told of a tag.
import type { TagGap } from "../../core/gap.ts";
import type { GapRecord } from "./gap-record.ts";
import { Verdict } from "./verdict.ts";

/** Gaps of a source that may still be filled. */
const mostVerdicts = 100;
/** Tags that all of them together know something of, the newest one apart. */
const mostNames = 100_000;

export class Verdicts {
  readonly #record: GapRecord;
  readonly #source: string;
  /** Oldest first. */
  #verdicts: Verdict[] = [];

  constructor(record: GapRecord, source: string) {
    this.#record = record;
    this.#source = source;
  }

  add(verdict: Verdict): void {
    this.#verdicts.push(verdict);
  }

  /** Something is known of a tag whose clock may be behind the agent's by up to `behindUs`. */
  take(input: string, gap: TagGap, behindUs: number): void {
    // What is looked for there is told there, too, whatever clocks seem to be by now.
    const near = this.#verdicts.filter((verdict) => verdict.isNear(gap, behindUs) || verdict.awaits(input, gap));
    // A clock that is ahead puts it behind all rows: then which of them it is of is not known.
    const within = near.some((verdict) => verdict.overlaps(gap, behindUs))
      ? near.filter((verdict) => verdict.overlaps(gap, behindUs) || verdict.awaits(input, gap))
      : near;
    const concerned = within.length > 0 ? within : [this.#adopt(gap)];
    const ends = concerned.map(({ row }) => row?.to ?? 0).toSorted((a, b) => a - b);
    for (const verdict of concerned) {
      const { from = 0 } = verdict.row ?? {};
      verdict.take(input, gap, ends.findLast((to) => to <= from) ?? 0);
    }
  }

  /** A gap that nobody else has noticed: the other side threw values away, or the record began later. */
  #adopt({ cause, reason, from, to }: TagGap): Verdict {
    const verdict = new Verdict(
      this.#record,
      this.#record.add({
        source: this.#source,
        cause: cause === "overflow" ? "overflow" : "disconnected",
        reason,
        from,
        to,
        state: "filling",
        tags: 0,
        inputs: [],
      }),
    );
    this.#verdicts.push(verdict);
    return verdict;
  }

  /** Names the tags that were told. */
  flush(): void {
    for (const verdict of this.#verdicts) verdict.flush();
  }

  /** As `Verdict.settle`, each of them. */
  settle(over: boolean): void {
    for (const verdict of this.#verdicts) verdict.settle(over);
  }

  /**
   * Whatever an earlier connection had asked for has been told, or nobody asks for it any more: then `unasked` says why.
   */
  end(unasked: string | undefined): void {
    for (const verdict of this.#verdicts.splice(0))
      if (unasked === undefined) verdict.conclude();
      else verdict.giveUp(unasked);
  }

  /** Of the oldest nothing more is taken where they are many: what they have said stays in the record. */
  forget(): void {
    let names = 0;
    const kept = this.#verdicts.findLastIndex(({ size }) => (names += size) > mostNames);
    const first = Math.max(0, this.#verdicts.length - mostVerdicts, Math.min(kept + 1, this.#verdicts.length - 1));
    for (const verdict of this.#verdicts.splice(0, first))
      verdict.giveUp("too many gaps are open to follow each of them");
  }
}
