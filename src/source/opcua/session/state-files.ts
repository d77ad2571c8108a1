import { constants, fstatSync, type Stats, statSync } from "node:fs";
import { type FileHandle, mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * A file overwritten in place without fsync, so that it survives a crash. After a power cut it may be outdated, never
 * ahead. It stays open; a file that was removed or replaced is reopened.
 * `content` must never return fewer bytes than before.
 */
export function inPlaceFile(path: string, content: () => Uint8Array) {
  let writing: Promise<void> = Promise.resolve();
  /** A write that has not started; it includes all changes made before its start. */
  let pending: Promise<void> | undefined;
  let openedFile: { readonly file: FileHandle; readonly stats: Stats } | undefined;
  let isDisposed = false;

  async function write(): Promise<void> {
    pending = undefined;
    const bytes = content();
    let isWritten = false;
    try {
      const { bytesWritten } = await (await opened()).write(bytes, 0, bytes.length, 0);
      if (bytesWritten < bytes.length) throw new Error(`${bytesWritten} of ${bytes.length} bytes are written`);
      isWritten = true;
    } finally {
      if (!isWritten || isDisposed) await close();
    }
  }

  async function opened(): Promise<FileHandle> {
    const before = openedFile;
    if (before && isSame(before.stats, statSync(path, { throwIfNoEntry: false }))) return before.file;
    await close();
    const opened = () => open(path, constants.O_WRONLY | constants.O_CREAT, 0o600);
    // The folder may be missing. If the error has another cause, the second attempt fails, too.
    const file = await opened().catch(async () => {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      return await opened();
    });
    openedFile = { file, stats: fstatSync(file.fd) };
    return file;
  }

  async function close(): Promise<void> {
    const before = openedFile;
    openedFile = undefined;
    await before?.file.close();
  }

  return {
    /** Resolves when all changes so far are written. Rejects on a disk error. */
    write(): Promise<void> {
      const waiting = (pending ??= writing.then(() => write()));
      writing = waiting.catch(() => {});
      return waiting;
    },
    /** Resolves when no write is in progress. */
    settled(): Promise<void> {
      return writing;
    },
    /** Closes the file after pending writes. A later write reopens and closes it. */
    async [Symbol.asyncDispose](): Promise<void> {
      isDisposed = true;
      await writing;
      await close();
    },
  };
}

function isSame(a: Stats, b: Stats | undefined): boolean {
  return a.ino === b?.ino && a.dev === b.dev;
}
