// `clock.json` holds the `ClockEpoch`: how often the clock went back, and until which time that matters.
import { join } from "node:path";
import { z } from "zod";
import { epochMicros } from "../../core/point.ts";
import type { Logger } from "../../core/runtime.ts";
import { stateFile } from "../../lib/files/state-file.ts";
import type { Life } from "../gaps/gap-file.ts";
import type { AgentClock } from "./agent-clock.ts";

const content = z.object({ epoch: z.int().min(0).max(999), until: z.int().transform(epochMicros) });

export type ClockFile = ReturnType<typeof clockFile>;

/** Its content is undefined if the clock never went back, or if the file is damaged. */
export function clockFile(dataDir: string, log: Logger) {
  const unwritable = "cannot persist that the clock went back";
  return stateFile(join(dataDir, "clock.json"), content, { log, unwritable });
}

/** A sign of life is written every 10 s. A killed agent may have given times for this long after its last one. */
const unsignedUs = 11e6;
/** A backward difference below this is slew by time synchronisation, not a step. */
const slewedUs = 5_000;

/** Continues from the state of the previous agent, so that no time is given twice. */
export async function resumeClock(
  clock: AgentClock,
  file: Pick<ClockFile, "load" | "save">,
  former: Omit<Life, "sources"> | undefined,
): Promise<void> {
  const left = await file.load();
  if (left) clock.resume(left);
  if (!former || clock.machine > highestGiven(former, clock)) return;
  const next = clock.next(highestGiven(former, clock));
  if (!next) return;
  await file.save(next);
  clock.accept(next);
}

function highestGiven({ time, stopped, monotonic }: Omit<Life, "sources">, clock: AgentClock): number {
  if (stopped) return time;
  const passedMs = monotonic === undefined ? -1 : clock.monotonic() - monotonic;
  // The machine has not been restarted since, and its clock was not set back.
  if (passedMs >= 0 && clock.machine - time >= passedMs * 1_000 - slewedUs) return time;
  return time + unsignedUs;
}
