// How far the clocks of the devices are from the clock of this machine, and whether most of them agree that it is wrong.
// Pure: time comes in as numbers.
//
//   offset = time that a device gives − time of this machine when it arrives
//
// A time is never given before it is there, but may be given late: a value that last changed an hour ago, a message that
// the broker kept. The greatest offset of some minutes is therefore the one closest to the device's clock. An offset behind
// ours is taken for a clock that is behind only if it stands still: an old time that comes again falls behind further.

/** Clocks within it of each other agree, in microseconds: more than delivery and publishing intervals take. */
const agreeUs = 60e6;
/** Two windows behind each other are the minutes of which the greatest offset is taken, in milliseconds. */
const windowMs = 150_000;
/** Devices of one source that have a vote. More would decide the same, and topics may be without end. */
const mostDevices = 1_000;

/** The greatest offsets of one device: in the window that runs, and in the two before it. -Infinity: it gave no time. */
interface DeviceClock {
  current: number;
  previous: number;
  beforeThat: number;
}

/** What the devices say of the clock of this machine. */
export type ClockVerdict =
  | { readonly kind: "wrong"; readonly byUs: number; readonly devices: number; readonly of: number }
  /** `right`: devices agree with it. `unknown`: too few say anything. */
  | { readonly kind: "right" | "unknown" };

/**
 * Our clock is wrong if at least two devices are off by more than a minute in the same way, and they are more than half of
 * all and more than those that agree with ours, ours counted as one of them: two against one, but not one against one. A
 * single device in local time does not change the verdict.
 */
export function clockVerdict(offsets: readonly number[]): ClockVerdict {
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

export class DeviceClocks {
  readonly #sources = new Map<string, Map<string, DeviceClock>>();
  #beganMs: number | undefined;

  /** Records a time of `device` that is `offset` microseconds ahead of this machine's clock; negative: behind. */
  note(source: string, device: string, offset: number): void {
    let devices = this.#sources.get(source);
    if (!devices) this.#sources.set(source, (devices = new Map()));
    const known = devices.get(device);
    if (known) {
      if (offset > known.current) known.current = offset;
    } else if (devices.size < mostDevices)
      devices.set(device, {
        current: offset,
        previous: Number.NEGATIVE_INFINITY,
        beforeThat: Number.NEGATIVE_INFINITY,
      });
  }

  /** Our clock was set forward by so much, back if that is negative. */
  stepped(byUs: number): void {
    for (const devices of this.#sources.values())
      for (const device of devices.values()) {
        device.current -= byUs;
        device.previous -= byUs;
        device.beforeThat -= byUs;
      }
  }

  /** What is known at `nowMs` on the monotonic clock. Forgets devices that have given no time for some minutes. */
  verdict(nowMs: number): ClockVerdict {
    this.#beganMs ??= nowMs;
    while (nowMs - this.#beganMs >= windowMs) {
      this.#beganMs += windowMs;
      this.#turn();
    }
    const offsets: number[] = [];
    for (const devices of this.#sources.values())
      for (const device of devices.values()) {
        const offset = offsetOf(device);
        if (offset !== undefined) offsets.push(offset);
      }
    return clockVerdict(offsets);
  }

  #turn(): void {
    for (const [source, devices] of this.#sources) {
      for (const [name, device] of devices) {
        device.beforeThat = device.previous;
        device.previous = device.current;
        device.current = Number.NEGATIVE_INFINITY;
        if (device.previous === device.current && device.beforeThat === device.current) devices.delete(name);
      }
      if (devices.size === 0) this.#sources.delete(source);
    }
  }
}

/** Undefined: its times are behind, and it is not known whether its clock is. */
function offsetOf({ current, previous, beforeThat }: DeviceClock): number | undefined {
  const offset = Math.max(current, previous);
  if (offset >= -agreeUs) return offset;
  const standsStill = Math.abs(previous - beforeThat) <= agreeUs && current <= previous + agreeUs;
  return standsStill ? previous : undefined;
}
