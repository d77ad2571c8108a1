// The contract of a simulated device: what the three protocols have in common.
import type { InputId } from "../core/point.ts";
import type { Clock } from "../core/runtime.ts";
import type { HandedOutRecord } from "./comparison.ts";

export interface DeviceOptions {
  /** How many tags it has at least. */
  readonly tags: number;
  /** Milliseconds between two values of a tag. */
  readonly everyMs: number;
  /** Where it records the values that it delivered. */
  readonly record: HandedOutRecord;
}

/** A real server of its protocol on a loopback port, whose tags count up. */
export interface SimulatedDevice extends AsyncDisposable {
  readonly url: string;
  /** Every Input ID that a value of this device may be mapped to. */
  readonly inputs: readonly InputId[];
  /** YAML of the entry under `templates`, if any, and of the entry under `sources` that reads every tag. */
  readonly configuration: { readonly templates?: string; readonly source: string };
  /**
   * Produces no more values and keeps answering. Resolves once the agent took what was delivered, as far as the
   * protocol tells (PUBACK, a further request, an acknowledged notification), at the latest after 10 s; rejects with
   * `signal.reason`.
   */
  stop(signal: AbortSignal): Promise<void>;
}

/** Resolves true once `probe` is, or false after `withinMs`. Rejects with `signal.reason`. */
export async function until(
  probe: () => boolean,
  withinMs: number,
  clock: Clock,
  signal: AbortSignal,
): Promise<boolean> {
  const end = clock.monotonic() + withinMs;
  while (!probe()) {
    if (clock.monotonic() >= end) return false;
    await clock.sleep(20, signal);
  }
  return true;
}

/** Bound of `SimulatedDevice.stop`. */
export const longestStopMs = 10_000;

/** Marks a text as an Input ID that this folder made and knows to be one. */
export const inputId = (text: string) => text as InputId;
