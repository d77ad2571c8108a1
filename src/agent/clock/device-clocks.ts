// Estimates how far the device clocks are from the machine's clock, and whether most of them agree that it is wrong.
// Pure: time comes in as numbers.
//
//   offset = time that a device gives − time of this machine when it arrives
//
// A device never gives a time in advance. It may give an old one: a value that last changed an hour ago, or a retained
// message. The greatest offset of some minutes is therefore closest to the device's clock. A negative offset counts as
// a slow clock only if it is stable. An old time that is repeated falls further behind.

/** Clocks within this many microseconds of each other agree. Delivery and publishing intervals stay below it. */
const agreeUs = 60e6;
/** Window length in milliseconds. The offset of a device is the greatest of the current and the previous window. */
const windowMs = 150_000;
/** Most devices of a source that vote. More would not change the result, and the number of topics is unbounded. */
const mostDevices = 1_000;

/** The greatest offset of a device in this window and in the two before it. -Infinity: no time in that window. */
interface DeviceClock {
  current: number;
  previous: number;
  beforeThat: number;
}

/** How the machine's clock compares with the clocks of devices. */
export type ClockVerdict =
  | { readonly kind: "wrong"; readonly byUs: number; readonly devices: number; readonly of: number }
  /** `right`: devices agree with it. `unknown`: too few give times. */
  | { readonly kind: "right" | "unknown" };

/**
 * The verdict is `wrong` if at least two devices are off by more than a minute in the same direction, and:
 * - they are more than half of all devices, and
 * - they outnumber those that agree with our clock, which counts as one itself.
 * Two against one suffice, one against one does not. A single device in local time does not change the verdict.
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

  /** Our clock was set forward by `byUs` microseconds; negative: back. */
  stepped(byUs: number): void {
    for (const devices of this.#sources.values())
      for (const device of devices.values()) {
        device.current -= byUs;
        device.previous -= byUs;
        device.beforeThat -= byUs;
      }
  }

  /** The verdict at `nowMs` on the monotonic clock. Forgets devices that have given no time for some minutes. */
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

/** Undefined: its times are old, so it is unknown whether its clock is behind. */
function offsetOf({ current, previous, beforeThat }: DeviceClock): number | undefined {
  const offset = Math.max(current, previous);
  if (offset >= -agreeUs) return offset;
  const standsStill = Math.abs(previous - beforeThat) <= agreeUs && current <= previous + agreeUs;
  return standsStill ? previous : undefined;
}
