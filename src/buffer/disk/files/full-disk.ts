// Decides when a volume that others have filled justifies giving up stored points: not before it stayed full for a while,
// and only as long as the space that a drop frees goes to the buffer, not to the programs that filled the volume.
import { attempt } from "../../../lib/attempt.ts";
import { type Disk, withFile, writeFully } from "./disk.ts";

/** Grace period: appends fail, which applies back-pressure, before segments may be dropped. */
export const graceMs = 60_000;

export class FullDisk {
  /** Monotonic milliseconds of the first failure after which no write went through. */
  #since: number | undefined;
  /** Bytes that the last drops freed, and bytes stored since, both without headers of segments. */
  #freed = 0;
  #stored = 0;
  /** A drop won nothing: what is left is held until there is room again. */
  #holds = false;

  /** The volume took no more; `needed` are the bytes that would have been written. Says whether a segment may be dropped for it. */
  mayDrop(needed: number, now: number): boolean {
    if (this.#holds) return false;
    if (this.#freed > 0) {
      // What came free has been filled with points: the next one may go at once.
      if (this.#stored * 2 >= this.#freed) {
        this.#freed = 0;
        this.#stored = 0;
        return true;
      }
      // A small segment alone may not be room enough.
      if (this.#stored === 0 && this.#freed < needed) return true;
      this.#holds = true;
      return false;
    }
    this.#since ??= now;
    return now - this.#since >= graceMs;
  }

  dropped(bytes: number): void {
    this.#freed += Math.max(1, bytes);
  }

  /** Points were stored. */
  stored(bytes: number): void {
    this.#stored += bytes;
    // More than the drops freed: others made room.
    if (this.#freed === 0 || this.#holds || this.#stored > 2 * this.#freed) this.hasRoom();
  }

  /** There is room again; the next time that there is none begins with a grace of its own. */
  hasRoom(): void {
    this.#since = undefined;
    this.#freed = 0;
    this.#stored = 0;
    this.#holds = false;
  }
}

const probeName = "room.tmp";

/** Throws what the disk throws when it does not take so many bytes: quotas do not show in the free space of a volume. */
export function probeRoom(disk: Disk, folder: string, bytes: number): void {
  const path = `${folder}/${probeName}`;
  attempt(() => disk.remove(path));
  try {
    withFile(disk, path, "create", (file) => {
      // Zeros would be left out by some file systems.
      writeFully(file, new Uint8Array(bytes).fill(0xa5), 0);
      file.sync();
    });
  } finally {
    attempt(() => disk.remove(path));
  }
}
