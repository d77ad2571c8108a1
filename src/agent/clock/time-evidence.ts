// Evidence from the operating system about whether the clock of the machine is right.
import { access, readdir } from "node:fs/promises";

export interface TimeEvidence {
  /** Whether time synchronisation has set the clock. `notYet`: it runs, and has not. `unknown`: no evidence. */
  synchronised(): Promise<"yes" | "notYet" | "unknown">;
  /** Whether there is a clock that runs while the machine is switched off. */
  hasHardwareClock(): Promise<boolean>;
}

/** Where systemd-timesyncd says that it runs, and that it has set the clock. */
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

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
