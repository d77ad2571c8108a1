// Names that devices told, kept on disk: after a restart the broker delivers the data it kept before it repeats the names.
import { createHash } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { Logger } from "../../../core/runtime.ts";
import { writeAtomically } from "../../../lib/atomic-file.ts";
import type { KnownNames } from "./name-tables.ts";

const content = z.record(z.string(), z.record(z.string(), z.string()));

/** The file of one source at one broker. Losing it costs names until the broker repeats them, nothing else. */
export class NamesFile {
  readonly #folder: string;
  readonly #path: string;
  readonly #log: Logger;
  #next: KnownNames | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(folder: string, url: string, log: Logger) {
    this.#folder = folder;
    this.#path = join(folder, `names-${createHash("sha256").update(url).digest("hex").slice(0, 16)}.json`);
    this.#log = log;
  }

  /** Resolves with what was kept; with nothing if that cannot be read. */
  async load(): Promise<KnownNames> {
    try {
      return content.parse(JSON.parse(await readFile(this.#path, "utf8")));
    } catch (error) {
      const missing = error instanceof Error && "code" in error && error.code === "ENOENT";
      if (!missing) this.#log.warn({ err: error }, "the names that devices told cannot be read; they are learnt again");
      return {};
    }
  }

  /** Keeps `names`, soon. Of several in a row the last is enough. */
  save(names: KnownNames): void {
    const first = this.#next === undefined;
    this.#next = names;
    if (first) this.#writing = this.#writing.then(() => this.#write());
  }

  /** Resolves when all is written that was to be saved. */
  async written(): Promise<void> {
    await this.#writing;
  }

  async #write(): Promise<void> {
    const names = this.#next;
    this.#next = undefined;
    try {
      await mkdir(this.#folder, { recursive: true, mode: 0o700 });
      await writeAtomically(this.#path, JSON.stringify(names));
    } catch (error) {
      this.#log.warn({ err: error }, "the names that devices told could not be kept");
    }
  }
}
