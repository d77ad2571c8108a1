// Remembers for each node the time up to which its values are on disk, so that a later connection knows what is missing.
import { mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";
import type { EpochMicros } from "../../core/point.ts";
import { epochMicros } from "../../core/point.ts";
import { writeAtomically } from "../../lib/atomic-file.ts";

const content = z.record(z.string(), z.int());

/** Keys are NodeIds that stay true when the server starts again (`portableNodeId`). */
export class HistoryMemory {
  readonly #path: string;
  readonly #stored: Map<string, EpochMicros>;
  /** Gaps that are not filled yet begin here: should the process die, they are found again. */
  readonly #open = new Map<string, EpochMicros>();
  #dirty = false;

  private constructor(path: string, stored: Map<string, EpochMicros>) {
    this.#path = path;
    this.#stored = stored;
  }

  /** Never rejects: a file that cannot be read is as good as none. */
  static async open(path: string): Promise<HistoryMemory> {
    const stored = await readFile(path, "utf8")
      .then((text) => content.parse(JSON.parse(text)))
      .catch(() => ({}));
    return new HistoryMemory(path, new Map(Object.entries(stored).map(([key, time]) => [key, epochMicros(time)])));
  }

  /** Up to when values of this node are on disk. Undefined: there never was one. */
  storedUpTo(key: string): EpochMicros | undefined {
    return this.#stored.get(key);
  }

  /** A value is on disk. */
  stored(key: string, time: EpochMicros): void {
    if (time <= (this.#stored.get(key) ?? 0)) return;
    this.#stored.set(key, time);
    this.#dirty = true;
  }

  /** From here on something is missing, whatever is stored after it. */
  opened(key: string, from: EpochMicros): void {
    this.#open.set(key, epochMicros(Math.min(from, this.#open.get(key) ?? from)));
  }

  /** All that was missing is on disk, or will never be had. */
  closed(key: string): void {
    if (this.#open.delete(key)) this.#dirty = true;
  }

  /** Writes what has changed. Rejects when the disk does. */
  async save(): Promise<void> {
    if (!this.#dirty) return;
    this.#dirty = false;
    try {
      await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 });
      await writeAtomically(
        this.#path,
        JSON.stringify({ ...Object.fromEntries(this.#stored), ...Object.fromEntries(this.#open) }),
      );
    } catch (error) {
      this.#dirty = true;
      throw error;
    }
  }
}
