// What devices taught about themselves: places that no request may reach across. Kept over restarts, tried again after a day.
import { mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import type { Runtime } from "../../core/runtime.ts";
import { writeAtomically } from "../../lib/atomic-file.ts";
import type { Cut } from "./plan.ts";

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
});

interface Lesson {
  readonly since: number;
  readonly cuts: Cut[];
}

const validForMicros = 86_400_000_000;

/** Of one source. A file that cannot be read or written costs no more than learning again. */
export class Learned {
  readonly #path: string;
  readonly #runtime: Runtime;
  readonly #lessons: Map<number, Lesson>;
  #saving: Promise<void> = Promise.resolve();

  private constructor(path: string, runtime: Runtime, lessons: Map<number, Lesson>) {
    this.#path = path;
    this.#runtime = runtime;
    this.#lessons = lessons;
  }

  /** What is remembered in `stateDir`; nothing where that does not exist. */
  static async load(stateDir: string, runtime: Runtime): Promise<Learned> {
    const path = join(stateDir, "learned.json");
    const lessons = new Map<number, Lesson>();
    try {
      const { units } = file.parse(JSON.parse(await readFile(path, "utf8")));
      for (const [unit, lesson] of Object.entries(units)) lessons.set(Number(unit), lesson);
    } catch (error) {
      const missing = error instanceof Error && "code" in error && error.code === "ENOENT";
      if (!missing) runtime.log.warn({ err: error, path }, "what was learned of the devices cannot be read");
    }
    return new Learned(path, runtime, lessons);
  }

  /** Places in `unit` that no request may reach across. */
  cuts(unit: number): readonly Cut[] {
    const lesson = this.#lessons.get(unit);
    if (lesson && this.#runtime.clock.now() - lesson.since > validForMicros) this.#lessons.delete(unit);
    return this.#lessons.get(unit)?.cuts ?? [];
  }

  /** Remembers one more. Does not wait for the disk. */
  add(unit: number, cut: Cut): void {
    const lesson = this.#lessons.get(unit) ?? { since: this.#runtime.clock.now(), cuts: [] };
    this.#lessons.set(unit, lesson);
    if (lesson.cuts.some(({ table, address }) => table === cut.table && address === cut.address)) return;
    lesson.cuts.push(cut);
    this.#saving = this.#saving.then(() => this.#save());
  }

  /** Resolves when everything so far is on disk, or could not be put there. */
  saved(): Promise<void> {
    return this.#saving;
  }

  async #save(): Promise<void> {
    const content: z.input<typeof file> = { version: 1, units: Object.fromEntries(this.#lessons) };
    try {
      await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 });
      await writeAtomically(this.#path, `${JSON.stringify(content, undefined, 2)}\n`);
    } catch (error) {
      this.#runtime.log.warn({ err: error, path: this.#path }, "what was learned of the devices cannot be kept");
    }
  }
}
