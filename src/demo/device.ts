// The contract of simulated devices of all three protocols.
import type { InputId } from "../core/point.ts";
import type { DeliveredRecord } from "./comparison.ts";

export interface DeviceOptions {
  /** Minimum number of tags. */
  readonly tags: number;
  /** Milliseconds between two values of a tag. */
  readonly everyMs: number;
  readonly record: DeliveredRecord;
}

/** A real server of its protocol on a loopback port, with counting tags. */
export interface SimulatedDevice extends AsyncDisposable {
  readonly url: string;
  /** All Input IDs that values of this device may have. */
  readonly inputs: readonly InputId[];
  /** YAML of the entries under `templates` (if any) and `sources` that read every tag. */
  readonly configuration: { readonly templates?: string; readonly source: string };
  /** Stops producing values. Resolves once the agent has taken all, or after 10 s. Rejects with `signal.reason`. */
  stop(signal: AbortSignal): Promise<void>;
}

/** How long `SimulatedDevice.stop` waits, and how often it looks. */
export const stopWait = { withinMs: 10_000, everyMs: 20 };

/** Marks a text that this folder generated as an Input ID. */
export const inputId = (text: string) => text as InputId;
