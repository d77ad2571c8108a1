// Compares the machine's clock with the clocks of devices, and decides how long readings wait if they disagree.
import type { Runtime } from "../../core/runtime.ts";
import type { Reading } from "../../core/source.ts";
import { formatDuration } from "../../lib/time/duration.ts";
import { type ClockVerdict, DeviceClocks } from "./device-clocks.ts";
import type { TimeEvidence } from "./time-evidence.ts";

/** Longest hold while devices disagree. A plant whose device clocks are all wrong must still be recorded. */
const holdForMs = 600_000;
/** How long the first `ahead` time waits for the times of other devices. */
const hearForMs = 10_000;

export interface VoteParts {
  readonly evidence: Pick<TimeEvidence, "synchronised">;
  readonly clock: { readonly machine: number; monotonic(): number };
}

export type ClockVote = ReturnType<typeof clockVote>;

export function clockVote(parts: VoteParts, log: Runtime["log"]) {
  const devices = new DeviceClocks();
  /** Monotonic time of the first `ahead` reading since the start or the last step. */
  let aheadMs: number | undefined;
  /** Monotonic time of the first disagreement since the start or the last step. */
  let againstMs: number | undefined;
  let wrong: Extract<ClockVerdict, { kind: "wrong" }> | undefined;

  function judged(): ClockVerdict {
    return devices.verdict(parts.clock.monotonic());
  }

  function settle(verdict: Extract<ClockVerdict, { kind: "wrong" }> | undefined): void {
    const before = wrong;
    wrong = verdict;
    if (verdict) againstMs ??= parts.clock.monotonic();
    if (before && !verdict) log.info({}, "the clock agrees with those of the devices");
  }

  function since(ms: number | undefined): number {
    return ms === undefined ? 0 : parts.clock.monotonic() - ms;
  }

  return {
    /** Why our clock is not trusted. Undefined: most devices agree with it, or too few give times. */
    get reason(): string | undefined {
      if (!wrong) return undefined;
      const { byUs, devices, of } = wrong;
      const by = formatDuration(Math.round(Math.abs(byUs) / 1e6) * 1_000);
      return `${devices} of ${of} devices that give times say that it is ${by} ${byUs > 0 ? "behind" : "ahead"}`;
    },

    /** Whether readings with times of our clock are held. */
    get holds(): boolean {
      return wrong !== undefined && since(againstMs) < holdForMs;
    },

    /** Whether it is too early to decide which clock is wrong when a device is ahead. */
    get undecided(): boolean {
      return wrong === undefined && aheadMs !== undefined && since(aheadMs) < hearForMs;
    },

    /** Records the device times in `readings`. Returns whether one of them is ahead. */
    note(source: string, readings: readonly Reading[]): boolean {
      const now = parts.clock.machine;
      let isAhead = false;
      let last: string | undefined;
      let greatest = Number.NEGATIVE_INFINITY;
      for (const { clock, ahead, time, device, historical } of readings) {
        if (ahead) isAhead = true;
        if (historical || (clock === "agent" && !ahead)) continue;
        // Consecutive readings mostly come from the same device.
        if (device !== last) {
          if (greatest > Number.NEGATIVE_INFINITY) devices.note(source, last ?? "", greatest - now);
          last = device;
          greatest = Number.NEGATIVE_INFINITY;
        }
        const given = ahead ? ahead.time : time;
        if (given > greatest) greatest = given;
      }
      if (greatest > Number.NEGATIVE_INFINITY) devices.note(source, last ?? "", greatest - now);
      if (isAhead) aheadMs ??= parts.clock.monotonic();
      return isAhead;
    },

    /** Our clock was set forward by `byUs` microseconds; negative: back. */
    stepped(byUs: number): void {
      devices.stepped(byUs);
      aheadMs = undefined;
      againstMs = undefined;
      if (wrong && judged().kind === "right") settle(undefined);
      if (wrong) againstMs = parts.clock.monotonic();
    },

    /** Evaluates the votes again. A clock confirmed by time synchronisation overrides all devices. */
    async decide(): Promise<void> {
      const verdict = judged();
      if (verdict.kind === "unknown") return;
      const excused = verdict.kind === "wrong" && (await parts.evidence.synchronised()) === "yes";
      settle(verdict.kind === "wrong" && !excused ? verdict : undefined);
    },
  };
}
