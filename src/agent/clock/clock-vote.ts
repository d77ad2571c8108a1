// Compares the machine's clock with the clocks of devices, and decides how long readings wait if they disagree.
import type { Runtime } from "../../core/runtime.ts";
import type { Reading } from "../../core/source.ts";
import { formatDuration } from "../../lib/time/duration.ts";

/** Clocks within this many microseconds of each other agree. Delivery and publishing intervals stay below it. */
const agreeUs = 60e6;
/** Window length in milliseconds. The offset of a device is the greatest of the current and the previous window. */
const windowMs = 150_000;
/** Most devices of a source that vote. More would not change the result, and the number of topics is unbounded. */
const mostDevices = 1_000;

/** The offset of a device that gave no time in a window. */
const never = Number.NEGATIVE_INFINITY;

/** The greatest offset of a device in this window and in each of the two before it. */
interface DeviceClock {
  current: number;
  previous: number;
  beforeThat: number;
}

/** How the machine's clock compares with the clocks of devices. */
type ClockVoteResult =
  | { readonly kind: "wrong"; readonly byUs: number; readonly devices: number; readonly of: number }
  /** `right`: devices agree with it. `unknown`: too few give times. */
  | { readonly kind: "right" | "unknown" };

/**
 * The verdict is `wrong` if at least two devices are off by more than a minute in the same direction, and:
 * - they are more than half of all devices, and
 * - they outnumber those that agree with our clock, which counts as one itself.
 * Two against one suffice, one against one does not. A single device in local time does not change the verdict.
 */
export function clockVoteResult(offsets: readonly number[]): ClockVoteResult {
  const off = offsets.filter((offset) => Math.abs(offset) > agreeUs).sort((a, b) => a - b);
  const agreeing = offsets.length - off.length;
  let devices = 0;
  let byUs = 0;
  for (let from = 0, to = 0; to < off.length; to++) {
    while ((off[to] ?? 0) - (off[from] ?? 0) > agreeUs) from++;
    if (to - from + 1 <= devices) continue;
    devices = to - from + 1;
    byUs = off[from + Math.floor(devices / 2)] ?? 0;
  }
  if (devices >= 2 && devices * 2 > offsets.length && devices > agreeing + 1)
    return { kind: "wrong", byUs, devices, of: offsets.length };
  return { kind: agreeing > 0 ? "right" : "unknown" };
}

export function deviceClocks() {
  const sources = new Map<string, Map<string, DeviceClock>>();
  let beganMs: number | undefined;

  function turn(): void {
    for (const [source, devices] of sources) {
      for (const [name, device] of devices) {
        device.beforeThat = device.previous;
        device.previous = device.current;
        device.current = never;
        if (device.previous === never && device.beforeThat === never) devices.delete(name);
      }
      if (devices.size === 0) sources.delete(source);
    }
  }

  return {
    /** Records a time of `device` that is `offset` microseconds ahead of this machine's clock; negative: behind. */
    note(source: string, device: string, offset: number): void {
      let devices = sources.get(source);
      if (!devices) sources.set(source, (devices = new Map()));
      const known = devices.get(device);
      if (known) known.current = Math.max(known.current, offset);
      else if (devices.size < mostDevices) devices.set(device, { current: offset, previous: never, beforeThat: never });
    },
    /** Our clock was set forward by `byUs` microseconds; negative: back. */
    stepped(byUs: number): void {
      for (const devices of sources.values())
        for (const device of devices.values()) {
          device.current -= byUs;
          device.previous -= byUs;
          device.beforeThat -= byUs;
        }
    },
    /** The verdict at `nowMs` on the monotonic clock. Forgets devices that have given no time for some minutes. */
    verdict(nowMs: number): ClockVoteResult {
      beganMs ??= nowMs;
      for (; nowMs - beganMs >= windowMs; beganMs += windowMs) turn();
      const offsets = sources.values().flatMap((devices) => devices.values().map(offsetOf));
      return clockVoteResult(offsets.filter((offset) => offset !== undefined).toArray());
    },
  };
}

/** Undefined: its times are old, so it is unknown whether its clock is behind. */
function offsetOf({ current, previous, beforeThat }: DeviceClock): number | undefined {
  const offset = Math.max(current, previous);
  if (offset >= -agreeUs) return offset;
  const standsStill = Math.abs(previous - beforeThat) <= agreeUs && current <= previous + agreeUs;
  return standsStill ? previous : undefined;
}

/** Longest hold while devices disagree. A plant whose device clocks are all wrong must still be recorded. */
const holdForMs = 600_000;
/** How long the first `ahead` time waits for the times of other devices. */
const hearForMs = 10_000;

interface VoteParts {
  /** As `TimeEvidence`. */
  readonly evidence: { synchronised(): Promise<string> };
  readonly clock: { readonly machine: number; monotonic(): number };
}

export function clockVote(parts: VoteParts, log: Runtime["log"]) {
  const devices = deviceClocks();
  /** Monotonic time of the first `ahead` reading since the start or the last step. */
  let aheadMs: number | undefined;
  /** Monotonic time of the first disagreement since the start or the last step. */
  let againstMs: number | undefined;
  let wrong: Extract<ClockVoteResult, { kind: "wrong" }> | undefined;

  function judged(): ClockVoteResult {
    return devices.verdict(parts.clock.monotonic());
  }

  function settle(verdict: Extract<ClockVoteResult, { kind: "wrong" }> | undefined): void {
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
      let greatest = never;
      for (const { clock, ahead, time, device, historical } of readings) {
        if (ahead) isAhead = true;
        if (historical || (clock === "agent" && !ahead)) continue;
        // Consecutive readings mostly come from the same device.
        if (device !== last) {
          if (greatest > never) devices.note(source, last ?? "", greatest - now);
          last = device;
          greatest = never;
        }
        const given = ahead ? ahead.time : time;
        if (given > greatest) greatest = given;
      }
      if (greatest > never) devices.note(source, last ?? "", greatest - now);
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
