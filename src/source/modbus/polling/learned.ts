// What is to be known of devices on the next connection, and after a restart: places that no request may reach across,
// which are tried again after a day, and answers on a bus that may still come.
import { join } from "node:path";
import { z } from "zod";
import type { Runtime } from "../../../core/runtime.ts";
import { readStateFile, writeStateFile } from "../../../lib/state-file.ts";
import type { BlockBoundary } from "../config/plan.ts";
import { Doubts, type KnownDoubts } from "../connection/doubts.ts";

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
/** An answer that takes longer will not come. */
const doubtfulForMicros = 600_000_000;

/** Of one source. Without its file there is more to learn, and late answers on a bus are not known. */
export class Learned {
  /** Answers that may still come on a bus. */
  readonly doubts: Doubts;
  /** Doubts as they are on disk. */
  #kept: string;
  readonly #path: string;
  readonly #runtime: Runtime;
  readonly #lessons: Map<number, Lesson>;
  #saving: Promise<void> = Promise.resolve();

  private constructor(path: string, runtime: Runtime, lessons: Map<number, Lesson>, doubts: KnownDoubts) {
    this.doubts = new Doubts(doubts);
    this.#kept = JSON.stringify(this.doubts.known);
    this.#path = path;
    this.#runtime = runtime;
    this.#lessons = lessons;
  }

  /** What is remembered in `stateDir`; nothing where that does not exist. */
  static async load(stateDir: string, runtime: Runtime): Promise<Learned> {
    const path = join(stateDir, "learned.json");
    const { units = {}, doubts } =
      (await readStateFile(path, file, (error) =>
        runtime.log.warn({ err: error, path }, "what was learned of the devices cannot be read"),
      )) ?? {};
    const isCurrent = doubts && Math.abs(runtime.clock.now() - doubts.since) < doubtfulForMicros;
    const lessons = Object.entries(units).map(([unit, lesson]) => [Number(unit), lesson] as const);
    return new Learned(path, runtime, new Map(lessons), isCurrent ? doubts.units : {});
  }

  /** Places in `unit` that no request may reach across. */
  cuts(unit: number): readonly BlockBoundary[] {
    const lesson = this.#lessons.get(unit);
    // Also where the clock was set back meanwhile.
    if (lesson && Math.abs(this.#runtime.clock.now() - lesson.since) > validForMicros) this.#lessons.delete(unit);
    return this.#lessons.get(unit)?.cuts ?? [];
  }

  /** Remembers one more. Does not wait for the disk. */
  add(unit: number, cut: BlockBoundary): void {
    const lesson = this.#lessons.get(unit) ?? { since: this.#runtime.clock.now(), cuts: [] };
    this.#lessons.set(unit, lesson);
    if (lesson.cuts.some(({ table, address }) => table === cut.table && address === cut.address)) return;
    lesson.cuts.push(cut);
    this.#saving = this.#saving.then(() => this.#save());
  }

  /** Resolves when everything so far is on disk, doubts too, or could not be put there. */
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
