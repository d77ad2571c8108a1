// Evidence from the operating system about whether the machine's clock is right.
import { readdir } from "node:fs/promises";
import { exists } from "../../lib/files/paths.ts";

export interface TimeEvidence {
  /** Whether time synchronisation has set the clock. `notYet`: it runs but has not. `unknown`: no evidence. */
  synchronised(): Promise<"yes" | "notYet" | "unknown">;
  /** Whether the machine has a clock that runs while it is switched off. */
  hasHardwareClock(): Promise<boolean>;
}

/** systemd-timesyncd creates this folder when it runs, and `synchronized` in it once it has set the clock. */
const timesync = "/run/systemd/timesync";

export const machineEvidence: TimeEvidence = {
  async synchronised() {
    if (await exists(`${timesync}/synchronized`)) return "yes";
    return (await exists(timesync)) ? "notYet" : "unknown";
  },
  async hasHardwareClock() {
    return (await readdir("/sys/class/rtc").catch(() => [])).length > 0;
  },
};
