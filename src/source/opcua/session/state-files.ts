// A file that is written with each acknowledgement.
import { constants, fstatSync, type Stats, statSync } from "node:fs";
import { type FileHandle, mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * A file that is written in place, in one go, and not forced to the disk: it survives the death of the process. After a power cut it
 * may be behind, never ahead. It stays open between writes; one that was removed or replaced meanwhile is opened again.
 */
export class InPlaceFile implements AsyncDisposable {
  readonly #path: string;
  readonly #content: () => Uint8Array;
  #writing: Promise<void> = Promise.resolve();
  /** A write that has not begun: what changes before it does is in it. */
  #waiting: Promise<void> | undefined;
  #open: { readonly file: FileHandle; readonly stats: Stats } | undefined;
  #isDisposed = false;

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

  /** Closes the file when all is written. A write that comes later opens it for itself. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDisposed = true;
    await this.#writing;
    await this.#close();
  }

  async #write(): Promise<void> {
    this.#waiting = undefined;
    const bytes = this.#content();
    let isWritten = false;
    try {
      const { bytesWritten } = await (await this.#opened()).write(bytes, 0, bytes.length, 0);
      if (bytesWritten < bytes.length) throw new Error(`${bytesWritten} of ${bytes.length} bytes are written`);
      isWritten = true;
    } finally {
      if (!isWritten || this.#isDisposed) await this.#close();
    }
  }

  async #opened(): Promise<FileHandle> {
    const before = this.#open;
    if (before && isSame(before.stats, statSync(this.#path, { throwIfNoEntry: false }))) return before.file;
    await this.#close();
    const opened = () => open(this.#path, constants.O_WRONLY | constants.O_CREAT, 0o600);
    // Where it fails the folder may be missing; if that is not why, it fails again.
    const file = await opened().catch(async () => {
      await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 });
      return await opened();
    });
    this.#open = { file, stats: fstatSync(file.fd) };
    return file;
  }

  async #close(): Promise<void> {
    const before = this.#open;
    this.#open = undefined;
    await before?.file.close();
  }
}

function isSame(a: Stats, b: Stats | undefined): boolean {
  return a.ino === b?.ino && a.dev === b.dev;
}
