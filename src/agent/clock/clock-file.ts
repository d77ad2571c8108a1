// `clock.json`: how often the clock went back behind times that were given, and until when that matters.
import { join } from "node:path";
import { z } from "zod";
import { epochMicros } from "../../core/point.ts";
import type { Logger } from "../../core/runtime.ts";
import { writeAtomically } from "../../lib/atomic-file.ts";
import { readStateFile } from "../../lib/state-file.ts";
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

  /** Resolves once it is on disk, or once the log says why it is not. Never rejects. */
  async write(epoch: ClockEpoch): Promise<void> {
    try {
      await writeAtomically(this.#path, JSON.stringify(epoch));
    } catch (error) {
      this.#log.warn({ err: error }, "cannot persist that the clock went back");
    }
  }
}

/** After its last sign of life, which comes every 10 s, an agent that was killed may have given times for so long. */
const unsignedUs = 11e6;
/** A clock that was slewed by less while no agent ran was not set back. */
const slewedUs = 5_000;

/** Goes on where the agent before this one ended: times that it may have given are not given again. */
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
  // The machine has run on since, and its clock was not set back.
  if (passedMs >= 0 && clock.machine - time >= passedMs * 1_000 - slewedUs) return time;
  return time + unsignedUs;
}
