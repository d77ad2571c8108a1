// A file that is written with each acknowledgement.
import { constants } from "node:fs";
import { mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * A file that is written in place, in one go, and not forced to the disk: it survives the death of the process. After a power cut it
 * may be behind, never ahead.
 */
export class InPlaceFile {
  readonly #path: string;
  readonly #content: () => Uint8Array;
  #writing: Promise<void> = Promise.resolve();
  /** A write that has not begun: what changes before it does is in it. */
  #waiting: Promise<void> | undefined;

  /** `content` never gets shorter. */
  constructor(path: string, content: () => Uint8Array) {
    this.#path = path;
    this.#content = content;
  }

  /** Resolves when all that has changed so far is written. Rejects when the disk fails. */
  write(): Promise<void> {
    const waiting = (this.#waiting ??= this.#writing.then(() => this.#write()));
    this.#writing = waiting.catch(() => {});
    return waiting;
  }

  /** Resolves when nothing is being written. */
  settled(): Promise<void> {
    return this.#writing;
  }

  async #write(): Promise<void> {
    this.#waiting = undefined;
    const bytes = this.#content();
    const opened = () => open(this.#path, constants.O_WRONLY | constants.O_CREAT, 0o600);
    // Where it fails the folder may be missing; if that is not why, it fails again.
    await using file = await opened().catch(async () => {
      await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 });
      return await opened();
    });
    await file.write(bytes, 0, bytes.length, 0);
  }
}
