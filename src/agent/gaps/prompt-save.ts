// Saves the gap record for a source that waits for it, but not for a hung disk.
import type { Runtime } from "../../core/runtime.ts";
import type { GapRecord } from "./gap-record.ts";

/** A disk that has not answered for this long counts as hung, and a process that has not run as suspended. */
export const hungAfterMs = 5_000;

/** Resolves with true once all rows are on disk. False if the disk rejects the write or hangs for 5 s. Never rejects. */
export function promptSave(record: Pick<GapRecord, "save">, source: string, { clock, log }: Runtime) {
  /** The disk has not answered a write. Nothing waits for it until it has. */
  let hung = false;

  return async (): Promise<boolean> => {
    const saving = record.save();
    // `saving` waits for the hung write before it.
    if (hung) return false;
    const waiting = new AbortController();
    const tooLong = clock.sleep(hungAfterMs, waiting.signal).catch(() => {});
    const answered = await Promise.race([saving, tooLong.then(() => undefined)]);
    waiting.abort();
    if (answered !== undefined) return answered;
    hung = true;
    log.warn({ part: "gaps", source }, "the disk of the gap record does not answer");
    void saving.then(() => {
      hung = false;
    });
    return false;
  };
}
