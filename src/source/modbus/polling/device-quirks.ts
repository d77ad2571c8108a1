// Persists facts about devices: boundaries that no request may cross (for a day), and late answers on a bus.
import { join } from "node:path";
import { z } from "zod";
import type { Runtime } from "../../../core/runtime.ts";
import { readStateFile, writeStateFile } from "../../../lib/files/state-file.ts";
import type { BlockBoundary } from "../config/plan.ts";
import { type KnownLateReplies, LateReplyTracker } from "../connection/late-reply-tracker.ts";

const file = z.object({
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
      units: z.record(z.string(), z.array(z.object({ code: z.int(), bytes: z.int().optional() }))),
    })
    .optional(),
});

interface Lesson {
  readonly since: number;
  readonly cuts: BlockBoundary[];
}

const validForMicros = 86_400_000_000;
/** Time after which a late answer is no longer expected. */
const doubtfulForMicros = 600_000_000;

/** The facts of one source. If the file is lost, boundaries are learned again and late answers are unknown. */
export class DeviceQuirks {
  /** Late answers that may still come on a bus. */
  readonly doubts: LateReplyTracker;
  /** The late replies as on disk, in JSON. */
  #kept: string;
  readonly #path: string;
  readonly #runtime: Runtime;
  readonly #lessons: Map<number, Lesson>;
  #saving: Promise<void> = Promise.resolve();

  private constructor(path: string, runtime: Runtime, lessons: Map<number, Lesson>, doubts: KnownLateReplies) {
    this.doubts = new LateReplyTracker(doubts);
    this.#kept = JSON.stringify(this.doubts.known);
    this.#path = path;
    this.#runtime = runtime;
    this.#lessons = lessons;
  }

  /** Loads the facts in `stateDir`; empty if there are none. */
  static async load(stateDir: string, runtime: Runtime): Promise<DeviceQuirks> {
    const path = join(stateDir, "learned.json");
    const { units = {}, doubts } =
      (await readStateFile(path, file, (error) =>
        runtime.log.warn({ err: error, path }, "what was learned of the devices cannot be read"),
      )) ?? {};
    const isCurrent = doubts && Math.abs(runtime.clock.now() - doubts.since) < doubtfulForMicros;
    const lessons = Object.entries(units).map(([unit, lesson]) => [Number(unit), lesson] as const);
    return new DeviceQuirks(path, runtime, new Map(lessons), isCurrent ? doubts.units : {});
  }

  /** Boundaries in `unit` that no request may cross. */
  cuts(unit: number): readonly BlockBoundary[] {
    const lesson = this.#lessons.get(unit);
    // The absolute value also covers a clock that was set back.
    if (lesson && Math.abs(this.#runtime.clock.now() - lesson.since) > validForMicros) this.#lessons.delete(unit);
    return this.#lessons.get(unit)?.cuts ?? [];
  }

  /** Adds a boundary. Does not wait for the disk. */
  add(unit: number, cut: BlockBoundary): void {
    const lesson = this.#lessons.get(unit) ?? { since: this.#runtime.clock.now(), cuts: [] };
    this.#lessons.set(unit, lesson);
    if (lesson.cuts.some(({ table, address }) => table === cut.table && address === cut.address)) return;
    lesson.cuts.push(cut);
    this.#saving = this.#saving.then(() => this.#save());
  }

  /** Resolves when all facts and doubts are written, or writing has failed. */
  saved(): Promise<void> {
    if (JSON.stringify(this.doubts.known) !== this.#kept) this.#saving = this.#saving.then(() => this.#save());
    return this.#saving;
  }

  async #save(): Promise<void> {
    const units = this.doubts.known;
    this.#kept = JSON.stringify(units);
    const doubts = Object.keys(units).length > 0 && { doubts: { since: this.#runtime.clock.now(), units } };
    const content = { version: 1, units: Object.fromEntries(this.#lessons), ...doubts };
    try {
      await writeStateFile(this.#path, content);
    } catch (error) {
      this.#runtime.log.warn({ err: error, path: this.#path }, "what was learned of the devices cannot be kept");
    }
  }
}
