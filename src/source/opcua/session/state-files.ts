import { constants, fstatSync, type Stats, statSync } from "node:fs";
import { type FileHandle, mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * A file overwritten in place without fsync, so that it survives a crash. After a power cut it may be outdated, never
 * ahead. It stays open; a file that was removed or replaced is reopened.
 */
export class InPlaceFile implements AsyncDisposable {
  readonly #path: string;
  readonly #content: () => Uint8Array;
  #writing: Promise<void> = Promise.resolve();
  /** A write that has not started; it includes all changes made before its start. */
  #waiting: Promise<void> | undefined;
  #open: { readonly file: FileHandle; readonly stats: Stats } | undefined;
  #isDisposed = false;

  /** `content` must never return fewer bytes than before. */
  constructor(path: string, content: () => Uint8Array) {
    this.#path = path;
    this.#content = content;
  }

  /** Resolves when all changes so far are written. Rejects on a disk error. */
  write(): Promise<void> {
    const waiting = (this.#waiting ??= this.#writing.then(() => this.#write()));
    this.#writing = waiting.catch(() => {});
    return waiting;
  }

  /** Resolves when no write is in progress. */
  settled(): Promise<void> {
    return this.#writing;
  }

  /** Closes the file after pending writes. A later write reopens and closes it. */
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
    // The folder may be missing. If the error has another cause, the second attempt fails, too.
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
