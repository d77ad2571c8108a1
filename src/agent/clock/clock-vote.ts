// Whether the clocks of devices say that the clock of this machine is wrong, and how long that is waited for.
import type { Runtime } from "../../core/runtime.ts";
import type { Reading } from "../../core/source.ts";
import { formatDuration } from "../../lib/duration.ts";
import { type ClockVerdict, DeviceClocks } from "./device-clocks.ts";
import type { TimeEvidence } from "./time-evidence.ts";

/** How long readings wait for a clock that devices disagree with: a plant whose devices are all wrong must not stay silent. */
const holdForMs = 600_000;
/** How long the first time that is ahead waits for other devices to be heard. */
const hearForMs = 10_000;

export interface VoteParts {
  readonly evidence: Pick<TimeEvidence, "synchronised">;
  readonly clock: { readonly machine: number; monotonic(): number };
}

export type ClockVote = ReturnType<typeof clockVote>;

export function clockVote(parts: VoteParts, log: Runtime["log"]) {
  const devices = new DeviceClocks();
  /** When a time was ahead for the first time since the start or the last step. */
  let aheadMs: number | undefined;
  /** When devices disagreed with our clock for the first time since then. */
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
    /** Why our clock is not believed, for people. Undefined: most devices agree with it, or too few say anything. */
    get reason(): string | undefined {
      if (!wrong) return undefined;
      const { byUs, devices, of } = wrong;
      const by = formatDuration(Math.round(Math.abs(byUs) / 1e6) * 1_000);
      return `${devices} of ${of} devices that give times say that it is ${by} ${byUs > 0 ? "behind" : "ahead"}`;
    },

    /** Whether readings with times of our clock wait for it to be set. */
    get holds(): boolean {
      return wrong !== undefined && since(againstMs) < holdForMs;
    },

    /** Whether it is too early to say which clock is wrong when a device is ahead. */
    get undecided(): boolean {
      return wrong === undefined && aheadMs !== undefined && since(aheadMs) < hearForMs;
    },

    /** Takes note of the times in what `source` delivers. Returns whether a time in it is ahead. */
    note(source: string, readings: readonly Reading[]): boolean {
      const now = parts.clock.machine;
      let isAhead = false;
      let last: string | undefined;
      let greatest = Number.NEGATIVE_INFINITY;
      for (const { clock, ahead, time, device, historical } of readings) {
        if (ahead) isAhead = true;
        if (historical || (clock === "agent" && !ahead)) continue;
        // Most readings that arrive together are of one device.
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

    /** Our clock was set forward by so much, back if that is negative. */
    stepped(byUs: number): void {
      devices.stepped(byUs);
      aheadMs = undefined;
      againstMs = undefined;
      if (wrong && judged().kind === "right") settle(undefined);
      if (wrong) againstMs = parts.clock.monotonic();
    },

    /** Counts the votes again. A clock that time synchronisation confirms overrides all devices. */
    async decide(): Promise<void> {
      const verdict = judged();
      if (verdict.kind === "unknown") return;
      const excused = verdict.kind === "wrong" && (await parts.evidence.synchronised()) === "yes";
      settle(verdict.kind === "wrong" && !excused ? verdict : undefined);
    },
  };
}
