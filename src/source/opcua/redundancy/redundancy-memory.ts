// Which server of a redundant set is in use, over connections and restarts, and what each of them has to remember.
import { createHash } from "node:crypto";
import { copyFile, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { writeAtomically } from "../../../lib/atomic-file.ts";
import { holdMs } from "./service-level.ts";

const record = z.object({ inUse: z.string(), since: z.number() });

export class RedundancyMemory {
  readonly #dir: string;
  #inUse: z.output<typeof record> | undefined;

  private constructor(dir: string, inUse: z.output<typeof record> | undefined) {
    this.#dir = dir;
    this.#inUse = inUse;
  }

  static async open(dir: string): Promise<RedundancyMemory> {
    const stored = await readFile(join(dir, "redundancy.json"), "utf8")
      .then((text) => record.parse(JSON.parse(text)))
      .catch(() => undefined);
    return new RedundancyMemory(dir, stored);
  }

  get inUse(): string | undefined {
    return this.#inUse?.inUse;
  }

  sinceMs(now: number): number {
    return this.#inUse ? Math.max(0, (now - this.#inUse.since) / 1_000) : holdMs;
  }

  /** Folder of a server: its session and its namespaces are its own. */
  folder(url: string): string {
    return join(this.#dir, "servers", createHash("sha256").update(url).digest("hex").slice(0, 12));
  }

  /** From now on this one is used. It is told up to when values are stored, whoever they came from. */
  async use(url: string, now: number): Promise<void> {
    const folder = this.folder(url);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    if (this.#inUse?.inUse === url) return;
    if (this.#inUse)
      await copyFile(join(this.folder(this.#inUse.inUse), "history.json"), join(folder, "history.json")).catch(
        () => {},
      );
    this.#inUse = { inUse: url, since: now };
    await writeAtomically(join(this.#dir, "redundancy.json"), JSON.stringify(this.#inUse));
  }
}
