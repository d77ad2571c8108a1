// Metadata of signals, and the catalog in which the agent stores it.
import type { InputId } from "./point.ts";

/** Attributes of a signal, named as in the specification's signal save view. */
export interface SignalMetadata {
  readonly name: string;
  readonly type: "numeric" | "enum";
  readonly description: string;
  /** Keys match `^[A-Za-z0-9-_/]{1,128}$`. */
  readonly labels: Readonly<Record<string, readonly string[]>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly engUnit: string;
  /** Keys are integers from 0 to 9999 in text. */
  readonly enumValues: Readonly<Record<string, string>>;
  readonly sourceType: "measurement" | "aggregation" | "prediction";
  /** RFC 3339 duration. */
  readonly sampleInterval: string | null;
  /** RFC 3339 duration. The service draws a gap if there is no data for longer. */
  readonly gapDetection: string | null;
}

/** `SignalMetadata` with unknown members omitted. */
export type PartialSignalMetadata = { readonly [K in keyof SignalMetadata]?: SignalMetadata[K] | undefined };

/**
 * Persistent list of the signals that have points, with their known metadata. The pipeline adds a signal before it
 * appends its points; the metadata sync reads the list. Its loss is harmless: it fills again as points arrive, and the
 * service creates signals for unknown inputs.
 */
export interface SignalCatalog {
  /** Stores the metadata of `input` and replaces the previous one. Cheap without a change; never waits for the disk. */
  describe(input: InputId, signal: PartialSignalMetadata): void;
}
