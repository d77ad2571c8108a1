// Decides when a full volume justifies dropping stored points: only after a grace period, and only while the buffer
// itself gets the space that a drop frees. Otherwise the programs that fill the volume would take all of it.
import { attempt } from "../../../lib/flow/attempt.ts";
import { type Disk, withFile, writeFully } from "./disk.ts";

/** Grace period: appends fail, which applies back-pressure, before segments may be dropped. */
export const graceMs = 60_000;

export class FullDisk {
  /** Monotonic time in milliseconds of the first failed write since the last success. */
  #since: number | undefined;
  /** Bytes that the last drops freed, and bytes stored since. Both exclude segment headers. */
  #freed = 0;
  #stored = 0;
  /** The last drop gained the buffer too little space: no further drops until the volume has room. */
  #holds = false;

  /** After a write of `needed` bytes failed on a full volume: returns whether a segment may be dropped. */
  mayDrop(needed: number, now: number): boolean {
    if (this.#holds) return false;
    if (this.#freed > 0) {
      // At least half of the freed space now holds points, so the next drop needs no grace period.
      if (this.#stored * 2 >= this.#freed) {
        this.#freed = 0;
        this.#stored = 0;
        return true;
      }
      // One small segment may not free enough for the write.
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

  stored(bytes: number): void {
    this.#stored += bytes;
    // More was stored than the drops freed: other programs freed space.
    if (this.#freed === 0 || this.#holds || this.#stored > 2 * this.#freed) this.hasRoom();
  }

  /** The volume has room. The next failure starts a new grace period. */
  hasRoom(): void {
    this.#since = undefined;
    this.#freed = 0;
    this.#stored = 0;
    this.#holds = false;
  }
}

const probeName = "room.tmp";

/** Throws the disk's error unless `bytes` more can be written. The free space of a volume does not show quotas. */
export function probeRoom(disk: Disk, folder: string, bytes: number): void {
  const path = `${folder}/${probeName}`;
  attempt(() => disk.remove(path));
  try {
    withFile(disk, path, "create", (file) => {
      // Some file systems do not allocate blocks for zeros.
      writeFully(file, new Uint8Array(bytes).fill(0xa5), 0);
      file.sync();
    });
  } finally {
    attempt(() => disk.remove(path));
  }
}
