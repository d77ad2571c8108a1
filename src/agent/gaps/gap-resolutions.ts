// Finds the gaps of a source that a report of a tag belongs to.
import type { TagGap } from "../../core/gap.ts";
import type { GapRecord } from "./gap-record.ts";
import { GapResolution } from "./gap-resolution.ts";

/** Gaps of a source that may still be filled. */
const mostGaps = 100;
/** Tags that all of them together know something of, the newest one apart. */
const mostNames = 100_000;

export type GapResolutions = ReturnType<typeof gapResolutions>;

export function gapResolutions(record: GapRecord, source: string) {
  /** Oldest first. */
  const gaps: GapResolution[] = [];

  /** A gap that the agent has not noticed itself: the other side threw values away, or the record began later. */
  function adopt({ cause, reason, from, to }: TagGap): GapResolution {
    const row = { source, cause: cause === "overflow" ? cause : "disconnected", reason, from, to } as const;
    const gap = new GapResolution(record, record.add("reported", { ...row, tags: 0, inputs: [] }));
    gaps.push(gap);
    return gap;
  }

  return {
    add(gap: GapResolution): void {
      gaps.push(gap);
    },

    /** Something is known of a tag whose clock may be behind the agent's by up to `behindUs`. */
    take(input: string, report: TagGap, behindUs: number): void {
      // What a row looks for is reported to that row, whatever the clocks seem to be by now.
      const near = gaps.filter((gap) => gap.isNear(report, behindUs) || gap.awaits(input, report));
      // A clock that is ahead puts it behind all rows: then which of them it is of is not known.
      const within = near.some((gap) => gap.overlaps(report, behindUs))
        ? near.filter((gap) => gap.overlaps(report, behindUs) || gap.awaits(input, report))
        : near;
      const concerned = within.length > 0 ? within : [adopt(report)];
      const ends = concerned.map(({ row }) => row?.to ?? 0).toSorted((a, b) => a - b);
      for (const gap of concerned) {
        const { from = 0 } = gap.row ?? {};
        gap.take(input, report, ends.findLast((to) => to <= from) ?? 0);
      }
    },

    /** Names the tags that were reported. */
    flush(): void {
      for (const gap of gaps) gap.flush();
    },

    /** As `GapResolution.settle`, each of them. */
    settle(over: boolean): void {
      for (const gap of gaps) gap.settle(over);
    },

    /**
     * Everything that an earlier connection looked for has been reported, or nobody looks for it any more: then `unasked` says
     * why.
     */
    end(unasked: string | undefined): void {
      for (const gap of gaps.splice(0))
        if (unasked === undefined) gap.conclude();
        else gap.abandon(unasked);
    },

    /** Of the oldest nothing more is taken where they are many: what they have said stays in the record. */
    forget(): void {
      let names = 0;
      const kept = gaps.findLastIndex(({ size }) => (names += size) > mostNames);
      const first = Math.max(0, gaps.length - mostGaps, Math.min(kept + 1, gaps.length - 1));
      for (const gap of gaps.splice(0, first)) gap.abandon("too many gaps are open to follow each of them");
    },
  };
}
