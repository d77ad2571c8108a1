// `clock.json` holds the `ClockEpoch`: how often the clock went back, and until which time that matters.
import { join } from "node:path";
import { z } from "zod";
import { epochMicros } from "../../core/point.ts";
import type { Logger } from "../../core/runtime.ts";
import { writeAtomically } from "../../lib/files/atomic-file.ts";
import { readStateFile } from "../../lib/files/state-file.ts";
import type { Life } from "../gaps/gap-file.ts";
import type { AgentClock, ClockEpoch } from "./agent-clock.ts";

const content = z.object({ epoch: z.int().min(0).max(999), until: z.int().transform(epochMicros) });

export class ClockFile {
  readonly #path: string;
  readonly #log: Logger;

  constructor(dataDir: string, log: Logger) {
    this.#path = join(dataDir, "clock.json");
    this.#log = log;
  }

  /** Undefined: the clock never went back, or the file is damaged. */
  read(): Promise<ClockEpoch | undefined> {
    return readStateFile(this.#path, content);
  }

  /** Resolves once the state is on disk, or once the failure is logged. Never rejects. */
  async write(epoch: ClockEpoch): Promise<void> {
    try {
      await writeAtomically(this.#path, JSON.stringify(epoch));
    } catch (error) {
      this.#log.warn({ err: error }, "cannot persist that the clock went back");
    }
  }
}

/** A sign of life is written every 10 s. A killed agent may have given times for this long after its last one. */
const unsignedUs = 11e6;
/** A backward difference below this is slew by time synchronisation, not a step. */
const slewedUs = 5_000;

/** Continues from the state of the previous agent, so that no time is given twice. */
export async function resumeClock(
  clock: AgentClock,
  file: Pick<ClockFile, "read" | "write">,
  former: Omit<Life, "sources"> | undefined,
): Promise<void> {
  const left = await file.read();
  if (left) clock.resume(left);
  if (!former || clock.machine >= highestGiven(former, clock)) return;
  const next = clock.next(highestGiven(former, clock));
  if (!next) return;
  await file.write(next);
  clock.accept(next);
}

function highestGiven({ time, stopped, monotonic }: Omit<Life, "sources">, clock: AgentClock): number {
  if (stopped) return time;
  const passedMs = monotonic === undefined ? -1 : clock.monotonic() - monotonic;
  // The machine has not been restarted since, and its clock was not set back.
  if (passedMs >= 0 && clock.machine - time >= passedMs * 1_000 - slewedUs) return time;
  return time + unsignedUs;
}
