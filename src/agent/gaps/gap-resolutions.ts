// Assigns the gaps that a source reports for a tag to rows of the gap record.
import type { TagGap } from "../../core/gap.ts";
import type { GapRecord } from "./gap-record.ts";
import { type GapResolution, gapResolution } from "./gap-resolution.ts";

/** Most gaps of a source that are followed at a time. */
const mostGaps = 100;
/** Most tag entries of all followed gaps together, not counting the newest gap. */
const mostNames = 100_000;

export function gapResolutions(record: GapRecord, source: string) {
  /** Oldest first. */
  const gaps: GapResolution[] = [];

  /** Adds a row for a gap that the agent did not notice: the server discarded values, or the record began later. */
  function adopt({ cause, reason, from, to }: TagGap): GapResolution {
    const row = { source, cause: cause === "overflow" ? cause : "disconnected", reason, from, to } as const;
    const gap = gapResolution(record, record.add("reported", { ...row, tags: 0, inputs: [] }));
    gaps.push(gap);
    return gap;
  }

  return {
    add(gap: GapResolution): void {
      gaps.push(gap);
    },

    /** Handles the report of a tag whose clock may be up to `behindUs` behind the agent's. */
    take(input: string, report: TagGap, behindUs: number): void {
      // A row that awaits this tag gets the report, however far the clocks are apart now.
      const near = gaps.filter((gap) => gap.isNear(report, behindUs) || gap.awaits(input, report));
      // A clock that is ahead puts the report behind all rows. Then it is unknown which of them it belongs to.
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

    /** Writes the names of the reported tags to the rows. */
    flush(): void {
      for (const gap of gaps) gap.flush();
    },

    settle(over: boolean): void {
      for (const gap of gaps) gap.settle(over);
    },

    /** Ends all recoveries: concluded, or abandoned if there is a reason `unasked`. */
    end(unasked: string | undefined): void {
      for (const gap of gaps.splice(0))
        if (unasked === undefined) gap.conclude();
        else gap.abandon(unasked);
    },

    /** Abandons the oldest gaps beyond the limits. What they have reported stays in the record. */
    forget(): void {
      let names = 0;
      const kept = gaps.findLastIndex(({ size }) => (names += size) > mostNames);
      const first = Math.max(0, gaps.length - mostGaps, Math.min(kept + 1, gaps.length - 1));
      for (const gap of gaps.splice(0, first)) gap.abandon("too many gaps are open to follow each of them");
    },
  };
}
