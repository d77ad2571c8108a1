// Persists facts about devices: boundaries that no request may cross (for a day), and late answers on a bus.
import { join } from "node:path";
import { z } from "zod";
import type { Runtime } from "../../../core/runtime.ts";
import { stateFile } from "../../../lib/files/state-file.ts";
import type { BlockBoundary } from "../config/plan.ts";
import { lateReplyTracker } from "../framing/distinct-replies.ts";

const content = z.object({
  version: z.literal(1),
  units: z.record(
    z.string(),
    z.object({
      /** Microseconds since the epoch. */
      since: z.number(),
      cuts: z.array(z.object({ table: z.enum(["hr", "ir", "co", "di"]), address: z.int() })),
    }),
  ),
  doubts: z
    .object({
      /** Microseconds since the epoch. */
      since: z.number(),
      units: z.record(z.string(), z.array(z.object({ code: z.int(), bytes: z.int().optional() })).readonly()),
    })
    .optional(),
});

interface UnitQuirks {
  readonly since: number;
  readonly cuts: BlockBoundary[];
}

const validForMicros = 86_400_000_000;
/** Time after which a late answer is no longer expected. */
const expectedForMicros = 600_000_000;

/** The facts of one source. If the file is lost, boundaries are learned again and late answers are unknown. */
export type DeviceQuirks = Awaited<ReturnType<typeof loadDeviceQuirks>>;

/** Loads the facts in `stateDir`; empty if there are none. */
export async function loadDeviceQuirks(stateDir: string, { clock, log }: Runtime) {
  const file = stateFile(join(stateDir, "learned.json"), content, {
    log,
    unreadable: "what was learned of the devices cannot be read",
    unwritable: "what was learned of the devices cannot be kept",
  });
  const { units = {}, doubts: former } = (await file.load()) ?? {};
  const isCurrent = former && Math.abs(clock.now() - former.since) < expectedForMicros;
  const lateReplies = lateReplyTracker(isCurrent ? former.units : {});
  const quirksByUnit = new Map(
    Object.entries(units).map(([unit, quirks]): [number, UnitQuirks] => [Number(unit), quirks]),
  );
  /** The late replies as on disk, in JSON. */
  let kept = JSON.stringify(lateReplies.known);

  function save(): void {
    const { known } = lateReplies;
    kept = JSON.stringify(known);
    const late = Object.keys(known).length > 0 && { doubts: { since: clock.now(), units: known } };
    void file.save({ version: 1, units: Object.fromEntries(quirksByUnit), ...late });
  }

  return {
    /** Late answers that may still come on a bus. */
    lateReplies,
    /** Boundaries in `unit` that no request may cross. */
    cuts(unit: number): readonly BlockBoundary[] {
      const quirks = quirksByUnit.get(unit);
      // The absolute value also covers a clock that was set back.
      if (quirks && Math.abs(clock.now() - quirks.since) > validForMicros) quirksByUnit.delete(unit);
      return quirksByUnit.get(unit)?.cuts ?? [];
    },
    /** Adds a boundary. Does not wait for the disk. */
    add(unit: number, cut: BlockBoundary): void {
      const quirks = quirksByUnit.get(unit) ?? { since: clock.now(), cuts: [] };
      quirksByUnit.set(unit, quirks);
      if (quirks.cuts.some(({ table, address }) => table === cut.table && address === cut.address)) return;
      quirks.cuts.push(cut);
      save();
    },
    /** Resolves when all facts and late answers are written, or writing has failed. */
    saved(): Promise<void> {
      if (JSON.stringify(lateReplies.known) !== kept) save();
      return file.saved();
    },
  };
}
